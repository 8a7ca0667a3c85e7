// SPDX-License-Identifier: Apache-2.0
// The kernels of the conformance tests for devices that run host code (<keel/host_kernel.h>). Each
// takes its sizes from the lengths of its bindings.
#include <keel/host_kernel.h>
#include <time.h>

typedef const keel_host_dispatch_t dispatch_t;
typedef const keel_host_group_t group_t;

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

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

static int empty(dispatch_t *d, group_t *g)
{
    return 0;
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

// c[i] = a[i] + b[i].
static int add(dispatch_t *d, group_t *g)
{
    const uint32_t *a = d->bindings[0], *b = d->bindings[1];
    uint32_t *c = d->bindings[2];
    uint64_t first = (uint64_t)g->id[0] * d->group_size[0];
    for (uint64_t i = first; i < first + d->group_size[0] && i < d->lengths[2] / 4; i++) {
        c[i] = a[i] + b[i];
    }
    return 0;
}

// x[i] = x[i] * constant 0 + constant 1: two of them in a row tell in which order they ran.
static int scale(dispatch_t *d, group_t *g)
{
    uint32_t *x = d->bindings[0];
    uint64_t first = (uint64_t)g->id[0] * d->group_size[0];
    for (uint64_t i = first; i < first + d->group_size[0] && i < d->lengths[0] / 4; i++) {
        x[i] = x[i] * constant(d, 0) + constant(d, 1);
    }
    return 0;
}

typedef struct saxpy_t {
    float a;
    uint32_t count;
} saxpy_t;

static int saxpy(dispatch_t *d, group_t *g)
{
    const saxpy_t *k = d->constants;
    const float *x = d->bindings[0];
    float *y = d->bindings[1];
    uint64_t first = (uint64_t)g->id[0] * d->group_size[0];
    for (uint64_t i = first; i < first + d->group_size[0] && i < k->count; i++) {
        y[i] = k->a * x[i] + y[i];
    }
    return 0;
}

// Each group adds 1 + its identity, in a form that tells x, y and z apart, where it belongs.
static int identify(dispatch_t *d, group_t *g)
{
    uint32_t *out = d->bindings[0];
    uint64_t index = linear_id(d, g);
    if (index >= d->lengths[0] / 4) return 1;
    out[index] += 1 + g->id[0] + (g->id[1] << 10) + (g->id[2] << 20);
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

// Counts the groups that ran.
static int tally(dispatch_t *d, group_t *g)
{
    add_atomically(d->bindings[0], 1);
    return 0;
}

// Writes dispatch counts, or any other three words.
static int make_counts(dispatch_t *d, group_t *g)
{
    uint32_t *out = d->bindings[0];
    for (unsigned i = 0; i < 3; i++) out[i] = constant(d, i);
    return 0;
}

static uint64_t now_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

// Takes so many microseconds, then counts itself.
static int slow(dispatch_t *d, group_t *g)
{
    uint64_t end = now_ns() + constant(d, 0) * UINT64_C(1000);
    while (now_ns() < end) {
    }
    add_atomically(d->bindings[0], 1);
    return 0;
}

// Waits until so many groups are inside at the same time: returns 1 if they never are.
static int meet(dispatch_t *d, group_t *g)
{
    uint32_t *arrived = d->bindings[0];
    uint64_t end = now_ns() + UINT64_C(5000000000);
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

// The argument block of a kernel that was made elsewhere.
typedef struct raw_t {
    uint32_t factor;
    uint32_t count;
    const uint32_t *in;
    uint32_t *out;
    uint32_t offset;
} raw_t;

static int raw(dispatch_t *d, group_t *g)
{
    const raw_t *k = d->constants;
    if ((uintptr_t)k % 16) return 1;
    for (uint32_t i = 0; i < k->count; i++) k->out[i] = k->in[i] * k->factor + k->offset;
    return 0;
}

// word 0 counts down, word 1 up.
static int count_down(dispatch_t *d, group_t *g)
{
    uint32_t *word = d->bindings[0];
    word[0]--;
    word[1]++;
    return 0;
}

// x[constant 0] = constant 1.
static int poke(dispatch_t *d, group_t *g)
{
    uint32_t *x = d->bindings[0];
    if (constant(d, 0) >= d->lengths[0] / 4) return 1;
    x[constant(d, 0)] = constant(d, 1);
    return 0;
}

// Which worker ran which group.
static int workers(dispatch_t *d, group_t *g)
{
    uint32_t *out = d->bindings[0];
    out[linear_id(d, g)] = g->worker;
    return 0;
}

// Writes its number into each of its bindings.
static int many_bindings(dispatch_t *d, group_t *g)
{
    for (uint32_t i = 0; i < d->binding_count; i++) *(uint32_t *)d->bindings[i] = i + 1;
    return 0;
}

// Copies its constants.
static int many_constants(dispatch_t *d, group_t *g)
{
    unsigned char *out = d->bindings[0];
    for (uint32_t i = 0; i < d->constant_size; i++) {
        out[i] = ((const unsigned char *)d->constants)[i];
    }
    return 0;
}

static uint32_t shared_words[4] = {11, 22, 33, 44};

// Adds the constant to the global and copies it.
static int use_global(dispatch_t *d, group_t *g)
{
    uint32_t *out = d->bindings[0];
    for (unsigned i = 0; i < 4; i++) out[i] = shared_words[i] += constant(d, 0);
    return 0;
}

#define R  KEEL_HOST_READ
#define W  KEEL_HOST_WRITE
#define RW (R | W)

static const uint32_t write_1[] = {W};
static const uint32_t read_1[] = {R};
static const uint32_t both_1[] = {RW};
static const uint32_t read_write[] = {R, W};
static const uint32_t read_both[] = {R, RW};
static const uint32_t read_read_write[] = {R, R, W};
static const uint32_t write_64[64] = {
    W, W, W, W, W, W, W, W, W, W, W, W, W, W, W, W, W, W, W, W, W, W, W, W, W, W, W, W, W, W, W, W,
    W, W, W, W, W, W, W, W, W, W, W, W, W, W, W, W, W, W, W, W, W, W, W, W, W, W, W, W, W, W, W, W,
};

static const char *const in_out[] = {"in", "out"};

#define ONE {1, 1, 1}

static const keel_host_entry_t entries[] = {
    {.name = "empty", .kernel = empty, .group_size = ONE},
    {.name = "abs",
     .kernel = absolute,
     .group_size = {16, 1, 1},
     .bindings = 2,
     .access = read_write,
     .names = in_out},
    {.name = "add",
     .kernel = add,
     .group_size = {16, 1, 1},
     .bindings = 3,
     .access = read_read_write},
    {.name = "scale",
     .kernel = scale,
     .group_size = {16, 1, 1},
     .constants = 8,
     .bindings = 1,
     .access = both_1},
    {.name = "saxpy",
     .kernel = saxpy,
     .group_size = {64, 1, 1},
     .constants = sizeof(saxpy_t),
     .bindings = 2,
     .access = read_both},
    {.name = "identify", .kernel = identify, .group_size = ONE, .bindings = 1, .access = both_1},
    {.name = "describe",
     .kernel = describe,
     .group_size = {4, 3, 2},
     .constants = 12,
     .bindings = 1,
     .local_memory = 128,
     .access = write_1},
    {.name = "tally", .kernel = tally, .group_size = ONE, .bindings = 1, .access = both_1},
    {.name = "make_counts",
     .kernel = make_counts,
     .group_size = ONE,
     .constants = 12,
     .bindings = 1,
     .access = write_1},
    {.name = "slow",
     .kernel = slow,
     .group_size = ONE,
     .constants = 4,
     .bindings = 1,
     .access = both_1},
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
    {.name = "local",
     .kernel = local,
     .group_size = ONE,
     .bindings = 1,
     .local_memory = 1024,
     .access = write_1},
    {.name = "raw", .kernel = raw, .group_size = ONE, .constants = sizeof(raw_t)},
    {.name = "count_down",
     .kernel = count_down,
     .group_size = ONE,
     .bindings = 1,
     .access = both_1},
    {.name = "poke",
     .kernel = poke,
     .group_size = ONE,
     .constants = 8,
     .bindings = 1,
     .access = write_1},
    {.name = "workers", .kernel = workers, .group_size = ONE, .bindings = 1, .access = write_1},
    {.name = "many_bindings",
     .kernel = many_bindings,
     .group_size = ONE,
     .bindings = 64,
     .access = write_64},
    {.name = "many_constants",
     .kernel = many_constants,
     .group_size = ONE,
     .constants = 256,
     .bindings = 1,
     .access = write_1},
    {.name = "use_global",
     .kernel = use_global,
     .group_size = ONE,
     .constants = 4,
     .bindings = 1,
     .access = write_1},
};

static const keel_host_global_t globals[] = {
    {"shared_words", shared_words, sizeof shared_words},
};

KEEL_HOST_LIBRARY(entries, globals, COUNT(globals))
