// SPDX-License-Identifier: Apache-2.0
// Reads SPIR-V modules.
#ifndef KEEL_SRC_EXECUTABLE_SPIRV_H_
#define KEEL_SRC_EXECUTABLE_SPIRV_H_

#include "executable/image.h"

// Compute entry points, in either byte order: those of Vulkan with the bindings they use, their
// push constants (as `constants`), local size and workgroup memory; those of OpenCL with
// parameters, laid out as C would. Other stages have no use here and are left out.
keel_status_t spirv_read(const void *data, size_t size, image_info_t *info) KEEL_MUST_USE;

#endif
