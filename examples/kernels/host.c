// SPDX-License-Identifier: Apache-2.0
// A kernel that only host code can be (<keel/host_kernel.h>): it can fail.
#include <keel/host_kernel.h>

// Finds something wrong in workgroup k[0], and says so with the number 42.
static int picky(const keel_host_dispatch_t *d, const keel_host_group_t *g)
{
    return g->id[0] == *(const uint32_t *)d->constants ? 42 : 0;
}

static const keel_host_entry_t entries[] = {
    {.name = "picky", .kernel = picky, .group_size = {1, 1, 1}, .constants = 4},
};
KEEL_HOST_LIBRARY(entries, NULL, 0)
