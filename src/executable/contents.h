// SPDX-License-Identifier: Apache-2.0
// Describes Keel's own containers as other images are described.
#ifndef KEEL_SRC_EXECUTABLE_CONTENTS_H_
#define KEEL_SRC_EXECUTABLE_CONTENTS_H_

#include "executable/image.h"

// The images as members, with the entry points that the table of contents gives them. Their bytes
// are not looked at: container_image_read checks them.
keel_status_t contents_read(const void *data, size_t size, image_info_t *info) KEEL_MUST_USE;

#endif
