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

// In place of a number that the image does not give.
#define IMAGE_UNSAID UINT32_MAX

typedef enum image_param_kind_t {
    IMAGE_PARAM_UNSAID,  // a value or an address: the image does not say
    IMAGE_PARAM_VALUE,   // bytes passed by value
    IMAGE_PARAM_POINTER, // the address of global memory
    IMAGE_PARAM_LOCAL,   // workgroup memory whose size the launch chooses
    IMAGE_PARAM_OPAQUE,  // an image, sampler, queue or the like
    IMAGE_PARAM_HIDDEN,  // filled in by the runtime, not by the caller
    IMAGE_PARAM_KINDS,
} image_param_kind_t;

// One parameter in the block that a launch passes.
typedef struct image_param_t {
    const char *name; // "" if the image does not say
    const char *type; // in the words of the format (".u64", "hidden_block_count_x"), or ""
    image_param_kind_t kind;
    uint32_t offset, size, align; // bytes; align is IMAGE_UNSAID if the image does not say
    uint32_t access;              // keel_access_bit_t of what it points to; 0: not said
} image_param_t;

// A resource that is bound by number, not passed.
typedef struct image_binding_t {
    const char *name;      // "" if the image does not say
    const char *type;      // "storage buffer", "sampled image" ...
    uint32_t set, binding; // set is 0 where the format has none
    uint32_t count;        // elements of an array, 1 for a single one, 0: as many as are bound
    uint32_t access;       // keel_access_bit_t; 0: not said
} image_binding_t;

typedef struct image_entry_t {
    const char *name;
    const char *abi;           // how it takes arguments, in a container's words; "" elsewhere
    uint32_t group_size[3];    // work-items, all IMAGE_UNSAID if the launch chooses
    uint32_t max_group_size;   // work-items in all that a group may have, or IMAGE_UNSAID
    uint32_t wave_size;        // work-items that run in step, or IMAGE_UNSAID
    uint32_t constants;        // bytes of constants beside the bindings; 0 where params say all
    uint32_t param_size;       // bytes of the block of parameters
    uint32_t local_memory;     // bytes of workgroup memory beside what the launch adds
    uint32_t private_memory;   // bytes per work-item, or IMAGE_UNSAID
    uint32_t vector_registers; // per work-item, or IMAGE_UNSAID; so is the next
    uint32_t scalar_registers; // per wave
    uint32_t param_count, binding_count;
    image_param_t *params;     // by offset
    image_binding_t *bindings; // by set and binding
} image_entry_t;

typedef enum image_packing_t {
    IMAGE_PLAIN,
    IMAGE_LZ4, // a block without a frame
    IMAGE_ZSTD,
    IMAGE_ZLIB,
    IMAGE_PACKINGS,
} image_packing_t;

// An image inside an image. Read it like any other, after image_unpack if it is packed.
typedef struct image_member_t {
    image_kind_t kind;  // as its bytes or its owner say
    const char *name;   // how its owner calls it: "hip-amdgcn-amd-amdhsa--gfx90a"; or ""
    const char *target; // as in image_info_t; "" if its owner does not say
    const void *data;   // in the bytes given to image_read
    uint64_t size;      // as stored
    uint64_t unpacked;  // size once unpacked; IMAGE_PLAIN: the same
    image_packing_t packing;
    uint32_t entry_count; // entry points as its owner describes them; 0 if it does not
    image_entry_t *entries;
} image_member_t;

typedef struct image_memory_t image_memory_t;

typedef struct image_info_t {
    image_kind_t kind;
    const char *target;   // "aarch64-linux", "nvptx:sm_90a", "gfx942:xnack-", "spirv"; or ""
    const char *version;  // of the format: PTX "8.5", code object "5", SPIR-V "1.6"; or ""
    const char *producer; // what wrote it, if it says so; or ""
    uint32_t entry_count, member_count;
    image_entry_t *entries;
    image_member_t *members;
    image_memory_t *memory; // owns all of the above and every string and array below it
} image_info_t;

// Describes the image. On failure `info` is empty.
keel_status_t image_read(const void *data, size_t size, image_info_t *info) KEEL_MUST_USE;

// Short lower-case names: "zstd"; "pointer", or "" for IMAGE_PARAM_UNSAID.
const char *image_packing_name(image_packing_t packing);
const char *image_param_kind_name(image_param_kind_t kind);

// Releases what a reader filled in; also after a failure, and twice.
void image_info_finish(image_info_t *info);

#endif
