// SPDX-License-Identifier: Apache-2.0
// Expands packed members of images.
#ifndef KEEL_SRC_EXECUTABLE_UNPACK_H_
#define KEEL_SRC_EXECUTABLE_UNPACK_H_

#include "executable/image.h"

// The member's bytes as they were before they were packed, member->unpacked of them, in a new block
// to be freed by mem_free; a copy if it is not packed. KEEL_RESOURCE_EXHAUSTED if they are more
// than `limit`, KEEL_UNSUPPORTED if the library was built without what the packing needs. Any
// thread.
keel_status_t image_unpack(const image_member_t *member, uint64_t limit,
                           void **bytes) KEEL_MUST_USE;

#endif
