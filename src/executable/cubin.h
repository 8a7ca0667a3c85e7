// SPDX-License-Identifier: Apache-2.0
// Reads cubins, ELF files with code of NVIDIA GPUs.
#ifndef KEEL_SRC_EXECUTABLE_CUBIN_H_
#define KEEL_SRC_EXECUTABLE_CUBIN_H_

#include "executable/image.h"

// Entry points with parameters (offset and size; a cubin does not say what they are), sizes of
// groups, registers, workgroup and private memory. Both ways in which cubins number architectures
// are known: that of CUDA 13, and the one before.
keel_status_t cubin_read(const void *data, size_t size, image_info_t *info) KEEL_MUST_USE;

#endif
