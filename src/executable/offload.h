// SPDX-License-Identifier: Apache-2.0
// Reads LLVM's OffloadBinary, which clang puts into host objects for its linker wrapper.
#ifndef KEEL_SRC_EXECUTABLE_OFFLOAD_H_
#define KEEL_SRC_EXECUTABLE_OFFLOAD_H_

#include "executable/image.h"

// The members: one of each binary, of which several may lie end to end.
keel_status_t offload_read(const void *data, size_t size, image_info_t *info) KEEL_MUST_USE;

#endif
