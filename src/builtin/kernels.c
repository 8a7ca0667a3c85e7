// SPDX-License-Identifier: Apache-2.0
// The kernels of arguments.h, in the kernel language (docs/kernels.md). A driver that needs more
// includes this file in a source of its own: what is to be one image is one source.
#include <keel/kernel.h>
#include <stdbool.h>

#include "builtin/arguments.h"

// Memory of the device at an address of a block of arguments.
#define AT(type, address) ((type *)(KEEL_AT_MEMORY_ type *)(address))

typedef uint32_t unit_t __attribute__((vector_size(16)));

static inline uint64_t clock_now(void)
{
    uint64_t now;
#if KEEL_NVPTX
    __asm__ volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
#elif KEEL_AMDGCN && __has_builtin(__builtin_readsteadycounter) // from clang 19 on
    now = __builtin_readsteadycounter();
#elif KEEL_AMDGCN
    now = __builtin_amdgcn_s_memrealtime();
#elif defined(__x86_64__)
    now = __builtin_ia32_rdtsc();
#else
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(now));
#endif
    return now;
}

KEEL_RAW_KERNEL(keel_timestamp, KEEL_GROUP(1), builtin_timestamp_t, a)
{
    KEEL_ITEMS {
        uint64_t now = clock_now();
        if (a.ticks) now = now / a.ticks * a.ns + now % a.ticks * a.ns / a.ticks;
        *AT(uint64_t, a.target) = now;
    }
}

static inline uint64_t word_read(uint64_t address, uint32_t bytes)
{
    switch (bytes) {
    case 8: return *AT(const uint64_t, address);
    case 4: return *AT(const uint32_t, address);
    case 2: return *AT(const uint16_t, address);
    default: return *AT(const uint8_t, address);
    }
}

static inline void word_write(uint64_t address, uint32_t bytes, uint64_t word)
{
    switch (bytes) {
    case 8: *AT(uint64_t, address) = word; break;
    case 4: *AT(uint32_t, address) = (uint32_t)word; break;
    case 2: *AT(uint16_t, address) = (uint16_t)word; break;
    default: *AT(uint8_t, address) = (uint8_t)word;
    }
}

// Neighbours write neighbours, and all of them what is `threads` units further next.
KEEL_RAW_KERNEL(keel_fill, KEEL_GROUP(BUILTIN_GROUP), builtin_fill_t, a)
{
    uint64_t step = (uint64_t)a.threads * a.unit;
    if (a.unit == sizeof(unit_t)) {
        const unit_t unit = {a.pattern, a.pattern, a.pattern, a.pattern};
        KEEL_ITEMS {
            for (uint64_t at = keel_global_id(0) * sizeof unit; at < a.length; at += step)
                *AT(unit_t, a.target + at) = unit;
        }
    } else {
        const uint64_t words = (uint64_t)a.pattern << 32 | a.pattern;
        KEEL_ITEMS {
            for (uint64_t at = keel_global_id(0) * a.unit; at < a.length; at += step)
                word_write(a.target + at, a.unit, words >> at % 4 * 8);
        }
    }
}

KEEL_RAW_KERNEL(keel_copy, KEEL_GROUP(BUILTIN_GROUP), builtin_copy_t, a)
{
    uint64_t step = (uint64_t)a.threads * a.unit;
    if (a.unit == sizeof(unit_t)) {
        KEEL_ITEMS {
            for (uint64_t at = keel_global_id(0) * sizeof(unit_t); at < a.length; at += step)
                *AT(unit_t, a.target + at) = *AT(const unit_t, a.source + at);
        }
    } else {
        KEEL_ITEMS {
            for (uint64_t at = keel_global_id(0) * a.unit; at < a.length; at += step)
                word_write(a.target + at, a.unit, word_read(a.source + at, a.unit));
        }
    }
}

// Whether the grid has groups, and not too many.
static inline bool counts_fit(const builtin_counts_t a)
{
    const uint32_t *counts = AT(const uint32_t, a.counts);
    uint32_t *failed = AT(uint32_t, a.failed);
    uint32_t x = counts[0], y = counts[1], z = counts[2];
    uint64_t total;
    bool beyond = __builtin_mul_overflow((uint64_t)x * y, (uint64_t)z, &total);
    if (!x || !y || !z) return false;
    if (!beyond && total <= a.most && x <= a.most_x && y <= a.most_y && z <= a.most_z) return true;
    if (keel_atomic_compare(failed, 0, a.number) != 0) return false;
    failed[0] = a.number; // on links without atomic operations nothing was exchanged, and 0 read
    failed[1] = x;
    failed[2] = y;
    failed[3] = z;
    return false;
}

KEEL_RAW_KERNEL(keel_counts, KEEL_GROUP(1), builtin_counts_t, a)
{
    KEEL_ITEMS {
        counts_fit(a);
    }
}
