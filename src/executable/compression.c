// SPDX-License-Identifier: Apache-2.0
#include "executable/compression.h"

#include "base/memory.h"
#include "base/status.h"

#if KEEL_HAVE_ZSTD

#include <zstd.h>

enum { LEVEL = 15 }; // packed once, in tens of milliseconds for what kernels are

keel_status_t zstd_pack(const void *data, size_t size, size_t limit, void **packed,
                        size_t *packed_size)
{
    *packed = NULL;
    if (!limit) return NULL;
    void *block = mem_alloc(limit);
    if (!block) return status_no_memory();
    size_t used = ZSTD_compress(block, limit, data, size, LEVEL);
    if (ZSTD_isError(used)) { // for lack of room: it stays as it is
        mem_free(block);
        return NULL;
    }
    *packed = block;
    *packed_size = used;
    return NULL;
}

keel_status_t zstd_unpack(const void *packed, size_t packed_size, void *data, size_t size)
{
    unsigned long long stated = ZSTD_getFrameContentSize(packed, packed_size);
    if (stated != size)
        return KEEL_ERROR(KEEL_CORRUPT, "its compressed bytes are no frame of %zu bytes", size);
    if (ZSTD_findFrameCompressedSize(packed, packed_size) != packed_size)
        return KEEL_ERROR(KEEL_CORRUPT, "its compressed bytes are not one whole frame");
    size_t got = ZSTD_decompress(data, size, packed, packed_size);
    if (got != size)
        return KEEL_ERROR(KEEL_CORRUPT, "its compressed bytes are damaged: %s",
                          ZSTD_getErrorName(got));
    return NULL;
}

#else

keel_status_t zstd_pack(const void *data, size_t size, size_t limit, void **packed,
                        size_t *packed_size)
{
    *packed = NULL;
    return NULL;
}

keel_status_t zstd_unpack(const void *packed, size_t packed_size, void *data, size_t size)
{
    return KEEL_ERROR(KEEL_UNSUPPORTED,
                      "it is compressed by zstd, and this library was built without it");
}

#endif
