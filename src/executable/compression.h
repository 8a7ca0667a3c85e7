// SPDX-License-Identifier: Apache-2.0
// zstd, where the library was built with it. Any thread.
#ifndef KEEL_SRC_EXECUTABLE_COMPRESSION_H_
#define KEEL_SRC_EXECUTABLE_COMPRESSION_H_

#include <keel/status.h>

// Compresses into a new block, to be freed by mem_free. *packed is NULL if it does not get smaller
// by that than `limit`, or the library was built without zstd.
keel_status_t zstd_pack(const void *data, size_t size, size_t limit, void **packed,
                        size_t *packed_size) KEEL_MUST_USE;

// Expands one frame that states, and has, exactly `size` bytes. KEEL_CORRUPT if not;
// KEEL_UNSUPPORTED if the library was built without zstd.
keel_status_t zstd_unpack(const void *packed, size_t packed_size, void *data,
                          size_t size) KEEL_MUST_USE;

#endif
