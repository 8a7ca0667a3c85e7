// SPDX-License-Identifier: Apache-2.0
#include "base/memory.h"

#include <keel/base.h>
#include <stdlib.h>

#include "unit.h"

static int resizes, failures; // so many fail

static void *resize(void *user, void *old, size_t size)
{
    (void)user;
    resizes++;
    return failures-- > 0 ? NULL : realloc(old, size);
}

static void release(void *user, void *memory)
{
    (void)user;
    free(memory);
}

static void test_arrays_grow(void **state)
{
    (void)state;
    enum { COUNT = 1000 };
    keel_allocator_set(&(keel_allocator_t){resize, release, NULL});
    uint32_t *items = NULL, capacity = 0;
    for (uint32_t i = 0; i < COUNT; i++) {
        items = mem_reserve(items, &capacity, i, sizeof *items);
        assert_non_null(items);
        assert_true(i < capacity);
        items[i] = i;
    }
    for (uint32_t i = 0; i < COUNT; i++) assert_int_equal(items[i], i);
    assert_in_range(resizes, 1, 10);
    uint32_t before = capacity;
    failures = 1;
    assert_null(mem_reserve(items, &capacity, 100 * COUNT, sizeof *items));
    assert_int_equal(capacity, before);
    items = mem_reserve(items, &capacity, 100 * COUNT, sizeof *items);
    assert_true(100 * COUNT < capacity);
    assert_int_equal(items[COUNT - 1], COUNT - 1);
    mem_free(items);
    keel_allocator_set(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_arrays_grow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
