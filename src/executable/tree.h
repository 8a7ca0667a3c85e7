// SPDX-License-Identifier: Apache-2.0
// An image with all images in it.
#ifndef KEEL_SRC_EXECUTABLE_TREE_H_
#define KEEL_SRC_EXECUTABLE_TREE_H_

#include <keel/image.h>

// As keel_image_info, into memory of the caller; tree_finish gives back what it holds, also after a
// failure, which leaves an empty one.
keel_status_t tree_read(const void *data, size_t size, keel_image_info_t *root) KEEL_MUST_USE;
void tree_finish(keel_image_info_t *root);

#endif
