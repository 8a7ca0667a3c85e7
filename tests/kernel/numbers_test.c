// SPDX-License-Identifier: Apache-2.0
// The kernel language on the host, compiled by the host's compiler alone.
#include "conformance/language/numbers.c"

#include <stdlib.h>
#include <string.h>

#include "conformance/language/check.h"
#include "unit.h"

enum { ITEMS = 300000 };

static const keel_host_entry_t *entry(const char *name)
{
    for (uint32_t i = 0; i < keel_host_library.entry_count; i++)
        if (!strcmp(keel_host_library.entries[i].name, name)) return &keel_host_library.entries[i];
    fail_msg("no entry point is called %s", name);
    abort(); // not reached, which the compiler does not know
}

static void dispatch(const char *name, uint32_t x, uint32_t y, keel_host_dispatch_t d)
{
    const keel_host_entry_t *e = entry(name);
    _Alignas(64) char local[4096];
    d.groups[0] = x;
    d.groups[1] = y;
    d.groups[2] = 1;
    memcpy(d.group_size, e->group_size, sizeof d.group_size);
    assert_true(e->local_memory <= sizeof local);
    for (uint32_t i = 0; i < x * y; i++) {
        keel_host_group_t group = {.id = {i % x, i / x, 0}, .local = local};
        assert_int_equal(e->kernel(&d, &group), 0);
    }
}

// Runs a kernel over items; both are to be freed.
static void *answers_of(const char *kernel, item_t **items, size_t size)
{
    void *answers = malloc(ITEMS * size);
    *items = malloc(ITEMS * sizeof **items);
    items_make(*items, ITEMS);
    void *bindings[] = {*items, answers};
    uint64_t lengths[] = {ITEMS * sizeof **items, ITEMS * size};
    dispatch(kernel, (ITEMS + 63) / 64, 1,
             (keel_host_dispatch_t){.bindings = bindings, .lengths = lengths});
    return answers;
}

static void keeps_its_bounds(void **state)
{
    item_t *items;
    answer_t *answers = answers_of("numbers", &items, sizeof *answers);
    assert_int_equal(items_judge(items, answers, ITEMS), 0);
    free(items);
    free(answers);
}

static void keeps_its_bounds_of_doubles(void **state)
{
    item_t *items;
    doubles_t *answers = answers_of("doubles", &items, sizeof *answers);
    assert_int_equal(doubles_judge(items, answers, ITEMS), 0);
    free(items);
    free(answers);
}

static void has_integers(void **state)
{
    item_t *items;
    integers_t *answers = answers_of("integers", &items, sizeof *answers);
    assert_int_equal(integers_judge(items, answers, ITEMS), 0);
    free(items);
    free(answers);
}

static void has_subgroups(void **state)
{
    static subgroup_t answers[ATOMIC_ITEMS];
    uint32_t words[ATOMIC_ITEMS];
    words_make(words);
    void *bindings[] = {words, answers};
    uint64_t lengths[] = {sizeof words, sizeof answers};
    dispatch("subgroups", ATOMIC_ITEMS / 128, 1,
             (keel_host_dispatch_t){.bindings = bindings, .lengths = lengths});
    assert_int_equal(subgroups_judge(words, answers), 0);
}

static void has_atomics(void **state)
{
    uint32_t words[ATOMIC_ITEMS];
    tally_t tally;
    words_make(words);
    tally_begin(&tally);
    void *bindings[] = {words, &tally};
    uint64_t lengths[] = {sizeof words, sizeof tally};
    dispatch("atomics", ATOMIC_ITEMS / 128, 1,
             (keel_host_dispatch_t){.bindings = bindings, .lengths = lengths});
    assert_int_equal(tally_judge(words, &tally), 0);
}

static void shares_memory_between_regions(void **state)
{
    static float in[TRANSPOSED * TRANSPOSED], out[TRANSPOSED * TRANSPOSED];
    uint32_t n = TRANSPOSED;
    matrix_make(in);
    void *bindings[] = {in, out};
    uint64_t lengths[] = {sizeof in, sizeof out};
    dispatch("transpose", TRANSPOSED / 16, TRANSPOSED / 16,
             (keel_host_dispatch_t){.bindings = bindings, .lengths = lengths, .constants = &n});
    assert_int_equal(matrix_judge(in, out), 0);
}

static void describes_its_entries(void **state)
{
    const keel_host_entry_t *e = entry("transpose");
    assert_int_equal(keel_host_library.entry_count, 8);
    assert_int_equal(e->group_size[0], 16);
    assert_int_equal(e->group_size[1], 16);
    assert_int_equal(e->group_size[2], 1);
    assert_int_equal(e->constants, 4);
    assert_int_equal(e->bindings, 2);
    assert_int_equal(e->local_memory, sizeof(row_t) * 16);
    assert_int_equal(e->access[0], KEEL_HOST_READ);
    assert_int_equal(e->access[1], KEEL_HOST_WRITE);
    assert_string_equal(e->names[1], "out");
    assert_int_equal(entry("atomics")->access[1], KEEL_HOST_READ | KEEL_HOST_WRITE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keeps_its_bounds),      cmocka_unit_test(keeps_its_bounds_of_doubles),
        cmocka_unit_test(has_integers),          cmocka_unit_test(has_subgroups),
        cmocka_unit_test(has_atomics),           cmocka_unit_test(shares_memory_between_regions),
        cmocka_unit_test(describes_its_entries),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
