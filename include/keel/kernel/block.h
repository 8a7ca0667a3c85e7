// SPDX-License-Identifier: Apache-2.0
// Part of <keel/kernel.h>: entry points that take one block of arguments, as docs/kernels.md lays
// it down. Each kernel has two: NAME, with bindings in the block and the grid as it was launched,
// and NAME$walk, whose groups walk by strides over a grid that may be read from memory.
#ifndef KEEL_KERNEL_BLOCK_H_
#define KEEL_KERNEL_BLOCK_H_

#define KEEL_ABI_               3
#define KEEL_ARGUMENTS_(kernel) sizeof(struct keel_block_##kernel)

#define KEEL_BLOCK_CONSTANTS_IN(kernel, type, name)
#define KEEL_BLOCK_CONSTANTS_OUT(kernel, type, name)
#define KEEL_BLOCK_CONSTANTS_INOUT(kernel, type, name)
#define KEEL_BLOCK_CONSTANTS_CONSTANTS(kernel, type, name) type constants;
#define KEEL_BLOCK_CONSTANTS_LOCAL(kernel, type, name, n)

#define KEEL_BLOCKS_(kernel, ...)                                                                  \
    struct keel_block_##kernel {                                                                   \
        uint32_t groups[3];                                                                        \
        uint32_t zero;                                                                             \
        uint64_t addresses[keel_bindings_##kernel];                                                \
        uint64_t lengths[keel_bindings_##kernel];                                                  \
        KEEL_EACH_(KEEL_BLOCK_CONSTANTS_, kernel, __VA_ARGS__)                                     \
    } __attribute__((aligned(8)));                                                                 \
    struct keel_walk_##kernel {                                                                    \
        uint32_t groups[3];                                                                        \
        uint32_t zero;                                                                             \
        uint64_t counts;                                                                           \
        uint64_t table;                                                                            \
        uint64_t addresses[keel_bindings_##kernel];                                                \
        uint64_t lengths[keel_bindings_##kernel];                                                  \
        KEEL_EACH_(KEEL_BLOCK_CONSTANTS_, kernel, __VA_ARGS__)                                     \
    } __attribute__((aligned(8)));

// The bodies' arguments out of *keel_block and *keel_locals.
#define KEEL_PASS_IN(kernel, type, name)        KEEL_PASS_BINDING_(kernel, type, name)
#define KEEL_PASS_OUT(kernel, type, name)       KEEL_PASS_BINDING_(kernel, type, name)
#define KEEL_PASS_INOUT(kernel, type, name)     KEEL_PASS_BINDING_(kernel, type, name)
#define KEEL_PASS_CONSTANTS(kernel, type, name) , keel_block->constants
#define KEEL_PASS_LOCAL(kernel, type, name, n)  , keel_locals->name
#define KEEL_PASS_BINDING_(kernel, type, name)                                                     \
    , (type *)(KEEL_AT_MEMORY_ type *)keel_block->addresses[keel_number_##kernel##_##name],        \
        keel_block->lengths[keel_number_##kernel##_##name]

// The same where the bindings may lie in a table.
#define KEEL_LOOK_IN(kernel, type, name)        KEEL_LOOK_BINDING_(kernel, type, name)
#define KEEL_LOOK_OUT(kernel, type, name)       KEEL_LOOK_BINDING_(kernel, type, name)
#define KEEL_LOOK_INOUT(kernel, type, name)     KEEL_LOOK_BINDING_(kernel, type, name)
#define KEEL_LOOK_CONSTANTS(kernel, type, name) , keel_block->constants
#define KEEL_LOOK_LOCAL(kernel, type, name, n)  , keel_locals->name
#define KEEL_LOOK_BINDING_(kernel, type, name)                                                     \
    ,                                                                                              \
        (type *)(KEEL_AT_MEMORY_ type *)keel_table_find(                                           \
            keel_block->table, keel_number_##kernel##_##name,                                      \
            keel_block->addresses[keel_number_##kernel##_##name]),                                 \
        keel_table_find(keel_block->table, keel_bindings_##kernel + keel_number_##kernel##_##name, \
                        keel_block->lengths[keel_number_##kernel##_##name])

KEEL_INLINE_ uint64_t keel_table_find(uint64_t table, uint32_t number, uint64_t given)
{
    return table ? ((const KEEL_AT_MEMORY_ uint64_t *)table)[number] : given;
}

// The grid of a walk.
KEEL_INLINE_ keel_place_t keel_walk_begin(uint64_t counts, const uint32_t groups[3])
{
    const KEEL_AT_MEMORY_ uint32_t *read = (const KEEL_AT_MEMORY_ uint32_t *)counts;
    if (!counts) return (keel_place_t){.count = {groups[0], groups[1], groups[2]}};
    return (keel_place_t){.count = {read[0], read[1], read[2]}};
}

KEEL_INLINE_ keel_place_t keel_walk_place(keel_place_t place, uint32_t number)
{
    uint32_t row = number / place.count[0];
    place.group[0] = number - row * place.count[0];
    place.group[2] = row / place.count[1];
    place.group[1] = row - place.group[2] * place.count[1];
    return place;
}

// How many groups there are; 0 if they are 2^32 or more, which no grid has.
KEEL_INLINE_ uint32_t keel_walk_total(keel_place_t place)
{
    uint64_t total = (uint64_t)place.count[0] * place.count[1];
    if (total >> 32) return 0;
    total *= place.count[2];
    return total >> 32 ? 0 : (uint32_t)total;
}

#define KEEL_WALK_(kernel, first, step, ...)                                                       \
    keel_place_t keel_grid = keel_walk_begin(keel_block->counts, keel_block->groups);              \
    uint32_t keel_total = keel_walk_total(keel_grid);                                              \
    for (uint64_t keel_number = first; keel_number < keel_total; keel_number += step) {            \
        keel_body_##kernel(KEEL_NO_SHAPE_, keel_walk_place(keel_grid, (uint32_t)keel_number)       \
                                               KEEL_EACH_(KEEL_LOOK_, kernel, __VA_ARGS__));       \
        keel_barrier_here();                                                                       \
    }

// Host code of another runtime: its header defines KEEL_ENTRIES_ and KEEL_RAW_ENTRY_ as below, of
// what stands above.
#if KEEL_HOST
#include KEEL_ENTRY_HEADER
#elif defined(KEEL_DESCRIBE) // records alone, without code

#define KEEL_ENTRIES_(kernel, x, y, z, ...) KEEL_BLOCKS_(kernel, __VA_ARGS__)
#define KEEL_RAW_ENTRY_(kernel, x, y, z, type)

#else

KEEL_INLINE_ keel_place_t keel_gpu_place(uint32_t x, uint32_t y, uint32_t z)
{
    return (keel_place_t){{KEEL_BLOCK_0_, KEEL_BLOCK_1_, KEEL_BLOCK_2_}, {x, y, z}};
}

// Code for NVIDIA's GPUs may have 48 KiB of workgroup memory of its own; beyond that, all of it is
// the launch's.
#if KEEL_NVPTX
extern KEEL_AT_LOCAL_ char keel_launched_memory[] __attribute__((aligned(16)));
#define KEEL_MEMORY_(kernel)                                                                       \
    (sizeof(struct keel_locals_##kernel) > 48 << 10                                                \
         ? (KEEL_AT_LOCAL_ struct keel_locals_##kernel *)keel_launched_memory                      \
         : &keel_memory_##kernel)
#else
#define KEEL_MEMORY_(kernel) (&keel_memory_##kernel)
#endif

// The grid: Metal may have read it from memory, where the block does not have it.
#if KEEL_MSL
#define KEEL_GRID_(axis) keel_msl_groups(axis)
#else
#define KEEL_GRID_(axis) keel_block->groups[axis]
#endif

// The entry points have names of their own in C, since a kernel may be called abs.
#define KEEL_ENTRIES_(kernel, x, y, z, ...)                                                        \
    KEEL_BLOCKS_(kernel, __VA_ARGS__)                                                              \
    static KEEL_AT_LOCAL_ struct keel_locals_##kernel keel_memory_##kernel                         \
        __attribute__((loader_uninitialized, unused));                                             \
    KEEL_ENTRY_ void keel_gpu_##kernel(const struct keel_block_##kernel) __asm__(#kernel);         \
    void keel_gpu_##kernel(const struct keel_block_##kernel keel_argument)                         \
    {                                                                                              \
        const struct keel_block_##kernel *keel_block = &keel_argument;                             \
        KEEL_AT_LOCAL_ struct keel_locals_##kernel *keel_locals __attribute__((unused)) =          \
            KEEL_MEMORY_(kernel);                                                                  \
        keel_body_##kernel(KEEL_NO_SHAPE_,                                                         \
                           keel_gpu_place(KEEL_GRID_(0), KEEL_GRID_(1), KEEL_GRID_(2))             \
                               KEEL_EACH_(KEEL_PASS_, kernel, __VA_ARGS__));                       \
    }                                                                                              \
    KEEL_WALK_ENTRY_(kernel, __VA_ARGS__)

// Metal reads counts from memory and takes any grid, so it needs no walks.
#if KEEL_MSL
#define KEEL_WALK_ENTRY_(kernel, ...)
#else
#define KEEL_WALK_ENTRY_(kernel, ...)                                                              \
    KEEL_ENTRY_ void keel_gpu_walk_##kernel(const struct keel_walk_##kernel) __asm__(#kernel       \
                                                                                     "$walk");     \
    void keel_gpu_walk_##kernel(const struct keel_walk_##kernel keel_argument)                     \
    {                                                                                              \
        const struct keel_walk_##kernel *keel_block = &keel_argument;                              \
        KEEL_AT_LOCAL_ struct keel_locals_##kernel *keel_locals __attribute__((unused)) =          \
            KEEL_MEMORY_(kernel);                                                                  \
        KEEL_WALK_(kernel, KEEL_BLOCK_0_, KEEL_BLOCKS_LAUNCHED_, __VA_ARGS__)                      \
    }
#endif

#define KEEL_RAW_ENTRY_(kernel, x, y, z, type)                                                     \
    KEEL_ENTRY_ void keel_gpu_##kernel(const type) __asm__(#kernel);                               \
    void keel_gpu_##kernel(const type keel_argument)                                               \
    {                                                                                              \
        keel_body_##kernel(KEEL_NO_SHAPE_, keel_gpu_place(1, 1, 1), keel_argument);                \
    }

#endif

#endif
