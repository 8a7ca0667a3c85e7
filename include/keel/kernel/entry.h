// SPDX-License-Identifier: Apache-2.0
// Part of <keel/kernel.h>: what KEEL_KERNEL becomes. In each case
//
//   keel_once_NAME    a function that does nothing: of all that a second kernel of the name would
//                     define again, the one of which every compiler says where the first is
//   keel_shape_NAME   a type whose fields have the sizes of the group
//   keel_ragged_NAME  char[2] if a sub-group of the group may lack items, else char[1]
//   keel_locals_NAME  workgroup memory
//   keel_record_NAME  what `keel cc` reads from the image: keel_record_t and texts
//   keel_body_NAME    the body, as a function that is inlined into
//   the entry points  of the target (host.h, block.h)
#ifndef KEEL_KERNEL_ENTRY_H_
#define KEEL_KERNEL_ENTRY_H_

// Puts a variable into a section, behind those that stand before it in the source.
#if defined(__clang__)
#define KEEL_LIST_(section_, bytes) __attribute__((used, section(section_), aligned(bytes)))
#else
#define KEEL_LIST_(section_, bytes)                                                                \
    __attribute__((used, no_reorder, section(section_), aligned(bytes)))
#endif

#define KEEL_UNUSED_ __attribute__((unused))
#define KEEL_INLINE_ static inline __attribute__((always_inline, unused))

typedef struct keel_place_t {
    uint32_t group[3]; // which of the grid
    uint32_t count[3]; // how many there are
} keel_place_t;

// In the section keel_kernels of ELF images; in PTX the initialisers of keel_record_NAME. Followed
// by texts that end with 0: the name of the kernel, then r, w or b and the name of each binding.
typedef struct keel_record_t {
    uint32_t version; // KEEL_RECORD_VERSION_
    uint32_t size;    // with texts
    uint32_t abi;     // as in containers: 0 raw, 1 host, 2 direct
    uint32_t group_size[3];
    uint32_t constants;
    uint32_t bindings;
    uint32_t local_memory;
    uint32_t arguments; // bytes of the block; 0 on the host
} keel_record_t;

#define KEEL_RECORD_VERSION_ 0x314b4c01u

#define KEEL_GROUP_(x, y, z, ...) (x, y, z)

// Parameters of the body.
#define KEEL_PARAMETER_IN(kernel, type, name)                                                      \
    , const type *restrict name, KEEL_UNUSED_ const uint64_t keel_length_##name
#define KEEL_PARAMETER_OUT(kernel, type, name)                                                     \
    , type *restrict name, KEEL_UNUSED_ const uint64_t keel_length_##name
#define KEEL_PARAMETER_INOUT(kernel, type, name)     KEEL_PARAMETER_OUT(kernel, type, name)
#define KEEL_PARAMETER_CONSTANTS(kernel, type, name) , const type name
#define KEEL_PARAMETER_LOCAL(kernel, type, name, n)  , KEEL_AT_LOCAL_ type *restrict name

// Numbers of the bindings.
#define KEEL_NUMBER_IN(kernel, type, name)    keel_number_##kernel##_##name,
#define KEEL_NUMBER_OUT(kernel, type, name)   KEEL_NUMBER_IN(kernel, type, name)
#define KEEL_NUMBER_INOUT(kernel, type, name) KEEL_NUMBER_IN(kernel, type, name)
#define KEEL_NUMBER_CONSTANTS(kernel, type, name)
#define KEEL_NUMBER_LOCAL(kernel, type, name, n)

// Texts of the record.
#define KEEL_TEXT_IN(kernel, type, name)    "r" #name "\0"
#define KEEL_TEXT_OUT(kernel, type, name)   "w" #name "\0"
#define KEEL_TEXT_INOUT(kernel, type, name) "b" #name "\0"
#define KEEL_TEXT_CONSTANTS(kernel, type, name)
#define KEEL_TEXT_LOCAL(kernel, type, name, n)

#define KEEL_SIZEOF_IN(kernel, type, name)
#define KEEL_SIZEOF_OUT(kernel, type, name)
#define KEEL_SIZEOF_INOUT(kernel, type, name)
#define KEEL_SIZEOF_CONSTANTS(kernel, type, name) +sizeof(type)
#define KEEL_SIZEOF_LOCAL(kernel, type, name, n)

#define KEEL_FIELD_IN(kernel, type, name)
#define KEEL_FIELD_OUT(kernel, type, name)
#define KEEL_FIELD_INOUT(kernel, type, name)
#define KEEL_FIELD_CONSTANTS(kernel, type, name)
#define KEEL_FIELD_LOCAL(kernel, type, name, n) __attribute__((aligned(16))) type name[n];

// What is no parameter: said once.
#define KEEL_FIELD_WRONG(it)                                                                       \
    _Static_assert(0, #it " is no parameter of a kernel: these are KEEL_IN, KEEL_OUT, "            \
                          "KEEL_INOUT, KEEL_CONSTANTS and KEEL_LOCAL");
