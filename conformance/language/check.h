// SPDX-License-Identifier: Apache-2.0
// Inputs for numbers.c, and judges of what it made of them, wherever it ran. Each judge prints what
// is wrong and returns how much of it there is.
#ifndef TESTS_KERNEL_CHECK_H_
#define TESTS_KERNEL_CHECK_H_

#include <stddef.h>

#include "numbers.h"

void items_make(item_t *items, size_t count);
unsigned items_judge(const item_t *items, const answer_t *answers, size_t count);

unsigned doubles_judge(const item_t *items, const doubles_t *answers, size_t count);
unsigned integers_judge(const item_t *items, const integers_t *answers, size_t count);

void words_make(uint32_t words[ATOMIC_ITEMS]);
void tally_begin(tally_t *tally);
unsigned tally_judge(const uint32_t words[ATOMIC_ITEMS], const tally_t *tally);
unsigned subgroups_judge(const uint32_t words[ATOMIC_ITEMS], const subgroup_t out[ATOMIC_ITEMS]);

void matrix_make(float matrix[TRANSPOSED * TRANSPOSED]);
unsigned matrix_judge(const float in[TRANSPOSED * TRANSPOSED],
                      const float out[TRANSPOSED * TRANSPOSED]);

#endif
