// SPDX-License-Identifier: Apache-2.0
// The kernels of the examples, for devices that run host code (<keel/host_kernel.h>).
#include <keel/host_kernel.h>
#include <time.h>

typedef const keel_host_dispatch_t dispatch_t;
typedef const keel_host_group_t group_t;

// y[i] = a * x[i] + y[i], one work-item per element.
static int saxpy(const keel_host_dispatch_t *d, const keel_host_group_t *g)
{
    const float *x = d->bindings[0];
    float *y = d->bindings[1];
    float a = *(const float *)d->constants;
    uint32_t first = g->id[0] * d->group_size[0];
    for (uint32_t i = first; i < first + d->group_size[0]; i++) y[i] = a * x[i] + y[i];
    return 0;
}

// x[i] = x[i] * k[0] + k[1]: two of these in a row tell in which order they ran.
static int affine(dispatch_t *d, group_t *g)
{
    uint32_t *x = d->bindings[0];
    const uint32_t *k = d->constants;
    uint32_t first = g->id[0] * d->group_size[0];
    for (uint32_t i = first; i < first + d->group_size[0]; i++) x[i] = x[i] * k[0] + k[1];
    return 0;
}

// Finds something wrong in workgroup k[0], and says so with the number 42.
static int picky(dispatch_t *d, group_t *g)
{
    return g->id[0] == *(const uint32_t *)d->constants ? 42 : 0;
}

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

// Takes k[0] microseconds per workgroup, and notes for each when it began, when it ended and which
// worker it was: three uint64_t.
static int work(dispatch_t *d, group_t *g)
{
    uint64_t *note = (uint64_t *)d->bindings[0] + (uint64_t)3 * g->id[0];
    uint64_t length = *(const uint32_t *)d->constants * UINT64_C(1000);
    note[0] = now_ns();
    do note[1] = now_ns();
    while (note[1] - note[0] < length);
    note[2] = g->worker;
    return 0;
}

static const uint32_t read_then_both[] = {KEEL_HOST_READ, KEEL_HOST_READ | KEEL_HOST_WRITE};
static const uint32_t both[] = {KEEL_HOST_READ | KEEL_HOST_WRITE};
static const uint32_t write_only[] = {KEEL_HOST_WRITE};

static const keel_host_entry_t entries[] = {
    {.name = "saxpy",
     .kernel = saxpy,
     .group_size = {64, 1, 1},
     .constants = 4,
     .bindings = 2,
     .access = read_then_both},
    {.name = "affine",
     .kernel = affine,
     .group_size = {64, 1, 1},
     .constants = 8,
     .bindings = 1,
     .access = both},
    {.name = "picky", .kernel = picky, .group_size = {1, 1, 1}, .constants = 4},
    {.name = "work",
     .kernel = work,
     .group_size = {1, 1, 1},
     .constants = 4,
     .bindings = 1,
     .access = write_only},
};
KEEL_HOST_LIBRARY(entries, NULL, 0)
