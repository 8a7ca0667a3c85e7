// SPDX-License-Identifier: Apache-2.0
// A header of 16 bytes, then members, each behind a header of its own:
//
//      0  u32 magic              0  u16 kind                28  u32 architecture
//      4  u16 version            4  u32 size of header      40  u64 flags
//      6  u16 size of header     8  u64 size of data        56  u64 size once unpacked
//      8  u64 size of the rest  16  u32 of it packed
#include "executable/fatbin.h"

#include "executable/build.h"
#include "executable/bytes.h"

enum {
    HEADER_SIZE = 16,
    MEMBER_SIZE = 64,
    MEMBER_PTX = 1,
    MEMBER_CUBIN = 2,
    FLAG_LZ4 = 0x2000,
    FLAG_ZSTD = 0x8000,
    FLAG_ACCELERATED = 0x100000, // the "a" of sm_90a
    FLAG_FAMILY = 0x200000,      // the "f" of sm_100f
};

static const uint32_t MAGIC = 0xba55ed50;

static keel_status_t packing_read(const uint8_t *header, uint64_t flags, image_member_t *member)
{
    if (!(flags & (FLAG_LZ4 | FLAG_ZSTD))) {
        member->unpacked = member->size;
        return NULL;
    }
    uint32_t packed = bytes_u32(header + 16);
    if (packed > member->size)
        return KEEL_ERROR(KEEL_CORRUPT, "packed data of a member goes beyond it");
    member->packing = flags & FLAG_ZSTD ? IMAGE_ZSTD : IMAGE_LZ4;
    member->size = packed;
    member->unpacked = bytes_u64(header + 56);
    return NULL;
}

// Takes the member at `at`, of which `left` bytes may be read; *taken is how many it has.
static keel_status_t member_read(image_info_t *info, const uint8_t *at, uint64_t left,
                                 uint64_t *taken)
{
    uint64_t header = left >= MEMBER_SIZE ? bytes_u32(at + 4) : 0;
    if (header < MEMBER_SIZE || header > left)
        return KEEL_ERROR(KEEL_CORRUPT, "the header of member %u is cut off", info->member_count);
    uint64_t size = bytes_u64(at + 8);
    if (!bytes_fit(header, size, left))
        return KEEL_ERROR(KEEL_CORRUPT, "member %u is cut off", info->member_count);
    image_member_t *member;
    KEEL_TRY(image_add_member(info, &member));
    uint16_t kind = bytes_u16(at);
    uint64_t flags = bytes_u64(at + 40);
    member->data = at + header;
    member->size = size;
    member->kind = kind == MEMBER_PTX     ? KEEL_IMAGE_PTX
                   : kind == MEMBER_CUBIN ? KEEL_IMAGE_CUBIN
                                          : KEEL_IMAGE_UNKNOWN;
    KEEL_TRY(packing_read(at, flags, member));
    *taken = header + size;
    return image_format(info, &member->target, "nvptx:sm_%u%s", bytes_u32(at + 28),
                        flags & FLAG_ACCELERATED ? "a"
                        : flags & FLAG_FAMILY    ? "f"
                                                 : "");
}

static keel_status_t collection_read(image_info_t *info, const uint8_t *at, uint64_t left,
                                     uint64_t *taken)
{
    if (left < HEADER_SIZE || bytes_u32(at) != MAGIC)
        return KEEL_ERROR(KEEL_CORRUPT, "it does not begin like a fatbin");
    uint16_t version = bytes_u16(at + 4);
    if (version != 1)
        return KEEL_ERROR(KEEL_UNSUPPORTED, "it is a fatbin of version %u; 1 is known", version);
    uint64_t header = bytes_u16(at + 6), size = bytes_u64(at + 8);
    if (header < HEADER_SIZE || !bytes_fit(header, size, left))
        return KEEL_ERROR(KEEL_CORRUPT, "it is cut off");
    uint64_t offset = header, end = header + size;
    while (offset < end) {
        uint64_t length = 0;
        KEEL_TRY(member_read(info, at + offset, end - offset, &length));
        offset += length;
    }
    *taken = end;
    return NULL;
}

static keel_status_t collections_read(image_info_t *info, const uint8_t *bytes, uint64_t size)
{
    uint64_t offset = 0;
    do {
        uint64_t length = 0;
        KEEL_TRY(collection_read(info, bytes + offset, size - offset, &length));
        offset += length;
        while (offset < size && bytes[offset] == 0) offset++; // to the alignment of the next
    } while (offset < size);
    return image_format(info, &info->version, "1");
}

keel_status_t fatbin_read(const void *data, size_t size, image_info_t *info)
{
    KEEL_TRY(image_begin(info, KEEL_IMAGE_FATBIN, size));
    return image_end(info, collections_read(info, data, size));
}
