// SPDX-License-Identifier: Apache-2.0
// What tests/core/executable_test.c loads.
#include <keel/host_kernel.h>

// Adds the number of workgroups to a word.
static int tally(const keel_host_dispatch_t *d, const keel_host_group_t *g)
{
    (void)g;
    __atomic_fetch_add((uint32_t *)d->bindings[0], 1, __ATOMIC_RELAXED);
    return 0;
}

static const uint32_t access[] = {KEEL_HOST_READ | KEEL_HOST_WRITE};

// The test finds this by its numbers, and changes them.
static const keel_host_entry_t entries[] = {
    {.name = "tally",
     .kernel = tally,
     .group_size = {4, 3, 2},
     .constants = 0,
     .bindings = 1,
     .local_memory = 128,
     .access = access},
};

KEEL_HOST_LIBRARY(entries, NULL, 0)
