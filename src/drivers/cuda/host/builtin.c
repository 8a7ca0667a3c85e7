// SPDX-License-Identifier: Apache-2.0
// The kernels of builtin.ptx for implementations of CUDA that run on the host (compute capability
// 0.0): a shared object that exports a table of entries, each called once per thread block.
#include <stddef.h>
#include <stdint.h>
#include <time.h>

typedef struct block_t {
    uint32_t block[3], grid[3], threads[3];
    uint32_t shared_size;
    void *shared;
} block_t;

typedef int (*kernel_fn)(const void *params, const block_t *block);

typedef struct param_t {
    uint32_t offset, size;
} param_t;

typedef struct entry_t {
    const char *name;
    kernel_fn kernel;
    uint32_t threads[3], max_threads, shared_size, registers, param_size, param_count;
    const param_t *params;
} entry_t;

typedef struct image_t {
    uint32_t abi, entry_count;
    const entry_t *entries;
    uint32_t global_count, reserved;
    const void *globals;
} image_t;

// What the host does in place of device functions; set when the image is loaded.
typedef struct services_t {
    void (*set_conditional)(uint64_t handle, uint32_t value);
    int (*node_set_grid)(void *node, uint32_t x, uint32_t y, uint32_t z);
    int (*node_set_enabled)(void *node, int enabled);
    int (*node_set_param)(void *node, size_t offset, const void *value, size_t size);
} services_t;

#define EXPORT __attribute__((visibility("default")))
EXPORT extern const services_t *cuda_host_services;
const services_t *cuda_host_services;

typedef struct counts_t {
    const uint32_t *counts;
    uint32_t *failed;
    uint64_t most;
    uint32_t number, most_x, most_y, most_z;
} counts_t;

typedef struct grid_t {
    counts_t counts;
    void *node;
} grid_t;

typedef struct fill_t {
    unsigned char *target;
    uint64_t length;
    uint32_t pattern, threads, unit, reserved;
} fill_t;

typedef struct copy_t {
    unsigned char *target;
    const unsigned char *source;
    uint64_t length;
    uint32_t threads, unit;
} copy_t;

typedef struct branch_t {
    const uint32_t *value;
    uint64_t condition;
    uint32_t *rounds, *failed;
    uint32_t match, differs, most, number, first, reserved;
} branch_t;

typedef struct rebind_t {
    void *node;
    const void *arguments;
    uint64_t size;
} rebind_t;

typedef struct rebinds_t {
    const rebind_t *table;
    uint64_t count;
} rebinds_t;

static int timestamp(const void *params, const block_t *block)
{
    uint64_t *target = *(uint64_t *const *)params;
    struct timespec now;
    (void)block;
    clock_gettime(CLOCK_MONOTONIC, &now);
    *target = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
    return 0;
}

// What one block does: each of its threads takes units, `threads` of them apart.
#define UNITS(f, block, at)                                                                        \
    for (uint64_t item_ = 0; item_ < (block)->threads[0]; item_++)                                 \
        for (uint64_t at =                                                                         \
                 ((uint64_t)(block)->block[0] * (block)->threads[0] + item_) * (f)->unit;          \
             at < (f)->length; at += (uint64_t)(f)->threads * (f)->unit)

static int fill(const void *params, const block_t *block)
{
    const fill_t *f = params;
    UNITS(f, block, at)
    if (f->unit == 16)
        for (int i = 0; i < 4; i++) ((uint32_t *)(void *)(f->target + at))[i] = f->pattern;
    else
        f->target[at] = (unsigned char)(f->pattern >> at % 4 * 8);
    return 0;
}

static int copy(const void *params, const block_t *block)
{
    const copy_t *c = params;
    UNITS(c, block, at)
    for (uint64_t i = at; i < at + c->unit; i++) c->target[i] = c->source[i];
    return 0;
}

// Whether the grid is one to run.
static int counts_look(const counts_t *c)
{
    uint32_t x = c->counts[0], y = c->counts[1], z = c->counts[2];
    uint64_t plane = (uint64_t)x * y;
    if (!plane || !z) return 0;
    if (plane <= c->most / z && x <= c->most_x && y <= c->most_y && z <= c->most_z) return 1;
    if (!__sync_bool_compare_and_swap(c->failed, 0, c->number)) return 0;
    c->failed[1] = x;
    c->failed[2] = y;
    c->failed[3] = z;
    return 0;
}

static int counts(const void *params, const block_t *block)
{
    (void)block;
    counts_look(params);
    return 0;
}

static int grid(const void *params, const block_t *block)
{
    const grid_t *g = params;
    const uint32_t *n = g->counts.counts;
    int runs = counts_look(&g->counts);
    (void)block;
    cuda_host_services->node_set_enabled(g->node, runs);
    if (runs) cuda_host_services->node_set_grid(g->node, n[0], n[1], n[2]);
    return 0;
}

static int branch(const void *params, const block_t *block)
{
    const branch_t *b = params;
    uint32_t holds = (*b->value == b->match) ^ b->differs;
    (void)block;
    if (b->rounds) {
        uint32_t count = b->first ? 0 : *b->rounds;
        if (holds && count >= b->most) {
            holds = 0;
            if (__sync_bool_compare_and_swap(b->failed, 0, b->number)) b->failed[1] = b->most;
        }
        *b->rounds = count + holds;
    }
    cuda_host_services->set_conditional(b->condition, holds);
    return 0;
}

static int rebind(const void *params, const block_t *block)
{
    const rebinds_t *r = params;
    uint64_t first = (uint64_t)block->block[0] * block->threads[0];
    int error = 0;
    for (uint64_t i = first; i < first + block->threads[0] && i < r->count && !error; i++) {
        const rebind_t *at = &r->table[i];
        error = cuda_host_services->node_set_param(at->node, 0, at->arguments, at->size);
    }
    return error;
}

static const param_t sizes[] = {
    {0, 8},
    {0, sizeof(fill_t)},
    {0, sizeof(counts_t)},
    {0, sizeof(grid_t)},
    {0, sizeof(branch_t)},
    {0, sizeof(copy_t)},
    {0, sizeof(rebinds_t)},
};

#define ENTRY(name_, kernel_, type, i)                                                             \
    {.name = name_,                                                                                \
     .kernel = kernel_,                                                                            \
     .registers = 16,                                                                              \
     .param_size = sizeof(type),                                                                   \
     .param_count = 1,                                                                             \
     .params = &sizes[i]}

static const entry_t entries[] = {
    ENTRY("keel_timestamp", timestamp, uint64_t, 0), ENTRY("keel_fill", fill, fill_t, 1),
    ENTRY("keel_counts", counts, counts_t, 2),       ENTRY("keel_grid", grid, grid_t, 3),
    ENTRY("keel_branch", branch, branch_t, 4),       ENTRY("keel_copy", copy, copy_t, 5),
    ENTRY("keel_rebind", rebind, rebinds_t, 6),
};

EXPORT extern const image_t cuda_host_image;
const image_t cuda_host_image = {
    .abi = 1,
    .entry_count = sizeof entries / sizeof entries[0],
    .entries = entries,
};
