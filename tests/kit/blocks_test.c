// SPDX-License-Identifier: Apache-2.0
#include "kit/blocks.h"

#include "unit.h"

enum { KIB = 1 << 10, MIB = 1 << 20 };

static void test_kept_blocks_are_taken_by_size(void **state)
{
    (void)state;
    blocks_t blocks = {0};
    block_t small = {.size = 64 * KIB}, large = {.size = 32 * MIB};
    uint64_t size = 1;
    assert_null(blocks_take(&blocks, &size));
    assert_int_equal(size, 64 * KIB); // what is to be made
    assert_true(blocks_keep(&blocks, &small));
    assert_true(blocks_keep(&blocks, &large));
    size = 64 * KIB + 1;
    assert_null(blocks_take(&blocks, &size));
    assert_int_equal(size, 128 * KIB);
    size = 64 * KIB;
    assert_ptr_equal(blocks_take(&blocks, &size), &small);
    assert_null(blocks_take(&blocks, &size));
    assert_ptr_equal(blocks_drain(&blocks), &large);
    assert_null(blocks_drain(&blocks));
}

static void test_not_all_are_kept(void **state)
{
    (void)state;
    blocks_t blocks = {0};
    block_t halves[3] = {{.size = 32 * MIB}, {.size = 32 * MIB}, {.size = 32 * MIB}};
    block_t huge = {.size = 33 * MIB};
    uint64_t size = huge.size;
    assert_null(blocks_take(&blocks, &size));
    assert_int_equal(size, 33 * MIB); // none of the sizes
    assert_false(blocks_keep(&blocks, &huge));
    assert_true(blocks_keep(&blocks, &halves[0]));
    assert_true(blocks_keep(&blocks, &halves[1]));
    assert_false(blocks_keep(&blocks, &halves[2]));
}

static void test_ring_gives_no_byte_twice(void **state)
{
    (void)state;
    ring_t ring = {0};
    uint64_t offset, first = 0;
    assert_false(ring_take(&ring, RING_SIZE / 8 + 1, &offset));
    for (int i = 0; i < 8; i++) {
        assert_true(ring_take(&ring, RING_SIZE / 8, &offset));
        assert_int_equal(offset, i * (RING_SIZE / 8));
        if (!i) first = ring.head;
    }
    assert_false(ring_take(&ring, 1, &offset));
    ring_return(&ring, first);
    assert_true(ring_take(&ring, 100, &offset));
    assert_int_equal(offset, 0);
    assert_true(ring_take(&ring, 1, &offset));
    assert_int_equal(offset, 128); // pieces do not share a line
    assert_false(ring_take(&ring, RING_SIZE / 8, &offset));
}

static void test_pieces_do_not_wrap(void **state)
{
    (void)state;
    ring_t ring = {0};
    uint64_t offset;
    for (int i = 0; i < 9; i++) assert_true(ring_take(&ring, 100000, &offset));
    ring_return(&ring, ring.head);
    assert_true(ring_take(&ring, 130000, &offset));
    assert_true(ring_take(&ring, 130000, &offset));
    assert_int_equal(offset, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kept_blocks_are_taken_by_size),
        cmocka_unit_test(test_not_all_are_kept),
        cmocka_unit_test(test_ring_gives_no_byte_twice),
        cmocka_unit_test(test_pieces_do_not_wrap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
