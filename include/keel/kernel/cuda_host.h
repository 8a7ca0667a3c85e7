// SPDX-License-Identifier: Apache-2.0
// Part of <keel/kernel.h>: entry points for implementations of CUDA that run on the host, the
// target nvptx:sm_0. The image is a shared object that exports cuda_host_image; blocks of arguments
// are those of the GPUs.
#ifndef KEEL_KERNEL_CUDA_HOST_H_
#define KEEL_KERNEL_CUDA_HOST_H_

typedef struct cuda_host_block_t {
    uint32_t block[3], grid[3], threads[3];
    uint32_t shared_size;
    void *shared;
} cuda_host_block_t;

typedef struct cuda_host_param_t {
    uint32_t offset, size;
} cuda_host_param_t;

typedef struct cuda_host_entry_t {
    const char *name;
    int (*kernel)(const void *arguments, const cuda_host_block_t *block);
    uint32_t threads[3], max_threads;
    uint32_t shared_size, registers;
    uint32_t param_size, param_count;
    const cuda_host_param_t *params;
} cuda_host_entry_t;

typedef struct cuda_host_image_t {
    uint32_t abi, entry_count;
    const cuda_host_entry_t *entries;
    uint32_t global_count, reserved;
    const keel_host_global_t *globals;
} cuda_host_image_t;

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
            NULL, (keel_place_t) {                                                                 \
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
            NULL,                                                                                  \
            (keel_place_t){{keel_group->block[0], keel_group->block[1], keel_group->block[2]},     \
                           {keel_group->grid[0], keel_group->grid[1], keel_group->grid[2]}},       \
            *(const type *)keel_arguments);                                                        \
        return 0;                                                                                  \
    }                                                                                              \
    KEEL_CUDA_ENTRY_(kernel, keel_cuda_##kernel, #kernel, x, y, z, 0, type)

KEEL_BOUND_(const cuda_host_entry_t __start_keel_entries);
KEEL_BOUND_(const cuda_host_entry_t __stop_keel_entries);
KEEL_BOUND_(const keel_host_global_t __start_keel_globals);
KEEL_BOUND_(const keel_host_global_t __stop_keel_globals);

extern __attribute__((visibility("default"))) cuda_host_image_t cuda_host_image;
cuda_host_image_t cuda_host_image KEEL_LIST_("keel_library", 8) = {1, 0, __start_keel_entries,
                                                                   0, 0, __start_keel_globals};

__attribute__((constructor)) static void cuda_host_image_count(void)
{
    cuda_host_image.entry_count = (uint32_t)(__stop_keel_entries - __start_keel_entries);
    cuda_host_image.global_count = (uint32_t)(__stop_keel_globals - __start_keel_globals);
}

#endif
