// SPDX-License-Identifier: Apache-2.0
// Kernels that only host code can be (<keel/host_kernel.h>): they fail, or look at the clock.
#include <keel/host_kernel.h>
#include <time.h>

typedef const keel_host_dispatch_t dispatch_t;
typedef const keel_host_group_t group_t;

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

static const uint32_t write_only[] = {KEEL_HOST_WRITE};

static const keel_host_entry_t entries[] = {
    {.name = "picky", .kernel = picky, .group_size = {1, 1, 1}, .constants = 4},
    {.name = "work",
     .kernel = work,
     .group_size = {1, 1, 1},
     .constants = 4,
     .bindings = 1,
     .access = write_only},
};
KEEL_HOST_LIBRARY(entries, NULL, 0)
