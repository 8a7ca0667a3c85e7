// SPDX-License-Identifier: Apache-2.0
// The kernel language gives the same on every device, within the bounds that <keel/kernel.h>
// states: language/numbers.c computes, language/check.c judges.
#include "suite/suite.h"

#include "language/check.h"

extern const unsigned char keel_embed_conformance_language[];
extern const uint64_t keel_embed_conformance_language_size;

#define RUNS .needs = KEEL_CAP_EXECUTES

static keel_executable_t *language_load(void)
{
    keel_executable_options_t options = {.data = keel_embed_conformance_language,
                                         .size = keel_embed_conformance_language_size,
                                         .name = "language"};
    return kernels_load(the_device(), &options);
}

static keel_entry_t language_kernel(const char *name)
{
    keel_executable_t *executable = language_load();
    keel_entry_t entry;
    TRY(keel_executable_entry(executable, name, &entry));
    return entry;
}

// Runs a kernel over items; the answers are the test's.
static const void *answers_of(const char *kernel, item_t *items, uint32_t count, size_t size)
{
    void *answers = scratch(count * size);
    items_make(items, count);
    keel_buffer_t *in = new_buffer_of(items, count * sizeof *items);
    keel_buffer_t *out = new_buffer(count * size);
    reach(submit(keel_op_dispatch(language_kernel(kernel), keel_groups((count + 63) / 64, 1, 1),
                                  NULL, 0, KEEL_BIND(in, out))));
    buffer_get(out, 0, answers, count * size);
    return answers;
}

TEST(language, mathematics, RUNS)
{
    const uint32_t count = careful() ? 2000 : 50000;
    item_t *items = scratch(count * sizeof *items);
    const answer_t *answers = answers_of("numbers", items, count, sizeof *answers);
    CHECK_EQ(items_judge(items, answers, count), 0);
}

TEST(language, mathematics_of_doubles, RUNS)
{
    const uint32_t count = careful() ? 500 : 10000;
    item_t *items = scratch(count * sizeof *items);
    const doubles_t *answers = answers_of("doubles", items, count, sizeof *answers);
    CHECK_EQ(doubles_judge(items, answers, count), 0);
}

TEST(language, integers, RUNS)
{
    const uint32_t count = careful() ? 500 : 10000;
    item_t *items = scratch(count * sizeof *items);
    const integers_t *answers = answers_of("integers", items, count, sizeof *answers);
    CHECK_EQ(integers_judge(items, answers, count), 0);
}

TEST(language, subgroups, RUNS)
{
    static subgroup_t answers[ATOMIC_ITEMS];
    uint32_t words[ATOMIC_ITEMS];
    words_make(words);
    keel_buffer_t *in = new_buffer_of(words, sizeof words), *out = new_buffer(sizeof answers);
    reach(
        submit(keel_op_dispatch(language_kernel("subgroups"), keel_groups(ATOMIC_ITEMS / 128, 1, 1),
                                NULL, 0, KEEL_BIND(in, out))));
    buffer_get(out, 0, answers, sizeof answers);
    CHECK_EQ(subgroups_judge(words, answers), 0);
    CHECK_EQ(answers[0].size, the_caps()->subgroup_size);
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

TEST(language, much_workgroup_memory, RUNS)
{
    enum { GROUPS = 3 };
    keel_entry_t reverse = language_kernel("reverse");
    keel_entry_info_t info;
    TRY(keel_entry_info(reverse, &info));
    const uint32_t each = info.local_memory / 4, count = GROUPS * each;
    uint32_t *words = scratch(count * sizeof *words);
    for (uint32_t i = 0; i < count; i++) words[i] = i * 2654435761u;
    keel_buffer_t *in = new_buffer_of(words, count * 4), *out = new_buffer(count * 4);
    reach(
        submit(keel_op_dispatch(reverse, keel_groups(GROUPS, 1, 1), NULL, 0, KEEL_BIND(in, out))));
    CHECK(each >= 8192);
    for (uint32_t g = 0; g < GROUPS; g++)
        for (uint32_t i = 0; i < each; i += 499)
            CHECK_EQ(buffer_u32(out, g * each + i), words[(g + 1) * each - 1 - i]);
}

TEST(language, much_private_memory, RUNS)
{
    enum { WORDS = 3 * REMEMBERING };
    uint32_t *words = scratch(WORDS * sizeof *words);
    for (uint32_t i = 0; i < WORDS; i++) words[i] = i * 2654435761u;
    keel_buffer_t *in = new_buffer_of(words, WORDS * 4), *out = new_buffer(WORDS * 4);
    reach(submit(keel_op_dispatch(language_kernel("remember"), keel_groups(3, 1, 1), NULL, 0,
                                  KEEL_BIND(in, out))));
    for (uint32_t i = 0; i < WORDS; i += 97)
        CHECK_EQ(buffer_u32(out, i), words[(i + words[i] % REMEMBERED) % WORDS]);
}

static void matrix_transpose(keel_executable_t *executable)
{
    static float matrix[TRANSPOSED * TRANSPOSED], result[TRANSPOSED * TRANSPOSED];
    uint32_t n = TRANSPOSED, side = TRANSPOSED / 16;
    keel_entry_t entry;
    matrix_make(matrix);
    keel_buffer_t *in = new_buffer_of(matrix, sizeof matrix), *out = new_buffer(sizeof result);
    TRY(keel_executable_entry(executable, "transpose", &entry));
    reach(submit(
        keel_op_dispatch(entry, keel_groups(side, side, 1), &n, sizeof n, KEEL_BIND(in, out))));
    buffer_get(out, 0, result, sizeof result);
    CHECK_EQ(matrix_judge(matrix, result), 0);
}

TEST(language, memory_between_regions, RUNS)
{
    matrix_transpose(language_kernel("transpose").executable);
}

// Code without variables, which a driver may load once for both.
TEST(language, load_twice, RUNS)
{
    keel_executable_t *a = language_load(), *b = language_load();
    CHECK(a != b);
    matrix_transpose(a);
    drop(a);
    matrix_transpose(b);
    drop(b);
    b = language_load();
    matrix_transpose(b);
    drop(b);
}

static void load_in_a_loop(void *user)
{
    for (size_t i = 0; i < few(64); i++) drop(language_load());
}

TEST(language, loaded_by_many_threads, RUNS)
{
    the_device();
    thread_t *threads[3];
    for (int i = 0; i < 3; i++) threads[i] = thread_start(load_in_a_loop, NULL);
    matrix_transpose(language_kernel("transpose").executable);
    for (int i = 0; i < 3; i++) thread_join(threads[i]);
    matrix_transpose(language_kernel("transpose").executable);
}
