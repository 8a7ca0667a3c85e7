// SPDX-License-Identifier: Apache-2.0
// The kernels of the random graphs: a workgroup does ARITH_GROUP words, those beyond the first
// binding's length are left alone. Words lie at any address.
#include <keel/host_kernel.h>
#include <string.h>

#include "arith.h"

static uint32_t word_get(const keel_host_dispatch_t *d, uint32_t binding, uint32_t index)
{
    uint32_t word;
    memcpy(&word, (const char *)d->bindings[binding] + (size_t)index * 4, 4);
    return word;
}

static void word_set(const keel_host_dispatch_t *d, uint32_t binding, uint32_t index, uint32_t word)
{
    memcpy((char *)d->bindings[binding] + (size_t)index * 4, &word, 4);
}

static uint32_t group_number(const keel_host_dispatch_t *d, const keel_host_group_t *g)
{
    return g->id[0] + d->groups[0] * (g->id[1] + d->groups[1] * g->id[2]);
}

// The words [*begin, *end) of a group.
static const arith_constants_t *group_begin(const keel_host_dispatch_t *d,
                                            const keel_host_group_t *g, uint32_t *begin,
                                            uint32_t *end)
{
    const arith_constants_t *constants = d->constants;
    uint64_t words = d->lengths[0] / 4;
    uint64_t first = (uint64_t)group_number(d, g) * ARITH_GROUP;
    for (volatile uint32_t i = 0; i < constants->spin; i++) continue;
    *begin = (uint32_t)(first < words ? first : words);
    *end = (uint32_t)(first + ARITH_GROUP < words ? first + ARITH_GROUP : words);
    return constants;
}

static int scale(const keel_host_dispatch_t *d, const keel_host_group_t *g)
{
    uint32_t begin, end;
    const arith_constants_t *c = group_begin(d, g, &begin, &end);
    for (uint32_t i = begin; i < end; i++)
        word_set(d, 0, i, arith_scale(word_get(d, 0, i), c->constant, i));
    return 0;
}

static int move(const keel_host_dispatch_t *d, const keel_host_group_t *g)
{
    uint32_t begin, end;
    const arith_constants_t *c = group_begin(d, g, &begin, &end);
    for (uint32_t i = begin; i < end; i++)
        word_set(d, 1, i, arith_move(word_get(d, 0, i), c->constant));
    return 0;
}

static int mix(const keel_host_dispatch_t *d, const keel_host_group_t *g)
{
    uint32_t begin, end;
    const arith_constants_t *c = group_begin(d, g, &begin, &end);
    for (uint32_t i = begin; i < end; i++)
        word_set(d, 2, i,
                 arith_mix(word_get(d, 0, i), word_get(d, 1, i), word_get(d, 2, i), c->constant));
    return 0;
}

static int modulo(const keel_host_dispatch_t *d, const keel_host_group_t *g)
{
    uint32_t begin, end;
    const arith_constants_t *c = group_begin(d, g, &begin, &end);
    for (uint32_t i = begin; i < end; i++)
        word_set(d, 1, i, arith_modulo(word_get(d, 0, i), c->constant, c->modulus));
    return 0;
}

static int decrement(const keel_host_dispatch_t *d, const keel_host_group_t *g)
{
    uint32_t begin, end;
    group_begin(d, g, &begin, &end);
    for (uint32_t i = begin; i < end; i++) word_set(d, 0, i, arith_decrement(word_get(d, 0, i)));
    return 0;
}

static int fail(const keel_host_dispatch_t *d, const keel_host_group_t *g)
{
    const arith_constants_t *c = d->constants;
    if (group_number(d, g) == c->constant) return (int)c->modulus;
    return scale(d, g);
}

enum { R = KEEL_HOST_READ, W = KEEL_HOST_WRITE };
static const uint32_t access_m[] = {R | W};
static const uint32_t access_rw[] = {R, W};
static const uint32_t access_rrm[] = {R, R, R | W};

#define ENTRY(name_, kernel_, count, access_)                                                      \
    {.name = name_,                                                                                \
     .kernel = kernel_,                                                                            \
     .group_size = {ARITH_GROUP, 1, 1},                                                            \
     .constants = sizeof(arith_constants_t),                                                       \
     .bindings = count,                                                                            \
     .access = access_}
static const keel_host_entry_t entries[] = {
    ENTRY("scale", scale, 1, access_m),         ENTRY("move", move, 2, access_rw),
    ENTRY("mix", mix, 3, access_rrm),           ENTRY("modulo", modulo, 2, access_rw),
    ENTRY("decrement", decrement, 1, access_m), ENTRY("abort", fail, 1, access_m),
};
KEEL_HOST_LIBRARY(entries, NULL, 0)
