// SPDX-License-Identifier: Apache-2.0
// The kernel of the random graphs that fails in one of its groups and scales in the others, which
// only host code can do.
#include <keel/host_kernel.h>
#include <string.h>

#include "arith.h"

static int fail(const keel_host_dispatch_t *d, const keel_host_group_t *g)
{
    const arith_constants_t *c = d->constants;
    uint64_t group = g->id[0] + d->groups[0] * ((uint64_t)g->id[1] + d->groups[1] * g->id[2]);
    uint64_t first = group * ARITH_GROUP;
    if (group == c->constant) return (int)c->modulus;
    for (volatile uint32_t i = 0; i < c->spin; i++) continue;
    for (uint64_t i = first; i < first + ARITH_GROUP && i < d->lengths[0] / 4; i++) {
        char *at = (char *)d->bindings[0] + i * 4;
        uint32_t word;
        memcpy(&word, at, 4);
        word = arith_scale(word, c->constant, (uint32_t)i);
        memcpy(at, &word, 4);
    }
    return 0;
}

static const uint32_t access[] = {KEEL_HOST_READ | KEEL_HOST_WRITE};
static const keel_host_entry_t entries[] = {
    {.name = "abort",
     .kernel = fail,
     .group_size = {ARITH_GROUP, 1, 1},
     .constants = sizeof(arith_constants_t),
     .bindings = 1,
     .access = access},
};
KEEL_HOST_LIBRARY(entries, NULL, 0)
