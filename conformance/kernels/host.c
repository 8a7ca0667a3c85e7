// SPDX-License-Identifier: Apache-2.0
// The kernels of the conformance tests that only host code can be (<keel/host_kernel.h>): they
// fail, wait for each other, or take the size of their groups and of their memory from the
// dispatch.
#include <keel/host_kernel.h>
#include <time.h>

typedef const keel_host_dispatch_t dispatch_t;
typedef const keel_host_group_t group_t;

static uint32_t linear_id(dispatch_t *d, group_t *g)
{
    return (g->id[2] * d->groups[1] + g->id[1]) * d->groups[0] + g->id[0];
}

static uint32_t constant(dispatch_t *d, unsigned index)
{
    return ((const uint32_t *)d->constants)[index];
}

static uint32_t add_atomically(uint32_t *word, uint32_t value)
{
    return __atomic_fetch_add(word, value, __ATOMIC_RELAXED);
}

// out[i] = |in[i]|, one element per work-item.
static int absolute(dispatch_t *d, group_t *g)
{
    const int32_t *in = d->bindings[0];
    int32_t *out = d->bindings[1];
    uint64_t count = d->lengths[0] / 4 < d->lengths[1] / 4 ? d->lengths[0] / 4 : d->lengths[1] / 4;
    uint64_t first = (uint64_t)g->id[0] * d->group_size[0];
    for (uint64_t i = first; i < first + d->group_size[0] && i < count; i++) {
        out[i] = in[i] < 0 ? -in[i] : in[i];
    }
    return 0;
}

// Writes what a kernel is told about its dispatch: groups, group size, sizes of everything.
static int describe(dispatch_t *d, group_t *g)
{
    uint32_t *out = d->bindings[0];
    if (linear_id(d, g) != 0) return 0;
    for (int i = 0; i < 3; i++) {
        out[i] = d->groups[i];
        out[3 + i] = d->group_size[i];
    }
    out[6] = d->binding_count;
    out[7] = d->constant_size;
    out[8] = d->local_size;
    out[9] = (uint32_t)d->lengths[0];
    return 0;
}

static uint64_t now_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

// Waits until so many groups are inside at the same time: returns 1 if they never are.
static int meet(dispatch_t *d, group_t *g)
{
    uint32_t *arrived = d->bindings[0];
    uint64_t end = now_ns() + UINT64_C(10000000000); // a worker may be long in coming
    add_atomically(arrived, 1);
    while (__atomic_load_n(arrived, __ATOMIC_ACQUIRE) < constant(d, 0)) {
        if (now_ns() > end) return 1;
    }
    return 0;
}

// Fails with a number of the caller's in one of its groups; 0 is no failure. Counts the others.
static int fail(dispatch_t *d, group_t *g)
{
    if (linear_id(d, g) == constant(d, 1)) return (int)constant(d, 0);
    add_atomically(d->bindings[0], 1);
    return 0;
}

// Fails if the word is not what it should be.
static int expect(dispatch_t *d, group_t *g)
{
    const uint32_t *word = d->bindings[0];
    return *word == constant(d, 0) ? 0 : 1;
}

// Fills all of its local memory with something of its own, looks whether it stays, and writes the
// number of bytes that did, or 1 where the memory is not aligned.
static int local(dispatch_t *d, group_t *g)
{
    uint32_t *out = d->bindings[0];
    volatile uint8_t *memory = g->local;
    uint32_t id = linear_id(d, g), good = 0;
    for (uint32_t i = 0; i < d->local_size; i++) memory[i] = (uint8_t)(id + i);
    for (int pause = 0; pause < 200; pause++) __asm__ volatile("" ::: "memory");
    for (uint32_t i = 0; i < d->local_size; i++) good += memory[i] == (uint8_t)(id + i);
    out[id] = (uintptr_t)g->local % 64 ? 1 : good;
    return 0;
}

// Which worker ran which group.
static int workers(dispatch_t *d, group_t *g)
{
    uint32_t *out = d->bindings[0];
    out[linear_id(d, g)] = g->worker;
    return 0;
}

#define R  KEEL_HOST_READ
#define W  KEEL_HOST_WRITE
#define RW (R | W)

static const uint32_t write_1[] = {W};
static const uint32_t read_1[] = {R};
static const uint32_t both_1[] = {RW};
static const uint32_t read_write[] = {R, W};

static const char *const in_out[] = {"in", "out"};

#define ONE {1, 1, 1}

static const keel_host_entry_t entries[] = {
    {.name = "resizable_abs",
     .kernel = absolute,
     .group_size = {16, 1, 1},
     .bindings = 2,
     .access = read_write,
     .names = in_out},
    {.name = "resizable_describe",
     .kernel = describe,
     .group_size = {4, 3, 2},
     .constants = 12,
     .bindings = 1,
     .local_memory = 128,
     .access = write_1},
    {.name = "meet",
     .kernel = meet,
     .group_size = ONE,
     .constants = 4,
     .bindings = 1,
     .access = both_1},
    {.name = "fail",
     .kernel = fail,
     .group_size = ONE,
     .constants = 8,
     .bindings = 1,
     .access = both_1},
    {.name = "expect",
     .kernel = expect,
     .group_size = ONE,
     .constants = 4,
     .bindings = 1,
     .access = read_1},
    {.name = "resizable_local",
     .kernel = local,
     .group_size = ONE,
     .bindings = 1,
     .local_memory = 1024,
     .access = write_1},
    {.name = "workers", .kernel = workers, .group_size = ONE, .bindings = 1, .access = write_1},
};

KEEL_HOST_LIBRARY(entries, NULL, 0)