#define KEEL_PARAMETER_WRONG(it)
#define KEEL_NUMBER_WRONG(it)
#define KEEL_TEXT_WRONG(it)
#define KEEL_SIZEOF_WRONG(it)
#define KEEL_PASS_WRONG(it)
#define KEEL_ACCESS_WRONG(it)
#define KEEL_NAME_WRONG(it)
#define KEEL_BLOCK_CONSTANTS_WRONG(it)
#define KEEL_LOOK_WRONG(it)

#define KEEL_SHAPE_(kernel, x, y, z)                                                               \
    KEEL_INLINE_ void keel_once_##kernel(void) {}                                                  \
    struct keel_shape_##kernel {                                                                   \
        char size_0[x], size_1[y], size_2[z], items[(x) * (y) * (z)];                              \
    };                                                                                             \
    typedef char keel_ragged_##kernel[(x) * (y) * (z) % 64 ? 2 : 1];                               \
    _Static_assert((x) * (y) * (z) <= 1024, "a group has at most 1024 items");

// Parameters of the body that are there for their types alone, and what is passed for them. Outside
// of kernels keel_ragged is a function: a helper function does not know who calls it.
#define KEEL_SHAPED_(kernel)                                                                       \
    KEEL_UNUSED_ const struct keel_shape_##kernel *keel_shape,                                     \
        KEEL_UNUSED_ keel_ragged_##kernel *keel_ragged
#define KEEL_NO_SHAPE_ NULL, NULL
void keel_ragged(void);

#define KEEL_RECORD_(kernel, abi_, x, y, z, constants_, bindings_, local_, arguments_, texts)      \
    static const struct {                                                                          \
        keel_record_t head;                                                                        \
        char text[(sizeof(texts) + 2) / 4 * 4];                                                    \
    } keel_record_##kernel KEEL_LIST_("keel_kernels", 4) = {                                       \
        {KEEL_RECORD_VERSION_,                                                                     \
         sizeof keel_record_##kernel,                                                              \
         abi_,                                                                                     \
         {x, y, z},                                                                                \
         constants_,                                                                               \
         bindings_,                                                                                \
         local_,                                                                                   \
         arguments_},                                                                              \
        texts,                                                                                     \
    };

#define KEEL_KERNEL_(...) KEEL_KERNEL2_(__VA_ARGS__)
#define KEEL_KERNEL2_(kernel, x, y, z, ...)                                                        \
    KEEL_SHAPE_(kernel, x, y, z)                                                                   \
    enum { KEEL_EACH_(KEEL_NUMBER_, kernel, __VA_ARGS__) keel_bindings_##kernel };                 \
    struct keel_locals_##kernel {                                                                  \
        KEEL_EACH_(KEEL_FIELD_, kernel, __VA_ARGS__)                                               \
    };                                                                                             \
    KEEL_INLINE_ void keel_body_##kernel(KEEL_SHAPED_(kernel),                                     \
                                         KEEL_UNUSED_ const keel_place_t keel_place KEEL_EACH_(    \
                                             KEEL_PARAMETER_, kernel, __VA_ARGS__));               \
    KEEL_ENTRIES_(kernel, x, y, z, __VA_ARGS__)                                                    \
    KEEL_RECORD_(kernel, KEEL_ABI_, x, y, z, 0 KEEL_EACH_(KEEL_SIZEOF_, kernel, __VA_ARGS__),      \
                 keel_bindings_##kernel, sizeof(struct keel_locals_##kernel),                      \
                 KEEL_ARGUMENTS_(kernel),                                                          \
                 #kernel "\0" KEEL_EACH_(KEEL_TEXT_, kernel, __VA_ARGS__))                         \
    void keel_body_##kernel(KEEL_SHAPED_(kernel),                                                  \
                            KEEL_UNUSED_ const keel_place_t keel_place KEEL_EACH_(                 \
                                KEEL_PARAMETER_, kernel, __VA_ARGS__))

#define KEEL_RAW_KERNEL_(...) KEEL_RAW_KERNEL2_(__VA_ARGS__)
#define KEEL_RAW_KERNEL2_(kernel, x, y, z, type, arguments)                                        \
    KEEL_SHAPE_(kernel, x, y, z)                                                                   \
    KEEL_INLINE_ void keel_body_##kernel(                                                          \
        KEEL_SHAPED_(kernel), KEEL_UNUSED_ const keel_place_t keel_place, const type arguments);   \
    KEEL_RAW_ENTRY_(kernel, x, y, z, type)                                                         \
    KEEL_RECORD_(kernel, 0, x, y, z, sizeof(type), 0, 0, sizeof(type), #kernel "\0")               \
    void keel_body_##kernel(KEEL_SHAPED_(kernel), KEEL_UNUSED_ const keel_place_t keel_place,      \
                            const type arguments)

#if KEEL_HOST
#include <keel/kernel/host.h>
#else
#include <keel/kernel/gpu.h>
#endif
#if !KEEL_HOST || defined(KEEL_ENTRY_HEADER)
#include <keel/kernel/block.h>
#endif

#endif
