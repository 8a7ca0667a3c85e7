// SPDX-License-Identifier: Apache-2.0
// Offsets count from the binary's first byte:
//
//      0  magic          entry:  0  u16 kind of image      string:  0  u64 offset of its key
//      4  u32 version            2  u16 kind of offload             8  u64 offset of its value
//      8  u64 size               8  u64 offset of strings
//     16  u64 offset of entry   16  u64 how many strings
//     24  u64 size of entry     24  u64 offset of image
//                               32  u64 size of image
#include "executable/offload.h"

#include <string.h>

#include "executable/build.h"
#include "executable/bytes.h"
#include "executable/triple.h"

enum {
    HEADER_SIZE = 32,
    ENTRY_SIZE = 40,
    STRING_SIZE = 16,
};

// One binary.
typedef struct span_t {
    const uint8_t *bytes;
    uint64_t size;
} span_t;

static keel_status_t cut_off(const char *what)
{
    return KEEL_ERROR(KEEL_CORRUPT, "%s of an offload binary goes beyond it", what);
}

// A terminated text at an offset.
static keel_status_t text_at(span_t span, uint64_t offset, const char **text)
{
    *text = "";
    if (offset >= span.size || !memchr(span.bytes + offset, 0, (size_t)(span.size - offset)))
        return cut_off("a text");
    *text = (const char *)span.bytes + offset;
    return NULL;
}

static keel_status_t strings_read(span_t span, const uint8_t *entry, const char **triple,
                                  const char **processor)
{
    uint64_t offset = bytes_u64(entry + 8), count = bytes_u64(entry + 16);
    if (count > span.size / STRING_SIZE || !bytes_fit(offset, count * STRING_SIZE, span.size))
        return cut_off("the table of texts");
    // Keys are short, and a search for the end of every one of many could take long.
    if (count > 64)
        return KEEL_ERROR(KEEL_UNSUPPORTED, "an offload binary has %llu texts; 64 are taken",
                          (unsigned long long)count);
    for (uint64_t i = 0; i < count; i++) {
        const uint8_t *string = span.bytes + offset + i * STRING_SIZE;
        const char *key, *value;
        KEEL_TRY(text_at(span, bytes_u64(string), &key));
        KEEL_TRY(text_at(span, bytes_u64(string + 8), &value));
        if (!strcmp(key, "triple")) *triple = value;
        if (!strcmp(key, "arch")) *processor = value;
    }
    return NULL;
}

// LLVM 20 has made the kinds bits; those before counted.
static const char *offload_name(uint16_t kind)
{
    switch (kind) {
    case 1: return "openmp-";
    case 2: return "cuda-";
    case 3:
    case 4: return "hip-";
    case 8: return "sycl-";
    default: return "";
    }
}

static keel_image_kind_t member_kind(uint16_t kind, const image_member_t *member)
{
    keel_image_kind_t seen = image_recognise(member->data, (size_t)member->size);
    if (seen != KEEL_IMAGE_UNKNOWN) return seen;
    return kind == 2   ? KEEL_IMAGE_BITCODE
           : kind == 3 ? KEEL_IMAGE_CUBIN
           : kind == 4 ? KEEL_IMAGE_FATBIN
           : kind == 5 ? KEEL_IMAGE_PTX
                       : KEEL_IMAGE_UNKNOWN;
}

static keel_status_t entry_read(image_info_t *info, span_t span)
{
    uint64_t offset = bytes_u64(span.bytes + 16);
    if (bytes_u64(span.bytes + 24) < ENTRY_SIZE || !bytes_fit(offset, ENTRY_SIZE, span.size))
        return cut_off("the entry");
    const uint8_t *entry = span.bytes + offset;
    uint64_t start = bytes_u64(entry + 24), size = bytes_u64(entry + 32);
    if (!bytes_fit(start, size, span.size)) return cut_off("the image");
    const char *triple = "", *processor = "";
    KEEL_TRY(strings_read(span, entry, &triple, &processor));
    image_member_t *member;
    KEEL_TRY(image_add_member(info, &member));
    member->data = span.bytes + start;
    member->size = member->unpacked = size;
    member->kind = member_kind(bytes_u16(entry), member);
    KEEL_TRY(image_format(info, &member->name, "%s%s", offload_name(bytes_u16(entry + 2)), triple));
    return triple_target(info, triple, processor, &member->target);
}

static keel_status_t binaries_read(image_info_t *info, const uint8_t *bytes, uint64_t size)
{
    uint64_t offset = 0;
    do {
        const uint8_t *at = bytes + offset;
        uint64_t left = size - offset;
        if (left < HEADER_SIZE || memcmp(at, "\x10\xff\x10\xad", 4) != 0)
            return KEEL_ERROR(KEEL_CORRUPT, "at byte %llu no offload binary begins",
                              (unsigned long long)offset);
        if (bytes_u32(at + 4) != 1)
            return KEEL_ERROR(KEEL_UNSUPPORTED, "it is an offload binary of version %u; 1 is known",
                              bytes_u32(at + 4));
        span_t span = {at, bytes_u64(at + 8)};
        if (span.size < HEADER_SIZE || span.size > left)
            return KEEL_ERROR(KEEL_CORRUPT, "an offload binary is cut off");
        KEEL_TRY(entry_read(info, span));
        offset += span.size;
        while (offset < size && bytes[offset] == 0) offset++; // to the alignment of the next
    } while (offset < size);
    return image_format(info, &info->version, "1");
}

keel_status_t offload_read(const void *data, size_t size, image_info_t *info)
{
    KEEL_TRY(image_begin(info, KEEL_IMAGE_OFFLOAD, size));
    return image_end(info, binaries_read(info, data, size));
}
