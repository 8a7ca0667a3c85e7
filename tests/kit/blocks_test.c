// SPDX-License-Identifier: Apache-2.0
#include "kit/blocks.h"

#include "base/status.h"
#include "unit.h"

enum { KIB = 1 << 10, MIB = 1 << 20 };

typedef struct place_t {
    blocks_t blocks;
    uint64_t size; // of the last that was made
    uint64_t made, destroyed;
    bool refuses;
} place_t;

// No code looks into them.
static keel_status_t make(void *owner, uint64_t size, void **data, uint64_t *address)
{
    place_t *place = owner;
    if (place->refuses) return KEEL_ERROR(KEEL_RESOURCE_EXHAUSTED, "no block");
    place->size = size;
    place->made++;
    *address = place->made << 40;
    *data = (void *)(uintptr_t)(place->made << 36);
    return NULL;
}

static void destroy(void *owner, void *data)
{
    assert_non_null(data);
    ((place_t *)owner)->destroyed++;
}

static const blocks_ops_t ops = {make, destroy};

static void place_open(place_t *place)
{
    *place = (place_t){.blocks = {.ops = &ops, .owner = place}};
}

static void place_close(place_t *place)
{
    blocks_destroy(&place->blocks);
    assert_int_equal(place->blocks.size, 0);
    assert_int_equal(place->destroyed, place->made);
}

static block_t *acquire(place_t *place, uint64_t size)
{
    block_t *block = NULL;
    assert_null(blocks_acquire(&place->blocks, size, &block));
    assert_true(block->size >= size);
    assert_null(block->next);
    assert_int_equal(block->used, 0);
    return block;
}

static void test_kept_blocks_are_taken_by_size(void **state)
{
    (void)state;
    place_t place;
    place_open(&place);
    block_t *small = acquire(&place, 1), *large = acquire(&place, 32 * MIB);
    assert_int_equal(small->size, 64 * KIB);
    small->next = large;
    assert_false(blocks_return(&place.blocks, small, true));
    block_t *other = acquire(&place, 64 * KIB + 1);
    assert_int_equal(place.size, 128 * KIB);
    assert_int_equal(place.made, 3);
    assert_ptr_equal(acquire(&place, 64 * KIB), small);
    assert_ptr_equal(acquire(&place, 32 * MIB - 1), large);
    assert_int_equal(place.made, 3);
    assert_false(blocks_return(&place.blocks, small, true));
    assert_false(blocks_return(&place.blocks, large, true));
    assert_int_equal(place.destroyed, 0);
    assert_false(blocks_return(&place.blocks, other, false)); // not to be kept
    assert_int_equal(place.destroyed, 1);
    place_close(&place);
}

// Of those that are large enough, the smallest.
static void test_a_larger_one_will_do_when_memory_is_short(void **state)
{
    (void)state;
    place_t place;
    block_t *none = NULL;
    place_open(&place);
    block_t *large = acquire(&place, 4 * MIB), *larger = acquire(&place, 8 * MIB);
    assert_false(blocks_return(&place.blocks, large, true));
    assert_false(blocks_return(&place.blocks, larger, true));
    place.refuses = true;
    assert_ptr_equal(acquire(&place, MIB), large);
    assert_ptr_equal(acquire(&place, MIB), larger);
    keel_status_t status = blocks_acquire(&place.blocks, MIB, &none);
    assert_int_equal(keel_status_code(status), KEEL_RESOURCE_EXHAUSTED);
    keel_status_release(status);
    assert_null(none);
    assert_int_equal(place.made, 2);
    large->next = larger;
    assert_false(blocks_return(&place.blocks, large, true));
    place_close(&place);
}

static void test_refused(void **state)
{
    (void)state;
    place_t place;
    block_t *block = NULL;
    ring_t ring = {0};
    void *data;
    uint64_t address;
    place_open(&place);
    place.refuses = true;
    keel_status_t status = blocks_acquire(&place.blocks, 1, &block);
    assert_int_equal(keel_status_code(status), KEEL_RESOURCE_EXHAUSTED);
    assert_null(block);
    keel_status_release(status);
    for (int i = 0; i < 2; i++) {
        status = blocks_piece(&place.blocks, i ? &ring : NULL, &block, 8, &data, &address);
        assert_int_equal(keel_status_code(status), KEEL_RESOURCE_EXHAUSTED);
        assert_null(block);
        assert_null(ring.owned);
        keel_status_release(status);
    }
    place_close(&place);
}

