// SPDX-License-Identifier: Apache-2.0
// The raw kernels (../raw.h) for AMD's GPUs; make.sh makes ../raw.co of them.
#include <keel/kernel.h>

#include "conformance/kernels/clock.h"

typedef struct block_t {
    uint64_t words[8];
} block_t;

KEEL_RAW_KERNEL(raw_empty, KEEL_GROUP(1), block_t, block) {}

KEEL_RAW_KERNEL(raw_nap, KEEL_GROUP(1), block_t, block)
{
    KEEL_ITEMS {
        uint64_t start = clock_ticks(), ticks = block.words[0] * CLOCK_MHZ / 1000;
        while (clock_ticks() - start < ticks) {
        }
    }
}
