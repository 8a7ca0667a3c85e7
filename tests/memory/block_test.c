// SPDX-License-Identifier: Apache-2.0
#include "memory/block.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "memory/aborts.h"

static void drain(block_pool_t *pool, uint64_t block_size)
{
    uint64_t offset;
    for (uint64_t i = 0; i < block_pool_count(pool); i++) {
        assert_int_equal(block_pool_used(pool), i);
        assert_true(block_pool_acquire(pool, &offset));
        assert_int_equal(offset, i * block_size);
    }
    assert_false(block_pool_acquire(pool, &offset));
    assert_int_equal(offset, 0);
    assert_int_equal(block_pool_used(pool), block_pool_count(pool));
}

// Counts around the powers of 64, where a word or a level begins.
static void test_counts(void **state)
{
    (void)state;
    static const uint64_t counts[] = {0,   1,   2,    63,   64,   65,     127,
                                      128, 129, 4095, 4096, 4097, 262143, 262145};
    for (unsigned i = 0; i < sizeof counts / sizeof *counts; i++) {
        block_pool_t pool;
        assert_true(block_pool_init(&pool, counts[i] * 48, 48));
        assert_int_equal(block_pool_count(&pool), counts[i]);
        drain(&pool, 48);
        for (uint64_t block = counts[i]; block-- > 0;) block_pool_return(&pool, block * 48);
        assert_int_equal(block_pool_used(&pool), 0);
        drain(&pool, 48);
        block_pool_finish(&pool);
    }
}

static void test_remainder(void **state)
{
    (void)state;
    block_pool_t pool;
    assert_true(block_pool_init(&pool, 4095, 1024));
    assert_int_equal(block_pool_count(&pool), 3);
    drain(&pool, 1024);
    block_pool_finish(&pool);
    assert_true(block_pool_init(&pool, 1023, 1024));
    drain(&pool, 1024);
    block_pool_finish(&pool);
}

static void test_limits(void **state)
{
    (void)state;
    const uint64_t half = UINT64_C(1) << 63;
    block_pool_t pool;
    uint64_t offset;
    assert_true(block_pool_init(&pool, UINT64_MAX, UINT64_MAX));
    drain(&pool, UINT64_MAX);
    block_pool_finish(&pool);
    assert_true(block_pool_init(&pool, UINT64_MAX, half - 1));
    assert_int_equal(block_pool_count(&pool), 2);
    assert_true(block_pool_acquire(&pool, &offset));
    assert_true(block_pool_acquire(&pool, &offset));
    assert_int_equal(offset, half - 1);
    block_pool_return(&pool, offset);
    block_pool_finish(&pool);
}

// Random acquires and returns against an array of flags; the lowest free block always comes first.
static void test_random(void **state)
{
    (void)state;
    enum { COUNT = 4500, SIZE = 256 };
    static bool busy[COUNT];
    static uint64_t live[COUNT];
    block_pool_t pool;
    uint64_t random = 0x9e3779b97f4a7c15, used = 0, lowest = 0, offset, exhausted = 0;
    assert_true(block_pool_init(&pool, COUNT * SIZE, SIZE));
    for (unsigned i = 0; i < 1000000; i++) {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        bool filling = i / 20000 % 2 == 0;
        if (random % 4 == 0 ? !filling : filling) {
            while (lowest < COUNT && busy[lowest]) lowest++;
            assert_int_equal(block_pool_acquire(&pool, &offset), lowest < COUNT);
            exhausted += lowest == COUNT;
            if (lowest == COUNT) continue;
            assert_int_equal(offset, lowest * SIZE);
            busy[lowest] = true;
            live[used++] = lowest;
        } else if (used) {
            uint64_t pick = (random >> 8) % used, block = live[pick];
            live[pick] = live[--used];
            busy[block] = false;
            if (block < lowest) lowest = block;
            block_pool_return(&pool, block * SIZE);
        }
        assert_int_equal(block_pool_used(&pool), used);
    }
    assert_true(exhausted > 100);
    while (used) block_pool_return(&pool, live[--used] * SIZE);
    drain(&pool, SIZE);
    block_pool_finish(&pool);
}

static void *resize_never(void *user, void *old, size_t size)
{
    (void)user, (void)old, (void)size;
    return NULL;
}

static void free_nothing(void *user, void *memory)
{
    (void)user;
    assert_null(memory);
}

static void test_no_memory(void **state)
{
    (void)state;
    block_pool_t pool;
    keel_allocator_set(&(keel_allocator_t){.resize = resize_never, .free = free_nothing});
    bool made = block_pool_init(&pool, 4096, 64);
    if (!made) block_pool_finish(&pool);
    keel_allocator_set(NULL);
    assert_false(made);
    assert_int_equal(block_pool_count(&pool), 0);
}

typedef struct misuse_t {
    block_pool_t *pool;
    uint64_t offset;
} misuse_t;

static void call_return(void *argument)
{
    misuse_t *misuse = argument;
    block_pool_return(misuse->pool, misuse->offset);
}

static bool return_aborts(block_pool_t *pool, uint64_t offset)
{
    return aborts(call_return, &(misuse_t){pool, offset});
}

static void test_misuse(void **state)
{
    (void)state;
#ifdef NDEBUG
    skip();
#endif
    block_pool_t pool;
    uint64_t offset;
    assert_true(block_pool_init(&pool, 640, 64));
    assert_true(block_pool_acquire(&pool, &offset));
    assert_false(return_aborts(&pool, 0));
    assert_true(return_aborts(&pool, 64));  // free already
    assert_true(return_aborts(&pool, 1));   // inside a block
    assert_true(return_aborts(&pool, 640)); // past the end
    block_pool_return(&pool, 0);
    assert_true(return_aborts(&pool, 0));
    block_pool_finish(&pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counts), cmocka_unit_test(test_remainder),
        cmocka_unit_test(test_limits), cmocka_unit_test(test_random),
        cmocka_unit_test(test_misuse), cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
