// SPDX-License-Identifier: Apache-2.0
// The kinds of images, and how to tell them. The readers of collections ask, so this stands below
// them.
#ifndef KEEL_SRC_EXECUTABLE_KIND_H_
#define KEEL_SRC_EXECUTABLE_KIND_H_

#include <keel/driver/image.h>

// What the bytes look like by their beginning; KEEL_IMAGE_UNKNOWN for anything else.
keel_image_kind_t image_recognise(const void *data, size_t size);

// A short lower-case name: "ptx", "hsaco".
const char *image_kind_name(keel_image_kind_t kind);

#endif
