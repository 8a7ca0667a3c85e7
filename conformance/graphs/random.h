// SPDX-License-Identifier: Apache-2.0
// Numbers that follow from a seed, the same on every machine.
#ifndef GRAPHS_RANDOM_H_
#define GRAPHS_RANDOM_H_

#include <stdbool.h>
#include <stdint.h>

typedef struct random_t {
    uint64_t state;
} random_t;

static inline uint64_t random_mix(uint64_t x)
{
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

static inline uint64_t random_next(random_t *random)
{
    random->state += 0x9e3779b97f4a7c15u;
    return random_mix(random->state);
}

// Below `limit`, which is not 0.
static inline uint32_t random_below(random_t *random, uint32_t limit)
{
    return (uint32_t)((random_next(random) >> 32) * limit >> 32);
}

// From `least` to `most`, both included.
static inline uint32_t random_range(random_t *random, uint32_t least, uint32_t most)
{
    return least + random_below(random, most - least + 1);
}

static inline bool random_chance(random_t *random, uint32_t percent)
{
    return random_below(random, 100) < percent;
}

#endif
