// SPDX-License-Identifier: Apache-2.0
// Reads HSA code objects, ELF files with code of AMD GPUs.
#ifndef KEEL_SRC_EXECUTABLE_HSACO_H_
#define KEEL_SRC_EXECUTABLE_HSACO_H_

#include "executable/image.h"

// Entry points with parameters (the kernarg segment, hidden ones included), sizes of groups and
// waves, registers and memory, from the metadata of code object versions 3 and later.
// KEEL_UNSUPPORTED for earlier ones.
keel_status_t hsaco_read(const void *data, size_t size, image_info_t *info) KEEL_MUST_USE;

#endif
