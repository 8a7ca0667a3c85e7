// SPDX-License-Identifier: Apache-2.0
// Reads fatbins, NVIDIA's collections of PTX and cubins.
#ifndef KEEL_SRC_EXECUTABLE_FATBIN_H_
#define KEEL_SRC_EXECUTABLE_FATBIN_H_

#include "executable/image.h"

// The members, in order; those of several fatbins that lie end to end, too.
keel_status_t fatbin_read(const void *data, size_t size, image_info_t *info) KEEL_MUST_USE;

#endif
