// SPDX-License-Identifier: Apache-2.0
// Kernels: those that the core needs, and those of tests.
#include <string.h>
#include <time.h>

#include "drivers/stream/vendor_inside.h"
#include "executable/container.h"

static void *pointer(uint64_t address)
{
    return (void *)(uintptr_t)address;
}

static uint64_t groups_of(const uint32_t groups[3])
{
    return (uint64_t)groups[0] * groups[1] * groups[2];
}

static void timestamp(const stream_launch_t *l)
{
    const builtin_timestamp_t *a = l->arguments;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    uint64_t ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
    uint64_t khz = kind_now()->clock_khz, ticks = khz ? ns / 1000 * khz / 1000 : ns;
    *(uint64_t *)pointer(a->target) = a->ticks ? ticks * a->ns / a->ticks : ticks;
}

static void fill(const stream_launch_t *l)
{
    const builtin_fill_t *a = l->arguments;
    unsigned char *target = pointer(a->target);
    for (uint64_t i = 0; i < a->length; i++) target[i] = (unsigned char)(a->pattern >> i % 4 * 8);
}

static void copy(const stream_launch_t *l)
{
    const builtin_copy_t *a = l->arguments;
    memcpy(pointer(a->target), pointer(a->source), a->length);
}

static bool counts_look(const builtin_counts_t *a)
{
    const uint32_t *n = pointer(a->counts);
    uint32_t *failed = pointer(a->failed);
    if (!groups_of(n)) return false;
    if (groups_of(n) <= a->most && n[0] <= a->most_x && n[1] <= a->most_y && n[2] <= a->most_z)
        return true;
    if (failed[0]) return false;
    failed[0] = a->number;
    memcpy(failed + 1, n, 3 * sizeof *n);
    return false;
}

static void counts(const stream_launch_t *l)
{
    counts_look(l->arguments);
}

static void grid(const stream_launch_t *l)
{
    const stream_grid_args_t *a = l->arguments;
    node_set_grid(a->node, counts_look(&a->counts), pointer(a->counts.counts));
}

static void branch(const stream_launch_t *l)
{
    const stream_branch_args_t *a = l->arguments;
    uint32_t *rounds = pointer(a->rounds), *failed = pointer(a->failed);
    bool holds = (*(uint32_t *)pointer(a->value) == a->match) != (a->differs != 0);
    if (rounds) {
        uint32_t count = a->first ? 0 : *rounds;
        if (holds && count >= a->most) {
            holds = false;
            if (!failed[0]) failed[1] = a->most;
            if (!failed[0]) failed[0] = a->number;
        }
        *rounds = count + holds;
    }
    *(uint32_t *)pointer(a->condition) = holds;
}

static void rebind(const stream_launch_t *l)
{
    const stream_rebind_args_t *a = l->arguments;
    const stream_rebind_t *table = pointer(a->table);
    for (uint64_t i = 0; i < a->count; i++)
        node_set_arguments(table[i].node, table[i].arguments, table[i].size);
}

// The blocks of docs/kernels.md, with one binding and a constant.
typedef struct add_t {
    uint32_t groups[4];
    uint64_t target, length;
    uint32_t k;
} add_t;

typedef struct add_walk_t {
    uint32_t groups[4];
    uint64_t counts, table;
    uint64_t target, length;
    uint32_t k;
} add_walk_t;

typedef struct raw_add_t {
    uint64_t target;
    uint32_t k;
} raw_add_t;

static void add_all(uint64_t target, uint64_t groups, uint32_t k)
{
    *(uint32_t *)pointer(target) += (uint32_t)groups * k;
}

static void add(const stream_launch_t *l)
{
    const add_t *a = l->arguments;
    add_all(a->target, groups_of(l->groups), a->k);
}

static void add_walk(const stream_launch_t *l)
{
    const add_walk_t *a = l->arguments;
    const uint32_t *n = a->counts ? pointer(a->counts) : a->groups;
    uint64_t groups = (uint64_t)n[0] * n[1];
    if (groups && n[2] && groups <= UINT32_MAX / n[2]) add_all(a->target, groups * n[2], a->k);
}

static void raw_add(const stream_launch_t *l)
{
    const raw_add_t *a = l->arguments;
    add_all(a->target, groups_of(l->groups), a->k);
}

const char *const kernel_builtins[STREAM_BUILTINS] = {
    [STREAM_TIMESTAMP] = "timestamp", [STREAM_FILL] = "fill",     [STREAM_COUNTS] = "counts",
    [STREAM_GRID] = "grid",           [STREAM_BRANCH] = "branch", [STREAM_COPY] = "copy",
    [STREAM_REBIND] = "rebind",
};

const kernel_t *kernel_find(const char *name)
{
    static const kernel_t kernels[] = {
        {"timestamp", timestamp, sizeof(builtin_timestamp_t)},
        {"fill", fill, sizeof(builtin_fill_t)},
        {"counts", counts, sizeof(builtin_counts_t)},
        {"grid", grid, sizeof(stream_grid_args_t)},
        {"branch", branch, sizeof(stream_branch_args_t)},
        {"copy", copy, sizeof(builtin_copy_t)},
        {"rebind", rebind, sizeof(stream_rebind_args_t)},
        {"add", add, sizeof(add_t)},
        {"add$walk", add_walk, sizeof(add_walk_t)},
        {"raw_add", raw_add, sizeof(raw_add_t)},
    };
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++)
        if (!strcmp(kernels[i].name, name)) return &kernels[i];
    return NULL;
}

keel_status_t vendor_image(void **bytes, size_t *size)
{
    static const keel_binding_info_t target = {"target", KEEL_ACCESS_READ | KEEL_ACCESS_WRITE};
    static const keel_image_entry_t entries[] = {
        {.info = {.name = "add", .group_size = {1, 1, 1}, .constants = 4, .bindings = 1},
         .bindings = &target,
         .abi = KEEL_ABI_DIRECT},
        {.info = {.name = "raw_add", .group_size = {1, 1, 1}, .constants = sizeof(raw_add_t)},
         .abi = KEEL_ABI_RAW,
         .arguments = sizeof(raw_add_t)},
    };
    container_input_t image = {KEEL_IMAGE_SPIRV, "fake", "kernels", 8, entries, 2};
    return container_write(&(container_options_t){0}, &image, 1, bytes, size);
}
