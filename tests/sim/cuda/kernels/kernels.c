// SPDX-License-Identifier: Apache-2.0
// Kernels for the software CUDA driver, and the table by which it finds them.
#include "sim/cuda/image.h"

#include <string.h>
#include <time.h>

typedef const cuda_host_block_t block_t;

static void nap(void)
{
    nanosleep(&(struct timespec){0, 50000}, NULL);
}

static int empty(const void *params, block_t *b)
{
    return 0;
}

// x[i] = x[i] * factor + term, over all threads of all blocks.
typedef struct scale_t {
    uint32_t *x;
    uint64_t factor, term;
} scale_t;

static int scale(const void *params, block_t *b)
{
    const scale_t *p = params;
    for (uint32_t i = 0; i < b->threads[0]; i++) {
        uint32_t *x = &p->x[b->block[0] * b->threads[0] + i];
        *x = *x * (uint32_t)p->factor + (uint32_t)p->term;
    }
    return 0;
}

// Appends a value to a list whose first word counts.
typedef struct append_t {
    uint32_t *list;
    uint64_t value;
} append_t;

static int append(const void *params, block_t *b)
{
    const append_t *p = params;
    uint32_t index = __atomic_add_fetch(&p->list[0], 1, __ATOMIC_RELAXED);
    p->list[index] = (uint32_t)p->value + b->block[0];
    return 0;
}

// Stands until a word is not 0.
static int wait(const void *params, block_t *b)
{
    uint32_t *word = *(uint32_t *const *)params;
    while (!__atomic_load_n(word, __ATOMIC_ACQUIRE)) nap();
    return 0;
}

// Stores a value at an address, whatever is there.
typedef struct poke_t {
    uint32_t *address;
    uint64_t value;
} poke_t;

static int poke(const void *params, block_t *b)
{
    const poke_t *p = params;
    __atomic_store_n(p->address, (uint32_t)p->value, __ATOMIC_RELEASE);
    return 0;
}

static int trap(const void *params, block_t *b)
{
    return 7;
}

// out[block] = bytes of shared memory that keep what was written to them.
static int shared(const void *params, block_t *b)
{
    uint32_t *out = *(uint32_t *const *)params;
    volatile uint8_t *memory = b->shared;
    uint32_t good = 0;
    for (uint32_t i = 0; i < b->shared_size; i++) memory[i] = (uint8_t)(i + b->block[0]);
    for (uint32_t i = 0; i < b->shared_size; i++) good += memory[i] == (uint8_t)(i + b->block[0]);
    out[b->block[0]] = (uintptr_t)b->shared % 128 ? 0 : good;
    return 0;
}

static int overrun(const void *params, block_t *b)
{
    ((volatile uint8_t *)b->shared)[b->shared_size] = 1;
    return 0;
}

static uint32_t variable[4] = {1, 2, 3, 4};

static int use_variable(const void *params, block_t *b)
{
    uint32_t *out = *(uint32_t *const *)params;
    for (int i = 0; i < 4; i++) out[i] = variable[i]++;
    return 0;
}

__attribute__((visibility("default"))) extern const cuda_host_services_t *cuda_host_services;
const cuda_host_services_t *cuda_host_services;

// Counts a word down and sets a condition to what is left.
typedef struct countdown_t {
    uint32_t *word;
    uint64_t handle;
} countdown_t;

static int countdown(const void *params, block_t *b)
{
    const countdown_t *p = params;
    cuda_host_services->set_conditional(p->handle, --*p->word);
    return 0;
}

typedef struct choose_t {
    uint64_t handle, value;
} choose_t;

static int choose(const void *params, block_t *b)
{
    const choose_t *p = params;
    cuda_host_services->set_conditional(p->handle, (uint32_t)p->value);
    return 0;
}

// Gives another node of the graph a grid, or switches it off with 0 blocks.
typedef struct regrid_t {
    void *node;
    uint64_t blocks;
} regrid_t;

static int regrid(const void *params, block_t *b)
{
    const regrid_t *p = params;
    int error = cuda_host_services->node_set_enabled(p->node, p->blocks != 0);
    if (p->blocks && !error) {
        error = cuda_host_services->node_set_grid(p->node, (uint32_t)p->blocks, 1, 1);
    }
    return error;
}

static const cuda_host_param_t words[] = {{0, 8}, {8, 8}, {16, 8}};

#define ENTRY(function, count)                                                                     \
    {.name = #function,                                                                            \
     .kernel = function,                                                                           \
     .param_size = 8 * (count),                                                                    \
     .param_count = (count),                                                                       \
     .params = words}

static const cuda_host_entry_t entries[] = {
    ENTRY(empty, 0),
    ENTRY(scale, 3),
    ENTRY(append, 2),
    ENTRY(wait, 1),
    ENTRY(poke, 2),
    ENTRY(trap, 0),
    ENTRY(overrun, 0),
    ENTRY(use_variable, 1),
    ENTRY(countdown, 2),
    ENTRY(choose, 2),
    ENTRY(regrid, 2),
    {.name = "shared",
     .kernel = shared,
     .shared_size = 1024,
     .registers = 24,
     .param_size = 8,
     .param_count = 1,
     .params = words},
    {.name = "fixed", .kernel = empty, .threads = {8, 4, 1}},
    {.name = "small", .kernel = empty, .max_threads = 64},
};

static const cuda_host_global_t globals[] = {{"variable", variable, sizeof variable}};

__attribute__((visibility("default"))) extern const cuda_host_image_t cuda_host_image;
const cuda_host_image_t cuda_host_image = {
    .abi = CUDA_HOST_ABI,
    .entry_count = sizeof entries / sizeof *entries,
    .entries = entries,
    .global_count = 1,
    .globals = globals,
};
