// SPDX-License-Identifier: Apache-2.0
// Images: what machine code, or a collection of it, holds, without a device and without loading it.
//
//     keel_image_info_t *image;
//     KEEL_TRY(keel_image_info(bytes, size, &image));
//     for (uint32_t i = 0; i < image->entry_count; i++) puts(image->entries[i].name);
//     keel_image_info_release(image);
//
// Collections have images as members, each described as if it came alone: walk down `members` to
// find the targets that a container, a fatbin or a bundle serves. docs/images.md has the formats.
// keel_device_info_t.target says which one a device wants; keel_executable_load chooses by itself.
//
// Bytes may come from anywhere. Whatever they say, reading them neither crashes nor hangs, and what
// it takes of memory and time is bounded by how many there are.
//
// Any thread may call every function. None waits.
#ifndef KEEL_IMAGE_H_
#define KEEL_IMAGE_H_

#include <keel/status.h>

// The numbers up to KEEL_IMAGE_METALLIB are those in containers and do not change.
typedef enum keel_image_kind_t {
    KEEL_IMAGE_UNKNOWN = 0,
    KEEL_IMAGE_HOST = 1,       // a shared object of the host (host_kernel.h)
    KEEL_IMAGE_PTX = 2,        // NVIDIA's assembler, text
    KEEL_IMAGE_CUBIN = 3,      // NVIDIA's machine code
    KEEL_IMAGE_FATBIN = 4,     // several of these two
    KEEL_IMAGE_HSACO = 5,      // AMD's code object
    KEEL_IMAGE_SPIRV = 6,      // a SPIR-V module
    KEEL_IMAGE_MSL = 7,        // Metal's language, text; entry points are not read
    KEEL_IMAGE_METALLIB = 8,   // compiled for Metal; entry points are not read
    KEEL_IMAGE_OFFLOAD = 9,    // LLVM's OffloadBinary, several of them end to end
    KEEL_IMAGE_BUNDLE = 10,    // clang's offload bundle, plain or compressed
    KEEL_IMAGE_CONTAINER = 11, // Keel's own (docs/container.md)
    KEEL_IMAGE_BITCODE = 12,   // LLVM's intermediate code; entry points are not read
    KEEL_IMAGE_KINDS,          // how many there are
} keel_image_kind_t;

// In place of a number that the image does not give.
#define KEEL_UNSAID UINT32_MAX

// What a parameter of an entry point is.
typedef enum keel_param_kind_t {
    KEEL_PARAM_UNSAID,  // a value or an address: the image does not say
    KEEL_PARAM_VALUE,   // bytes passed by value
    KEEL_PARAM_POINTER, // the address of global memory
    KEEL_PARAM_LOCAL,   // workgroup memory whose size the launch chooses
    KEEL_PARAM_OPAQUE,  // an image, sampler, queue or the like
    KEEL_PARAM_HIDDEN,  // filled in by the vendor's runtime, not by the caller
    KEEL_PARAM_KINDS,   // how many there are
} keel_param_kind_t;

// One parameter in the block of arguments that a launch passes (keel_dispatch_t.raw).
typedef struct keel_image_param_t {
    const char *name;             // "" if the image does not say
    const char *type;             // in the words of the format (".u64", "by_value"), or ""
    keel_param_kind_t kind;       //
    uint32_t offset, size, align; // bytes; align may be KEEL_UNSAID
    uint32_t access;              // keel_access_bit_t of what it points to; 0: not said
} keel_image_param_t;

// A resource that is bound by number, not passed.
typedef struct keel_image_binding_t {
    const char *name;      // "" if the image does not say
    const char *type;      // "buffer", "storage buffer", "sampled image" ...
    uint32_t set, binding; // set is 0 where the format has none
    uint32_t count;        // elements of an array, 1 for a single one, 0: as many as are bound
    uint32_t access;       // keel_access_bit_t; 0: not said
} keel_image_binding_t;

// An entry point, as far as the image describes it. Numbers may be KEEL_UNSAID.
typedef struct keel_image_entry_info_t {
    const char *name;
    const char *abi;           // how it takes arguments, in a container's words; "" elsewhere
    uint32_t group_size[3];    // work-items in a workgroup; all unsaid if the launch chooses
    uint32_t max_group_size;   // work-items in all that a workgroup may have
    uint32_t wave_size;        // work-items that run in step
    uint32_t constants;        // bytes of constants beside the bindings; 0 where params say all
    uint32_t param_size;       // bytes of the block of parameters
    uint32_t local_memory;     // bytes of workgroup memory beside what the launch adds
    uint32_t private_memory;   // bytes per work-item
    uint32_t vector_registers; // per work-item
    uint32_t scalar_registers; // per wave
    uint32_t param_count, binding_count;
    keel_image_param_t *params;     // by offset
    keel_image_binding_t *bindings; // by set and binding
} keel_image_entry_info_t;

// An image, and the images in it. Texts are "" where nothing is known.
typedef struct keel_image_info_t {
    keel_image_kind_t kind; // as its bytes say, or else the image that holds it
    const char *kind_name;  // that as a short word: "ptx", "hsaco"; "unknown"
    const char *target;     // "aarch64-linux", "nvptx:sm_90a", "gfx942:xnack-", "spirv"
    const char *version;    // of the format: PTX "8.5", code object "5", SPIR-V "1.6"
    const char *producer;   // what wrote it
    uint64_t size;          // bytes, once unpacked
    uint32_t entry_count, member_count;
    const keel_image_entry_info_t *entries;
    const struct keel_image_info_t *members; // the images in it
    // Of a member; the image itself has "", its size, "plain" and NULL.
    const char *name;      // how its owner calls it: "hip-amdgcn-amd-amdhsa--gfx90a"
    uint64_t stored;       // bytes that it takes in its owner
    const char *packing;   // "plain", "lz4", "zstd", "zlib"
    keel_status_t failure; // why its bytes could not be read: it is damaged, of a kind that is not
                           // read, or would take too much; borrowed
    void *memory;          // Keel's own
} keel_image_info_t;

KEEL_EXTERN_C_BEGIN

// Describes the image of `size` bytes at `data`, which are borrowed for the call. The caller
// releases the description.
//
// A member that cannot be read is no failure of the call: it is listed with what its owner says of
// it, and `failure`. Members lie at most 4 deep. All that is read, unpacked, may have 32 times
// `size` and 4 MiB; members beyond that fail with KEEL_RESOURCE_EXHAUSTED.
//
// KEEL_CORRUPT if the image breaks the rules of its format. KEEL_UNSUPPORTED if it is of no kind
// that is read, or follows the rules in a way that is not known.
KEEL_API keel_status_t keel_image_info(const void *data, size_t size,
                                       keel_image_info_t **image) KEEL_MUST_USE;

// Frees a description with all that it holds. NULL is fine. Only for what keel_image_info gave:
// members belong to their owner.
KEEL_API void keel_image_info_release(keel_image_info_t *image);

KEEL_EXTERN_C_END

#endif
