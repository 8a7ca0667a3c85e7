// SPDX-License-Identifier: Apache-2.0
// The kernels of the examples, for every device: keel cc compiles them.
#include <keel/kernel.h>

// y[i] = a * x[i] + y[i], one work-item per element.
KEEL_KERNEL(saxpy, KEEL_GROUP(64), KEEL_IN(float, x), KEEL_INOUT(float, y),
            KEEL_CONSTANTS(float, a))
{
    KEEL_ITEMS {
        uint64_t i = keel_global_id(0);
        y[i] = a * x[i] + y[i];
    }
}

typedef struct axpy_t {
    float a;
    const float *x;
    float *y;
    int32_t n;
} axpy_t;

// The same as a kernel made elsewhere has it, axpy(float a, const float *x, float *y, int n): its
// parameters are one block, addresses and all.
KEEL_RAW_KERNEL(axpy, KEEL_GROUP(128), axpy_t, k)
{
    KEEL_ITEMS_BELOW ((uint32_t)k.n) {
        uint64_t i = keel_global_id(0);
        k.y[i] = k.a * k.x[i] + k.y[i];
    }
}

typedef struct affine_t {
    uint32_t factor, summand;
} affine_t;

// x[i] = x[i] * factor + summand: two of these in a row tell in which order they ran.
KEEL_KERNEL(affine, KEEL_GROUP(64), KEEL_INOUT(uint32_t, x), KEEL_CONSTANTS(affine_t, k))
{
    KEEL_ITEMS {
        uint64_t i = keel_global_id(0);
        x[i] = x[i] * k.factor + k.summand;
    }
}

// Takes a while: x[i] goes through `rounds` of a generator of random numbers.
KEEL_KERNEL(work, KEEL_GROUP(64), KEEL_INOUT(uint32_t, x), KEEL_CONSTANTS(uint32_t, rounds))
{
    KEEL_ITEMS {
        uint64_t i = keel_global_id(0);
        uint32_t value = x[i];
        for (uint32_t round = 0; round < rounds; round++) value = value * 1664525 + 1013904223;
        x[i] = value;
    }
}

// sums[g] = the sum of the elements of group g, by halves: regions with barriers between them.
KEEL_KERNEL(sum, KEEL_GROUP(256), KEEL_IN(float, x), KEEL_OUT(float, sums),
            KEEL_LOCAL(float, part, 256))
{
    KEEL_ITEMS {
        uint64_t i = keel_global_id(0);
        part[keel_local_id(0)] = i < keel_count(x) ? x[i] : 0;
    }
    KEEL_BARRIER();
    for (uint32_t half = 128; half; half /= 2) {
        KEEL_ITEMS {
            uint32_t i = keel_local_id(0);
            if (i < half) part[i] += part[i + half];
        }
        KEEL_BARRIER();
    }
    KEEL_ONCE {
        sums[keel_group_id(0)] = part[0];
    }
}

typedef struct token_t {
    uint32_t position, token;
} token_t;

// cache[position] = token.
KEEL_KERNEL(remember, KEEL_GROUP(1), KEEL_INOUT(uint32_t, cache), KEEL_CONSTANTS(token_t, k))
{
    KEEL_ONCE {
        cache[k.position] = k.token;
    }
}

// sums[position] += all of cache[0] to cache[position], older ones with a larger weight.
KEEL_KERNEL(attend, KEEL_GROUP(64), KEEL_IN(uint32_t, cache), KEEL_INOUT(uint32_t, sums),
            KEEL_CONSTANTS(uint32_t, position))
{
    KEEL_ITEMS {
        uint32_t i = (uint32_t)keel_global_id(0);
        if (i <= position) keel_atomic_add(&sums[position], cache[i] * (position - i + 1));
    }
}