static void test_blocks_are_cut(void **state)
{
    (void)state;
    place_t place;
    uint64_t offset = 1;
    place_open(&place);
    block_t *block = acquire(&place, 64 * KIB);
    assert_false(block_cut(NULL, 0, &offset));
    assert_true(block_cut(block, 100, &offset));
    assert_int_equal(offset, 0);
    assert_true(block_cut(block, 0, &offset));
    assert_false(block_cut(block, 64 * KIB - 127, &offset));
    assert_true(block_cut(block, 64 * KIB - 129, &offset));
    assert_int_equal(offset, 128);
    assert_false(block_cut(block, 1, &offset)); // pieces are aligned
    assert_false(blocks_return(&place.blocks, block, true));
    assert_ptr_equal(acquire(&place, 1), block);
    assert_true(block_cut(block, 64 * KIB, &offset));
    assert_int_equal(offset, 0);
    blocks_return(&place.blocks, block, true);
    place_close(&place);
}

static void test_no_size_is_without_end(void **state)
{
    (void)state;
    place_t place;
    place_open(&place);
    uint64_t size = (UINT64_C(2) << 30) + 1;
    block_t *huge = acquire(&place, size);
    assert_int_equal(huge->size, size); // none of the sizes
    assert_false(blocks_return(&place.blocks, huge, true));
    assert_int_equal(place.destroyed, 1);
    place_close(&place);
}

// What is beyond the 64 MiB stays as long as it is needed now and then.
static void test_what_nobody_needs_is_trimmed(void **state)
{
    (void)state;
    place_t place;
    place_open(&place);
    block_t *half = acquire(&place, 32 * MIB), *large[2];
    half->next = acquire(&place, 32 * MIB);
    for (int i = 0; i < 2; i++) large[i] = acquire(&place, 64 * MIB);
    assert_false(blocks_return(&place.blocks, half, true));
    assert_true(blocks_return(&place.blocks, large[0], true));
    assert_false(blocks_return(&place.blocks, large[1], true)); // said once

    assert_true(blocks_trim(&place.blocks)); // all came only just
    assert_int_equal(place.destroyed, 0);
    assert_false(blocks_return(&place.blocks, acquire(&place, 64 * MIB), true));
    assert_true(blocks_trim(&place.blocks));
    assert_int_equal(place.destroyed, 1); // of 128 MiB that were not taken; the other was needed
    assert_int_equal(place.blocks.size, 128 * MIB);
    assert_false(blocks_trim(&place.blocks)); // now it was not
    assert_int_equal(place.destroyed, 2);
    assert_int_equal(place.blocks.size, 64 * MIB);
    assert_true(blocks_return(&place.blocks, acquire(&place, 64 * MIB), true));
    place_close(&place);
}

static uint64_t piece(place_t *place, ring_t *ring, block_t **list, uint64_t size)
{
    void *data = NULL;
    uint64_t address = 0;
    assert_null(blocks_piece(&place->blocks, ring, list, size, &data, &address));
    const block_t *block = address >> 40 == 1 && ring ? ring->owned : *list;
    assert_int_equal((unsigned char *)data - block->data, address - block->address);
    return address;
}

// Of a ring as long as there is room, else of blocks of one's own, whose rest is used first.
static void test_pieces(void **state)
{
    (void)state;
    place_t place;
    ring_t ring = {0};
    block_t *list = NULL;
    const uint64_t first = UINT64_C(1) << 40, second = UINT64_C(2) << 40, third = UINT64_C(3) << 40;
    place_open(&place);
    assert_int_equal(piece(&place, &ring, &list, 100), first);
    assert_int_equal(place.size, RING_SIZE);
    assert_null(list);
    assert_int_equal(piece(&place, &ring, &list, 200 * KIB), second); // too large for a ring
    assert_int_equal(place.size, 256 * KIB);
    assert_int_equal(piece(&place, &ring, &list, 8), first + 128);
    assert_int_equal(piece(&place, NULL, &list, 8), second + 200 * KIB);
    assert_int_equal(piece(&place, NULL, &list, 100 * KIB), third);
    assert_int_equal(list->next->address, second);
    while (ring_take(&ring, 64, &(uint64_t){0})) continue;
    assert_int_equal(piece(&place, &ring, &list, 28 * KIB), third + 100 * KIB);
    assert_int_equal(place.made, 3);
    blocks_return(&place.blocks, list, true);
    blocks_return(&place.blocks, ring.owned, true);
    place_close(&place);
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
        cmocka_unit_test(test_a_larger_one_will_do_when_memory_is_short),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_blocks_are_cut),
        cmocka_unit_test(test_no_size_is_without_end),
        cmocka_unit_test(test_what_nobody_needs_is_trimmed),
        cmocka_unit_test(test_pieces),
        cmocka_unit_test(test_ring_gives_no_byte_twice),
        cmocka_unit_test(test_pieces_do_not_wrap),
        cmocka_unit_test(test_pieces_end_with_the_ring),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
