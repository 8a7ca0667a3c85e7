// SPDX-License-Identifier: Apache-2.0
// The entry points of kernels in the language of <keel/kernel.h>, for images of this device: the
// KEEL_ENTRY_HEADER of their compilation. Blocks of arguments are those of GPUs.
#ifndef SIM_CUDA_ENTRIES_H_
#define SIM_CUDA_ENTRIES_H_

#include "cuda/image.h"

#define KEEL_CUDA_ENTRY_(kernel, fn, text, x, y, z, local, block_)                                 \
    static const cuda_host_param_t keel_params_##fn[] = {{0, sizeof(block_)}};                     \
    static const cuda_host_entry_t keel_entry_##fn KEEL_LIST_("keel_entries", 8) = {               \
        text, fn, {x, y, z}, 0, local, 0, sizeof(block_), 1, keel_params_##fn};

#define KEEL_ENTRIES_(kernel, x, y, z, ...)                                                        \
    KEEL_BLOCKS_(kernel, __VA_ARGS__)                                                              \
    static int keel_cuda_##kernel(const void *keel_arguments, const cuda_host_block_t *keel_group) \
    {                                                                                              \
        const struct keel_block_##kernel *keel_block = keel_arguments;                             \
        struct keel_locals_##kernel *keel_locals __attribute__((unused)) = keel_group->shared;     \
        keel_body_##kernel(                                                                        \
            KEEL_NO_SHAPE_, (keel_place_t) {                                                       \
                {keel_group->block[0], keel_group->block[1], keel_group->block[2]},                \
                {                                                                                  \
                    keel_block->groups[0], keel_block->groups[1], keel_block->groups[2]            \
                }                                                                                  \
            } KEEL_EACH_(KEEL_PASS_, kernel, __VA_ARGS__));                                        \
        return 0;                                                                                  \
    }                                                                                              \
    static int keel_cuda_walk_##kernel(const void *keel_arguments,                                 \
                                       const cuda_host_block_t *keel_group)                        \
    {                                                                                              \
        const struct keel_walk_##kernel *keel_block = keel_arguments;                              \
        struct keel_locals_##kernel *keel_locals __attribute__((unused)) = keel_group->shared;     \
        KEEL_WALK_(kernel, keel_group->block[0], keel_group->grid[0], __VA_ARGS__)                 \
        return 0;                                                                                  \
    }                                                                                              \
    KEEL_CUDA_ENTRY_(kernel, keel_cuda_##kernel, #kernel, x, y, z,                                 \
                     sizeof(struct keel_locals_##kernel), struct keel_block_##kernel)              \
    KEEL_CUDA_ENTRY_(kernel, keel_cuda_walk_##kernel, #kernel "$walk", x, y, z,                    \
                     sizeof(struct keel_locals_##kernel), struct keel_walk_##kernel)

#define KEEL_RAW_ENTRY_(kernel, x, y, z, type)                                                     \
    static int keel_cuda_##kernel(const void *keel_arguments, const cuda_host_block_t *keel_group) \
    {                                                                                              \
        keel_body_##kernel(                                                                        \
            KEEL_NO_SHAPE_,                                                                        \
            (keel_place_t){{keel_group->block[0], keel_group->block[1], keel_group->block[2]},     \
                           {keel_group->grid[0], keel_group->grid[1], keel_group->grid[2]}},       \
            *(const type *)keel_arguments);                                                        \
        return 0;                                                                                  \
    }                                                                                              \
    KEEL_CUDA_ENTRY_(kernel, keel_cuda_##kernel, #kernel, x, y, z, 0, type)

KEEL_BOUND_(const cuda_host_entry_t __start_keel_entries);
KEEL_BOUND_(const cuda_host_entry_t __stop_keel_entries);
KEEL_BOUND_(const cuda_host_global_t __start_keel_globals);
KEEL_BOUND_(const cuda_host_global_t __stop_keel_globals);

extern __attribute__((visibility("default"))) cuda_host_image_t cuda_host_image;
cuda_host_image_t cuda_host_image KEEL_LIST_("keel_library", 8) = {
    CUDA_HOST_ABI, 0, __start_keel_entries, 0, 0, __start_keel_globals};

__attribute__((constructor)) static void cuda_host_image_count(void)
{
    cuda_host_image.entry_count = (uint32_t)(__stop_keel_entries - __start_keel_entries);
    cuda_host_image.global_count = (uint32_t)(__stop_keel_globals - __start_keel_globals);
}

#endif
