// SPDX-License-Identifier: Apache-2.0
// Which device library the host can work with: the one that was made of the same headers. Both
// sides work this number out, and the host compares.
#ifndef KEEL_SRC_DRIVERS_AMDGPU_DEVICE_VERSION_H_
#define KEEL_SRC_DRIVERS_AMDGPU_DEVICE_VERSION_H_

#include <keel/base.h>

#include "drivers/amdgpu/device/program.h"

// To be counted up with changes of meaning that leave the structs as they were.
#define LIBRARY_REVISION UINT64_C(1)

#define LIBRARY_MIX(sum, size) (((sum) * 31 + (size)) & 0xffffffff)
#define LIBRARY_RECORDS                                                                            \
    LIBRARY_MIX(LIBRARY_MIX(sizeof(record_t), sizeof(wait_t)),                                     \
                LIBRARY_MIX(sizeof(cell_t) + sizeof(cell_side_t), sizeof(advance_args_t)))
#define LIBRARY_PROGRAMS                                                                           \
    LIBRARY_MIX(LIBRARY_MIX(sizeof(program_command_t), sizeof(segment_t)),                         \
                LIBRARY_MIX(sizeof(program_grid_t), sizeof(patch_args_t)))
#define LIBRARY_LAYOUT                                                                             \
    LIBRARY_MIX(LIBRARY_MIX(sizeof(scheduler_t), sizeof(ring_queue_t)),                            \
                LIBRARY_MIX(LIBRARY_RECORDS, LIBRARY_PROGRAMS))

// Of Keel, and of the library; the lower half is a sum of the sizes of what both sides share.
#define LIBRARY_VERSION                                                                            \
    (((uint64_t)KEEL_VERSION_MAJOR << 56 | (uint64_t)KEEL_VERSION_MINOR << 48 |                    \
      (uint64_t)KEEL_VERSION_PATCH << 40 | LIBRARY_REVISION << 32) |                               \
     LIBRARY_LAYOUT)

#endif
