// SPDX-License-Identifier: Apache-2.0
#include "executable/unpack.h"

#include <limits.h>
#include <string.h>

#if KEEL_HAVE_LZ4
#include <lz4.h>
#endif
#if KEEL_HAVE_ZLIB
#include <zlib.h>
#endif

#include "base/memory.h"
#include "base/status.h"
#include "executable/compression.h"

static keel_status_t plain_copy(const void *packed, size_t packed_size, void *data, size_t size)
{
    if (packed_size != size) return KEEL_ERROR(KEEL_CORRUPT, "its sizes contradict each other");
    memcpy(data, packed, size);
    return NULL;
}

#if KEEL_HAVE_LZ4 || KEEL_HAVE_ZLIB
static keel_status_t unpack_error(const char *packing, size_t size)
{
    return KEEL_ERROR(KEEL_CORRUPT, "its %s data is damaged, or not of %zu bytes", packing, size);
}
#endif

static keel_status_t lz4_unpack(const void *packed, size_t packed_size, void *data, size_t size)
{
#if KEEL_HAVE_LZ4
    if (packed_size > INT_MAX || size > INT_MAX ||
        LZ4_decompress_safe(packed, data, (int)packed_size, (int)size) != (int)size)
        return unpack_error("lz4", size);
    return NULL;
#else
    return KEEL_ERROR(KEEL_UNSUPPORTED, "it is packed by lz4, and this library was built without");
#endif
}

static keel_status_t zlib_unpack(const void *packed, size_t packed_size, void *data, size_t size)
{
#if KEEL_HAVE_ZLIB
    uLongf length = size;
    if (uncompress(data, &length, packed, packed_size) != Z_OK || length != size)
        return unpack_error("zlib", size);
    return NULL;
#else
    return KEEL_ERROR(KEEL_UNSUPPORTED, "it is packed by zlib, and this library was built without");
#endif
}

keel_status_t image_unpack(const image_member_t *member, uint64_t limit, void **bytes)
{
    static keel_status_t (*const unpackers[IMAGE_PACKINGS])(const void *, size_t, void *,
                                                            size_t) = {
        [IMAGE_PLAIN] = plain_copy,
        [IMAGE_LZ4] = lz4_unpack,
        [IMAGE_ZSTD] = zstd_unpack,
        [IMAGE_ZLIB] = zlib_unpack,
    };
    *bytes = NULL;
    if (member->unpacked > limit || member->unpacked > SIZE_MAX)
        return KEEL_ERROR(KEEL_RESOURCE_EXHAUSTED, "it has %llu bytes; at most %llu are unpacked",
                          (unsigned long long)member->unpacked, (unsigned long long)limit);
    void *block = mem_alloc((size_t)member->unpacked);
    if (!block) return status_no_memory();
    keel_status_t status = unpackers[member->packing](member->data, (size_t)member->size, block,
                                                      (size_t)member->unpacked);
    if (status) {
        mem_free(block);
        return status;
    }
    *bytes = block;
    return NULL;
}
