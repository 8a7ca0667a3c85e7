// SPDX-License-Identifier: Apache-2.0
#include "base/marks.h"

#include <stddef.h>
#include <string.h>

#include "base/memory.h"

// The first run that is not before the word.
static uint32_t runs_find(const marks_t *marks, uint64_t word)
{
    uint32_t low = 0, high = marks->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (marks->runs[middle].word + marks->runs[middle].count <= word)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void runs_put(marks_t *marks, uint32_t at, marks_run_t run)
{
    marks_run_t *to = &marks->runs[at];
    memmove(to + 1, to, (marks->count++ - at) * sizeof *to);
    *to = run;
}

// Makes one of a run and the next, if they are alike.
static void runs_join(marks_t *marks, uint32_t at)
{
    if (at + 1 >= marks->count) return;
    marks_run_t *run = &marks->runs[at], *next = run + 1;
    if (run->bits != next->bits || run->word + run->count != next->word) return;
    run->count += next->count;
    memmove(next, next + 1, (--marks->count - at - 1) * sizeof *run);
}

// Adds the bits to at most `count` words from `word` on that are in one run, or in none, and
// returns how many these are. There is room for two runs more.
static uint64_t words_add(marks_t *marks, uint64_t word, uint64_t count, uint64_t bits)
{
    uint32_t at = runs_find(marks, word);
    marks_run_t *run = &marks->runs[at];
    if (at == marks->count || word < run->word) {
        if (at < marks->count && count > run->word - word) count = run->word - word;
        runs_put(marks, at, (marks_run_t){word, count, bits});
    } else {
        uint64_t before = word - run->word;
        if (before) { // which stays as it is
            runs_put(marks, at, (marks_run_t){run->word, before, run->bits});
            run = &marks->runs[++at];
            run->word = word;
            run->count -= before;
        }
        if (count < run->count)
            runs_put(marks, at + 1, (marks_run_t){word + count, run->count - count, run->bits});
        else
            count = run->count;
        run->count = count;
        run->bits |= bits;
    }
    runs_join(marks, at);
    if (at) runs_join(marks, at - 1);
    return count;
}

static bool words_add_all(marks_t *marks, uint64_t word, uint64_t count, uint64_t bits)
{
    while (count) {
        marks_run_t *runs =
            mem_reserve(marks->runs, &marks->capacity, marks->count + 1, sizeof *runs);
        if (!runs) return false;
        marks->runs = runs;
        uint64_t added = words_add(marks, word, count, bits);
        word += added;
        count -= added;
    }
    return true;
}

bool marks_add(marks_t *marks, uint64_t first, uint64_t last)
{
    uint64_t from = first / 64, to = last / 64;
    uint64_t head = UINT64_MAX << first % 64, tail = UINT64_MAX >> (63 - last % 64);
    if (from == to) return words_add_all(marks, from, 1, head & tail);
    return words_add_all(marks, from, 1, head) &&
           words_add_all(marks, from + 1, to - from - 1, UINT64_MAX) &&
           words_add_all(marks, to, 1, tail);
}

bool marks_has(const marks_t *marks, uint64_t number)
{
    uint32_t at = runs_find(marks, number / 64);
    if (at == marks->count || marks->runs[at].word > number / 64) return false;
    return marks->runs[at].bits >> number % 64 & 1;
}

void marks_finish(marks_t *marks)
{
    mem_free(marks->runs);
}
