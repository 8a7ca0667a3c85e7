// SPDX-License-Identifier: Apache-2.0
// A set of numbers that come alone, in long rows or in patterns: a string of bits, in words of 64
// of which neighbours with the same bits are kept once. A number that stands alone takes 24 bytes,
// and so does a row of any length, or every second number of one. No set takes more than 24 bytes
// for each 64 numbers.
#ifndef KEEL_SRC_BASE_MARKS_H_
#define KEEL_SRC_BASE_MARKS_H_

#include <stdbool.h>
#include <stdint.h>

typedef struct marks_run_t {
    uint64_t word, count; // the words `word` to `word + count - 1`
    uint64_t bits;        // of each of these
} marks_run_t;

// Zero: the empty set.
typedef struct marks_t {
    marks_run_t *runs; // owned; sorted, apart from each other or different
    uint32_t count, capacity;
} marks_t;

// Adds the numbers from `first` to `last`. False without memory: then some of them are missing.
bool marks_add(marks_t *marks, uint64_t first, uint64_t last);
bool marks_has(const marks_t *marks, uint64_t number);
void marks_finish(marks_t *marks);

#endif
