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
    bool many;
    assert_null(blocks_take(&blocks, &size));
    assert_int_equal(size, 64 * KIB); // what is to be made
    assert_true(blocks_keep(&blocks, &small, &many));
    assert_true(blocks_keep(&blocks, &large, &many));
    assert_false(many);
    size = 64 * KIB + 1;
    assert_null(blocks_take(&blocks, &size));
    assert_int_equal(size, 128 * KIB);
    size = 64 * KIB;
    assert_ptr_equal(blocks_take(&blocks, &size), &small);
    assert_null(blocks_take(&blocks, &size));
    assert_ptr_equal(blocks_drain(&blocks), &large);
    assert_null(blocks_drain(&blocks));
}

static void test_blocks_are_cut(void **state)
{
    (void)state;
    blocks_t blocks = {0};
    block_t block = {.size = 64 * KIB};
    uint64_t offset = 1, size = 1;
    bool many;
    assert_false(block_cut(NULL, 0, &offset));
    assert_true(block_cut(&block, 100, &offset));
    assert_int_equal(offset, 0);
    assert_true(block_cut(&block, 0, &offset));
    assert_false(block_cut(&block, 64 * KIB - 127, &offset));
    assert_true(block_cut(&block, 64 * KIB - 129, &offset));
    assert_int_equal(offset, 128);
    assert_false(block_cut(&block, 1, &offset)); // pieces are aligned
    assert_true(blocks_keep(&blocks, &block, &many));
    assert_ptr_equal(blocks_take(&blocks, &size), &block);
    assert_true(block_cut(&block, 64 * KIB, &offset));
    assert_int_equal(offset, 0);
}

static void test_no_size_is_without_end(void **state)
{
    (void)state;
    blocks_t blocks = {0};
    block_t huge = {.size = (UINT64_C(2) << 30) + 1};
    uint64_t size = huge.size;
    bool many;
    assert_null(blocks_take(&blocks, &size));
    assert_int_equal(size, huge.size); // none of the sizes
    assert_false(blocks_keep(&blocks, &huge, &many));
}

// What is beyond the 64 MiB stays as long as somebody needs it now and then.
static void test_what_nobody_needs_is_trimmed(void **state)
{
    (void)state;
    blocks_t blocks = {0};
    block_t half[2] = {{.size = 32 * MIB}, {.size = 32 * MIB}}, large[2];
    uint64_t size = 64 * MIB;
    bool many;
    for (int i = 0; i < 2; i++) large[i] = (block_t){.size = 64 * MIB};
    for (int i = 0; i < 2; i++) assert_true(blocks_keep(&blocks, &half[i], &many));
    assert_false(many);
    assert_true(blocks_keep(&blocks, &large[0], &many));
    assert_true(many);
    assert_true(blocks_keep(&blocks, &large[1], &many));
    assert_false(many); // said once

    assert_null(blocks_trim(&blocks, &many)); // all came only just
    assert_true(many);
    assert_non_null(blocks_take(&blocks, &size));
    assert_true(blocks_keep(&blocks, &large[1], &many));
    assert_non_null(blocks_trim(&blocks, &many)); // of 128 MiB that nobody took
    assert_null(blocks_trim(&blocks, &many));     // the other was needed
    assert_true(many);
    assert_int_equal(blocks.size, 128 * MIB);
    assert_non_null(blocks_trim(&blocks, &many)); // now it was not
    assert_null(blocks_trim(&blocks, &many));
    assert_false(many);
    assert_int_equal(blocks.size, 64 * MIB);
    assert_true(blocks_keep(&blocks, &large[0], &many));
    assert_true(many);
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

// A piece that would go beyond the end by a single byte begins at the front.
static void test_pieces_end_with_the_ring(void **state)
{
    (void)state;
    ring_t ring = {0};
    uint64_t offset = 0;
    for (int i = 0; i < 7; i++) assert_true(ring_take(&ring, 128 * KIB, &offset));
    assert_true(ring_take(&ring, 128 * KIB - 64, &offset));
    ring_return(&ring, ring.head);
    ring_t other = ring;
    assert_true(ring_take(&ring, 65, &offset));
    assert_int_equal(offset, 0);
    assert_true(ring_take(&other, 64, &offset));
    assert_int_equal(offset, RING_SIZE - 64);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kept_blocks_are_taken_by_size),
        cmocka_unit_test(test_blocks_are_cut),
        cmocka_unit_test(test_no_size_is_without_end),
        cmocka_unit_test(test_what_nobody_needs_is_trimmed),
        cmocka_unit_test(test_ring_gives_no_byte_twice),
        cmocka_unit_test(test_pieces_do_not_wrap),
        cmocka_unit_test(test_pieces_end_with_the_ring),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
