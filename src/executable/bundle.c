// SPDX-License-Identifier: Apache-2.0
// A plain bundle: 24 bytes of magic, u64 count, then for each member u64 offset, u64 size, u64
// length of its name, and the name, KIND-TRIPLE-PROCESSOR. A compressed one, by version:
//
//      0  "CCOB"          1: u32 size unpacked, u64 hash
//      4  u16 version     2: u32 size in all, u32 size unpacked, u64 hash
//      6  u16 packing     3: u64 size in all, u64 size unpacked, u64 hash
//
// For a bundle of texts see bundle_text.c.
#include "executable/bundle.h"

#include <string.h>

#include "executable/build.h"
#include "executable/bundle_text.h"
#include "executable/bytes.h"
#include "executable/triple.h"

enum {
    MAGIC_SIZE = 24,
    MEMBER_SIZE = 24, // and the name
};

// In KIND-ARCH-VENDOR-OS-ENVIRONMENT-PROCESSOR the environment may be empty, or missing with its
// dash if the processor cannot be taken for one.
static const char *processor_find(const char *name)
{
    for (int dashes = 0; *name; name++) {
        if (*name != '-') continue;
        bool known = !strncmp(name + 1, "gfx", 3) || !strncmp(name + 1, "sm_", 3);
        if (++dashes == 5 || (dashes == 4 && known)) return name + 1;
    }
    return "";
}

static keel_status_t member_name(image_info_t *info, image_member_t *member, const void *name,
                                 size_t length)
{
    KEEL_TRY(image_text(info, name, length, &member->name));
    const char *dash = strchr(member->name, '-');
    return triple_target(info, dash ? dash + 1 : "", processor_find(member->name), &member->target);
}

static keel_status_t member_read(image_info_t *info, const uint8_t *bytes, uint64_t size,
                                 uint64_t *at)
{
    if (size - *at < MEMBER_SIZE) return KEEL_ERROR(KEEL_CORRUPT, "its list of members is cut off");
    uint64_t offset = bytes_u64(bytes + *at), length = bytes_u64(bytes + *at + 8);
    uint64_t name_length = bytes_u64(bytes + *at + 16);
    *at += MEMBER_SIZE;
    if (!bytes_fit(*at, name_length, size) || !bytes_fit(offset, length, size))
        return KEEL_ERROR(KEEL_CORRUPT, "member %u goes beyond it", info->member_count);
    image_member_t *member;
    KEEL_TRY(image_add_member(info, &member));
    member->data = bytes + offset;
    member->size = member->unpacked = length;
    member->kind = image_recognise(member->data, (size_t)length);
    *at += name_length;
    return member_name(info, member, bytes + *at - name_length, (size_t)name_length);
}

static keel_status_t plain_read(image_info_t *info, const uint8_t *bytes, uint64_t size)
{
    if (size < MAGIC_SIZE + 8 || memcmp(bytes, "__CLANG_OFFLOAD_BUNDLE__", MAGIC_SIZE) != 0)
        return KEEL_ERROR(KEEL_CORRUPT, "it does not begin like an offload bundle");
    uint64_t count = bytes_u64(bytes + MAGIC_SIZE), at = MAGIC_SIZE + 8;
    if (count > size / MEMBER_SIZE)
        return KEEL_ERROR(KEEL_CORRUPT, "it claims to have %llu members in %llu bytes",
                          (unsigned long long)count, (unsigned long long)size);
    while (count--) KEEL_TRY(member_read(info, bytes, size, &at));
    return NULL;
}

// Takes the compressed bundle at `at`, of which `left` bytes may be read; *taken is how many it
// has.
static keel_status_t packed_read(image_info_t *info, const uint8_t *at, uint64_t left,
                                 uint64_t *taken)
{
    static const uint8_t header_sizes[] = {0, 20, 24, 32};
    uint16_t version = left >= 8 ? bytes_u16(at + 4) : 0;
    if (left >= 8 && (version < 1 || version > 3))
        return KEEL_ERROR(KEEL_UNSUPPORTED,
                          "it is a compressed bundle of version %u; 1 to 3 are known", version);
    uint64_t header = header_sizes[version];
    if (left < 8 || left < header)
        return KEEL_ERROR(KEEL_CORRUPT, "a compressed bundle is cut off");
    uint64_t total = version == 1 ? left : version == 2 ? bytes_u32(at + 8) : bytes_u64(at + 8);
    if (total < header || total > left)
        return KEEL_ERROR(KEEL_CORRUPT, "a compressed bundle is cut off");
    uint16_t packing = bytes_u16(at + 6);
    if (packing > 1)
        return KEEL_ERROR(KEEL_UNSUPPORTED, "it is compressed in an unknown way, number %u",
                          packing);
    image_member_t *member;
    KEEL_TRY(image_add_member(info, &member));
    *member = (image_member_t){
        .kind = KEEL_IMAGE_BUNDLE,
        .name = "",
        .target = "",
        .data = at + header,
        .size = total - header,
        .unpacked = version == 1   ? bytes_u32(at + 8)
                    : version == 2 ? bytes_u32(at + 12)
                                   : bytes_u64(at + 16),
        .packing = packing ? IMAGE_ZSTD : IMAGE_ZLIB,
    };
    *taken = total;
    return image_format(info, &info->version, "%u", version);
}

static keel_status_t texts_read(image_info_t *info, const void *data, size_t size)
{
    bundle_text_t text = {.rest = data, .end = (const char *)data + size};
    while (bundle_text_next(&text)) {
        image_member_t *member;
        KEEL_TRY(image_add_member(info, &member));
        KEEL_TRY(member_name(info, member, text.name, text.name_length));
        if (!text.data) return KEEL_ERROR(KEEL_CORRUPT, "its member %s has no end", member->name);
        member->data = text.data;
        member->size = member->unpacked = text.size;
        member->kind = image_recognise(text.data, text.size);
    }
    return NULL;
}

static keel_status_t bundles_read(image_info_t *info, const uint8_t *bytes, uint64_t size)
{
    if (bundle_is_text(bytes, (size_t)size)) return texts_read(info, bytes, (size_t)size);
    if (size < 4 || memcmp(bytes, "CCOB", 4) != 0) return plain_read(info, bytes, size);
    uint64_t offset = 0;
    do {
        uint64_t length = 0;
        if (size - offset < 4 || memcmp(bytes + offset, "CCOB", 4) != 0)
            return KEEL_ERROR(KEEL_CORRUPT, "at byte %llu no compressed bundle begins",
                              (unsigned long long)offset);
        KEEL_TRY(packed_read(info, bytes + offset, size - offset, &length));
        offset += length;
        while (offset < size && bytes[offset] == 0) offset++; // to the alignment of the next
    } while (offset < size);
    return NULL;
}

keel_status_t bundle_read(const void *data, size_t size, image_info_t *info)
{
    KEEL_TRY(image_begin(info, KEEL_IMAGE_BUNDLE, size));
    return image_end(info, bundles_read(info, data, size));
}
