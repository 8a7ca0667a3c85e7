// SPDX-License-Identifier: Apache-2.0
#include "suite/run.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>

static atomic_uint_fast64_t calls;
static atomic_int_fast64_t outstanding;
static atomic_bool *hit; // in memory that children of the test share
static uint64_t failing;

static void *starve_resize(void *user, void *old, size_t size)
{
    if (atomic_fetch_add(&calls, 1) + 1 == failing) {
        atomic_store(hit, true);
        return NULL;
    }
    void *memory = realloc(old, size ? size : 1);
    if (memory && !old) atomic_fetch_add(&outstanding, 1);
    return memory;
}

static void starve_free(void *user, void *memory)
{
    if (memory) atomic_fetch_sub(&outstanding, 1);
    free(memory);
}

void starve_install(uint64_t fail_at)
{
    static const keel_allocator_t allocator = {starve_resize, starve_free, NULL};
    failing = fail_at;
    if (!hit)
        hit = mmap(NULL, sizeof *hit, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (hit == MAP_FAILED) abort();
    keel_allocator_set(&allocator);
}

void starve_stop(void)
{
    failing = 0;
}

uint64_t allocations(void)
{
    return atomic_load(&calls);
}

int64_t starve_outstanding(void)
{
    return atomic_load(&outstanding);
}

bool starve_hit(void)
{
    return hit && atomic_load(hit);
}

bool starved(void)
{
    return starve_hit() || fault_hit();
}
