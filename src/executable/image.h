// SPDX-License-Identifier: Apache-2.0
// What an image holds: one description, which the reader of every format fills in.
//
//     image_info_t info;
//     KEEL_TRY(image_read(bytes, size, &info));
//     for (uint32_t i = 0; i < info.entry_count; i++) puts(info.entries[i].name);
//     image_info_finish(&info);
//
// Readers take bytes from anywhere: whatever those say, a reader does not crash, read beyond them,
// hang or allocate much more than they are long. An image that breaks the rules of its format is
// KEEL_CORRUPT; one that follows them in a way that is not known here, KEEL_UNSUPPORTED. Readers
// keep no state and may be called from any thread.
#ifndef KEEL_SRC_EXECUTABLE_IMAGE_H_
#define KEEL_SRC_EXECUTABLE_IMAGE_H_

#include "executable/kind.h"

typedef enum image_packing_t {
    IMAGE_PLAIN,
    IMAGE_LZ4, // a block without a frame
    IMAGE_ZSTD,
    IMAGE_ZLIB,
    IMAGE_PACKINGS,
} image_packing_t;

// An image inside an image. Read it like any other, after image_unpack if it is packed.
typedef struct image_member_t {
    keel_image_kind_t kind; // as its bytes or its owner say
    const char *name;       // how its owner calls it: "hip-amdgcn-amd-amdhsa--gfx90a"; or ""
    const char *target;     // as in image_info_t; "" if its owner does not say
    const void *data;       // in the bytes given to image_read
    uint64_t size;          // as stored
    uint64_t unpacked;      // size once unpacked; IMAGE_PLAIN: the same
    image_packing_t packing;
    uint32_t entry_count; // entry points as its owner describes them; 0 if it does not
    keel_image_entry_info_t *entries;
} image_member_t;

typedef struct image_memory_t image_memory_t;

typedef struct image_info_t {
    keel_image_kind_t kind;
    const char *target;   // "aarch64-linux", "nvptx:sm_90a", "gfx942:xnack-", "spirv"; or ""
    const char *version;  // of the format: PTX "8.5", code object "5", SPIR-V "1.6"; or ""
    const char *producer; // what wrote it, if it says so; or ""
    uint32_t entry_count, member_count;
    keel_image_entry_info_t *entries;
    image_member_t *members;
    image_memory_t *memory; // owns all of the above and every string and array below it
} image_info_t;

// Describes the image. On failure `info` is empty.
keel_status_t image_read(const void *data, size_t size, image_info_t *info) KEEL_MUST_USE;

// A short lower-case name: "zstd".
const char *image_packing_name(image_packing_t packing);

// Bytes of the block of parameters that who dispatches gives: what is hidden behind them is the
// runtime's. 0 if it gives none, or the image does not say.
uint32_t image_given_size(const keel_image_entry_info_t *entry);

// About how many bytes the image takes when it is loaded: those of its segments, or of all of it.
uint64_t image_memory_size(const void *data, size_t size);

// Releases what a reader filled in; also after a failure, and twice.
void image_info_finish(image_info_t *info);

#endif
