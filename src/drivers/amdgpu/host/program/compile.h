// SPDX-License-Identifier: Apache-2.0
// Commands as parts of a program (assemble.h), of the segment that was begun last. All that is
// known is written down here, once; what a submission brings is left to the GPU. They fail as they
// would if they ran.
#ifndef KEEL_SRC_DRIVERS_AMDGPU_HOST_PROGRAM_COMPILE_H_
#define KEEL_SRC_DRIVERS_AMDGPU_HOST_PROGRAM_COMPILE_H_

#include "drivers/amdgpu/host/program/assemble.h"

keel_status_t compile_fill(compiler_t *c, const keel_cmd_fill_t *fill) KEEL_MUST_USE;
keel_status_t compile_copy(compiler_t *c, const keel_cmd_copy_t *copy) KEEL_MUST_USE;
keel_status_t compile_update(compiler_t *c, const keel_cmd_update_t *update) KEEL_MUST_USE;
keel_status_t compile_timestamp(compiler_t *c, const keel_cmd_timestamp_t *t) KEEL_MUST_USE;
keel_status_t compile_dispatch(compiler_t *c, const keel_cmd_dispatch_t *d) KEEL_MUST_USE;

#endif
