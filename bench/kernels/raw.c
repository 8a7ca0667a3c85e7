// SPDX-License-Identifier: Apache-2.0
// The raw kernels (../raw.h) for AMD's GPUs; make.sh makes ../raw.co of them.
#include <keel/kernel.h>

typedef struct block_t {
    uint64_t words[8];
} block_t;

KEEL_RAW_KERNEL(raw_empty, KEEL_GROUP(1), block_t, block) {}

KEEL_RAW_KERNEL(raw_nap, KEEL_GROUP(1), block_t, block)
{
    enum { TICK_NS = 10 }; // of the constant clock, on most GPUs
    KEEL_ITEMS {
        uint64_t start = __builtin_readsteadycounter(), ticks = block.words[0] / TICK_NS;
        while (__builtin_readsteadycounter() - start < ticks) {
        }
    }
}
