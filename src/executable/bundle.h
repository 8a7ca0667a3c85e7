// SPDX-License-Identifier: Apache-2.0
// Reads clang's offload bundles, which HIP puts into host objects.
#ifndef KEEL_SRC_EXECUTABLE_BUNDLE_H_
#define KEEL_SRC_EXECUTABLE_BUNDLE_H_

#include "executable/image.h"

// The members of a bundle, of binaries or of texts. One that is compressed has the plain bundle as
// its only member, to be read after image_unpack; of several of these end to end, each is one.
keel_status_t bundle_read(const void *data, size_t size, image_info_t *info) KEEL_MUST_USE;

#endif
