// SPDX-License-Identifier: Apache-2.0
// The kernels of card.ptx once more, for sim/cuda.
#include "sim/cuda/image.h"

#include <time.h>

typedef const cuda_host_block_t block_t;
#define EXPORTED __attribute__((visibility("default"))) extern

EXPORTED const cuda_host_services_t *cuda_host_services;
const cuda_host_services_t *cuda_host_services;

static uint32_t *word_at(uint64_t address)
{
    return (uint32_t *)(uintptr_t)address;
}

static int empty(const void *params, block_t *b)
{
    return 0;
}

static int gate(const void *params, block_t *b)
{
    const uint64_t *p = params;
    while (!__atomic_load_n(word_at(p[0]), __ATOMIC_ACQUIRE))
        nanosleep(&(struct timespec){0, 50000}, NULL);
    return 0;
}

static int poke(const void *params, block_t *b)
{
    const uint64_t *p = params;
    __atomic_store_n(word_at(p[0]), (uint32_t)p[1], __ATOMIC_RELEASE);
    return 0;
}

static int append(const void *params, block_t *b)
{
    const uint64_t *p = params;
    uint32_t *list = word_at(p[0]);
    uint32_t index = __atomic_add_fetch(list, 1, __ATOMIC_RELAXED);
    __atomic_store_n(&list[index], (uint32_t)p[1] + b->block[0], __ATOMIC_RELEASE);
    return 0;
}

static int stamp(const void *params, block_t *b)
{
    const uint64_t *p = params;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    *(uint64_t *)(uintptr_t)p[0] = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
    return 0;
}

static int choose(const void *params, block_t *b)
{
    const uint64_t *p = params;
    cuda_host_services->set_conditional(p[0], (uint32_t)p[1]);
    return 0;
}

static int countdown(const void *params, block_t *b)
{
    const uint64_t *p = params;
    cuda_host_services->set_conditional(p[1], --*word_at(p[0]));
    return 0;
}

static int regrid(const void *params, block_t *b)
{
    const uint64_t *p = params;
    return cuda_host_services->node_set_grid((void *)(uintptr_t)p[0], (uint32_t)p[1], 1, 1);
}

static int reparam(const void *params, block_t *b)
{
    const uint64_t *p = params;
    return cuda_host_services->node_set_param((void *)(uintptr_t)p[0], (size_t)p[2],
                                              (const void *)(uintptr_t)p[1], 8);
}

static uint32_t variable[3] = {5, 6, 7};

static const cuda_host_param_t words[] = {{0, 8}, {8, 8}, {16, 8}};
static const cuda_host_param_t mixed[] = {{0, 4}, {8, 8}, {16, 2}};

#define ENTRY(function, count)                                                                     \
    {.name = #function,                                                                            \
     .kernel = function,                                                                           \
     .param_size = 8 * (count),                                                                    \
     .param_count = (count),                                                                       \
     .params = words}

static const cuda_host_entry_t entries[] = {
    ENTRY(empty, 0),
    ENTRY(gate, 1),
    ENTRY(poke, 2),
    ENTRY(append, 2),
    ENTRY(stamp, 1),
    ENTRY(choose, 2),
    ENTRY(countdown, 2),
    ENTRY(regrid, 2),
    ENTRY(reparam, 3),
    {.name = "mixed", .kernel = empty, .param_size = 18, .param_count = 3, .params = mixed},
};

static const cuda_host_global_t globals[] = {{"variable", variable, sizeof variable}};

EXPORTED const cuda_host_image_t cuda_host_image;
const cuda_host_image_t cuda_host_image = {
    .abi = CUDA_HOST_ABI,
    .entry_count = sizeof entries / sizeof *entries,
    .entries = entries,
    .global_count = 1,
    .globals = globals,
};
