// SPDX-License-Identifier: Apache-2.0
// The kernel language gives the same on every device, within the bounds that <keel/kernel.h>
// states: language/numbers.c computes, language/check.c judges.
#include "suite/suite.h"

#include "language/check.h"

extern const unsigned char keel_embed_conformance_language[];
extern const uint64_t keel_embed_conformance_language_size;

#define RUNS .needs = KEEL_CAP_EXECUTES

static keel_entry_t language_kernel(const char *name)
{
    keel_executable_options_t options = {.data = keel_embed_conformance_language,
                                         .size = keel_embed_conformance_language_size,
                                         .name = "language"};
    keel_executable_t *executable = NULL;
    keel_entry_t entry;
    TRY(keel_executable_load(the_device(), &options, &executable));
    OWN(executable);
    TRY(keel_executable_entry(executable, name, &entry));
    return entry;
}

TEST(language, mathematics, RUNS)
{
    const uint32_t count = careful() ? 2000 : 50000;
    item_t *items = scratch(count * sizeof *items);
    answer_t *answers = scratch(count * sizeof *answers);
    items_make(items, count);
    keel_buffer_t *in = new_buffer_of(items, count * sizeof *items);
    keel_buffer_t *out = new_buffer(count * sizeof *answers);
    reach(submit(keel_op_dispatch(language_kernel("numbers"), keel_groups((count + 63) / 64, 1, 1),
                                  NULL, 0, KEEL_BIND(in, out))));
    buffer_get(out, 0, answers, count * sizeof *answers);
    CHECK_EQ(items_judge(items, answers, count), 0);
}

TEST(language, atomics_and_subgroups, RUNS)
{
    uint32_t words[ATOMIC_ITEMS];
    tally_t tally;
    words_make(words);
    tally_begin(&tally);
    keel_buffer_t *in = new_buffer_of(words, sizeof words);
    keel_buffer_t *out = new_buffer_of(&tally, sizeof tally);
    reach(submit(keel_op_dispatch(language_kernel("atomics"), keel_groups(ATOMIC_ITEMS / 128, 1, 1),
                                  NULL, 0, KEEL_BIND(in, out))));
    buffer_get(out, 0, &tally, sizeof tally);
    CHECK_EQ(tally_judge(words, &tally), 0);
}

TEST(language, memory_between_regions, RUNS)
{
    static float matrix[TRANSPOSED * TRANSPOSED], result[TRANSPOSED * TRANSPOSED];
    uint32_t n = TRANSPOSED, side = TRANSPOSED / 16;
    matrix_make(matrix);
    keel_buffer_t *in = new_buffer_of(matrix, sizeof matrix), *out = new_buffer(sizeof result);
    reach(submit(keel_op_dispatch(language_kernel("transpose"), keel_groups(side, side, 1), &n,
                                  sizeof n, KEEL_BIND(in, out))));
    buffer_get(out, 0, result, sizeof result);
    CHECK_EQ(matrix_judge(matrix, result), 0);
}
