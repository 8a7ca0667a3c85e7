// SPDX-License-Identifier: Apache-2.0
// The kernels of the random graphs: a workgroup does ARITH_GROUP words, those beyond the first
// binding's length are left alone. Words lie at any address.
#include <keel/kernel.h>

#include "arith.h"

static uint32_t word_get(const KEEL_AT_DEVICE uint8_t *words, uint64_t index)
{
    uint32_t word;
    __builtin_memcpy(&word, words + index * 4, 4);
    return word;
}

static void word_set(KEEL_AT_DEVICE uint8_t *words, uint64_t index, uint32_t word)
{
    __builtin_memcpy(words + index * 4, &word, 4);
}

static void spin(uint32_t turns)
{
    for (volatile uint32_t i = 0; i < turns; i++) continue;
}

// The word of an item, counted over the whole grid.
#define WORD                                                                                       \
    ((((uint64_t)keel_group_id(2) * keel_group_count(1) + keel_group_id(1)) *                      \
          keel_group_count(0) +                                                                    \
      keel_group_id(0)) *                                                                          \
         ARITH_GROUP +                                                                             \
     keel_local_id(0))

#define ARITH KEEL_CONSTANTS(arith_constants_t, k)

KEEL_KERNEL(scale, KEEL_GROUP(ARITH_GROUP), KEEL_INOUT(uint8_t, x), ARITH)
{
    spin(k.spin);
    KEEL_ITEMS {
        uint64_t i = WORD;
        if (i < keel_length(x) / 4)
            word_set(x, i, arith_scale(word_get(x, i), k.constant, (uint32_t)i));
    }
}

KEEL_KERNEL(move, KEEL_GROUP(ARITH_GROUP), KEEL_IN(uint8_t, x), KEEL_OUT(uint8_t, y), ARITH)
{
    spin(k.spin);
    KEEL_ITEMS {
        uint64_t i = WORD;
        if (i < keel_length(x) / 4) word_set(y, i, arith_move(word_get(x, i), k.constant));
    }
}

KEEL_KERNEL(mix, KEEL_GROUP(ARITH_GROUP), KEEL_IN(uint8_t, x), KEEL_IN(uint8_t, y),
            KEEL_INOUT(uint8_t, z), ARITH)
{
    spin(k.spin);
    KEEL_ITEMS {
        uint64_t i = WORD;
        if (i < keel_length(x) / 4)
            word_set(z, i, arith_mix(word_get(x, i), word_get(y, i), word_get(z, i), k.constant));
    }
}

KEEL_KERNEL(modulo, KEEL_GROUP(ARITH_GROUP), KEEL_IN(uint8_t, x), KEEL_OUT(uint8_t, y), ARITH)
{
    spin(k.spin);
    KEEL_ITEMS {
        uint64_t i = WORD;
        if (i < keel_length(x) / 4)
            word_set(y, i, arith_modulo(word_get(x, i), k.constant, k.modulus));
    }
}

KEEL_KERNEL(decrement, KEEL_GROUP(ARITH_GROUP), KEEL_INOUT(uint8_t, x), ARITH)
{
    spin(k.spin);
    KEEL_ITEMS {
        uint64_t i = WORD;
        if (i < keel_length(x) / 4) word_set(x, i, arith_decrement(word_get(x, i)));
    }
}
