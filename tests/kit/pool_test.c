// SPDX-License-Identifier: Apache-2.0
#include "kit/pool.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "unit.h"

enum { MIB = 1 << 20 };

// A device with so much memory.
static uint64_t left;

static keel_status_t fake_alloc(keel_buffer_t *buffer)
{
    if (buffer->size > left) return KEEL_ERROR(KEEL_RESOURCE_EXHAUSTED, "the device has no more");
    left -= buffer->size;
    buffer->capacity = buffer->size;
    atomic_store(&buffer->address, 1 << 20);
    return NULL;
}

static void fake_free(keel_buffer_t *buffer)
{
    left += buffer->size;
}

static const keel_device_ops_t ops = {.buffer_alloc = fake_alloc, .buffer_free = fake_free};
static keel_device_t device;

// Words for buffers of a pool.
static pool_word_t words[2];
static int words_taken;

static keel_status_t word_take(const keel_buffer_t *buffer, pool_word_t **word)
{
    (void)buffer;
    *word = &words[words_taken++];
    return NULL;
}

static void word_give_back(keel_device_t *to, pool_word_t *word)
{
    (void)to;
    words_taken--;
    assert_ptr_equal(word, &words[words_taken]);
}

static keel_pool_t *pool_make(uint64_t memory, uint64_t block_size)
{
    static const pool_words_t ops_of_words = {word_take, word_give_back};
    keel_pool_t *pool;
    device.ops = &ops;
    left = memory;
    assert_null(pool_create_words(&ops_of_words, &pool));
    pool->device = &device;
    pool->name = (char *)(uintptr_t)"small";
    pool->options = (keel_pool_options_t){.limit = 1ull << 40, .block_size = block_size};
    return pool;
}

static keel_buffer_t buffer_make(keel_pool_t *pool, uint64_t size)
{
    return (keel_buffer_t){.device = &device, .pool = pool, .size = size, .alignment = 64};
}

static keel_status_t take(keel_buffer_t *buffer)
{
    keel_pool_request_t request = {0};
    keel_status_t status;
    assert_int_equal(pool_alloca(buffer, &request, &status), POOL_DONE);
    return status;
}

static uint64_t reserved(keel_pool_t *pool)
{
    keel_pool_stats_t stats;
    pool_stats(pool, &stats);
    return stats.reserved;
}

// A slab is as large as can be had, and what is booked is what it has.
static void test_slabs_shrink(void **state)
{
    (void)state;
    keel_pool_t *pool = pool_make(21 * MIB, 0);
    keel_buffer_t first = buffer_make(pool, MIB), second = buffer_make(pool, 5 * MIB - 64);
    keel_buffer_t third = buffer_make(pool, 16 * MIB);
    assert_null(take(&first));
    assert_int_equal(left, 5 * MIB);
    assert_int_equal(reserved(pool), 16 * MIB);
    assert_null(take(&second));
    keel_status_t status = take(&third);
    assert_int_equal(keel_status_code(status), KEEL_RESOURCE_EXHAUSTED);
    char text[512], said[128];
    keel_status_format(status, text, sizeof text);
    snprintf(said, sizeof said, "pool 'small' cannot give %d bytes: %d of at most %llu are in use",
             16 * MIB, 6 * MIB - 64, 1ull << 40);
    assert_non_null(strstr(text, said));
    assert_non_null(strstr(text, "the device has no more"));
    keel_status_release(status);
    assert_int_equal(reserved(pool), 16 * MIB);
    pool_reclaim(&first);
    pool_reclaim(&second);
    pool_destroy(pool);
    assert_int_equal(left, 21 * MIB);
    assert_int_equal(atomic_load(&device.used), 0);
}

// Down to what is asked for, and in whole blocks.
static void test_slabs_shrink_to_the_request(void **state)
{
    (void)state;
    keel_pool_t *pool = pool_make(7 * MIB, 3 * MIB);
    keel_buffer_t buffer = buffer_make(pool, MIB);
    assert_null(take(&buffer));
    assert_int_equal(reserved(pool), 6 * MIB);
    pool_reclaim(&buffer);
    pool_destroy(pool);
    pool = pool_make(20 * MIB, 0);
    buffer = buffer_make(pool, 20 * MIB);
    assert_null(take(&buffer));
    assert_int_equal(reserved(pool), 20 * MIB);
    pool_reclaim(&buffer);
    pool_destroy(pool);
}

static void request_done(keel_pool_request_t *request, keel_status_t status)
{
    assert_null(status);
    *(bool *)request->context = true;
}

// An alloca that has to wait.
typedef struct waiting_t {
    keel_buffer_t buffer;
    keel_pool_request_t request;
    bool served;
} waiting_t;

static void waiting_begin(waiting_t *waiting, keel_pool_t *pool, uint64_t size)
{
    keel_status_t status;
    *waiting = (waiting_t){.buffer = buffer_make(pool, size)};
    waiting->request.done = request_done;
    waiting->request.context = &waiting->served;
    assert_int_equal(pool_alloca(&waiting->buffer, &waiting->request, &status), POOL_WAITING);
}

static void give(keel_buffer_t *buffer)
{
    pool_dealloca_submitted(buffer);
    assert_null(pool_dealloca(buffer));
}

// A request that fits is served, wherever it stands among those that wait; the others stay, in
// order.
static void test_those_that_fit_are_served(void **state)
{
    (void)state;
    keel_pool_t *pool = pool_make(64 * MIB, 0);
    keel_buffer_t kept = buffer_make(pool, 2 * MIB), first = buffer_make(pool, MIB);
    waiting_t large, small, last;
    pool->options.limit = 3 * MIB;
    assert_null(take(&kept));
    assert_null(take(&first));
    pool_dealloca_submitted(&kept); // so that there is something to wait for
    waiting_begin(&large, pool, 3 * MIB);
    waiting_begin(&small, pool, MIB);
    give(&first);
    assert_true(small.served && !large.served);
    waiting_begin(&last, pool, 2 * MIB); // behind what was the first and is the last now
    give(&small.buffer);
    assert_false(large.served || last.served);
    assert_null(take(&small.buffer)); // what is too little for those that wait is to be had
    pool_dealloca_submitted(&small.buffer);
    assert_null(pool_dealloca(&kept));
    assert_true(last.served && !large.served);
    pool_dealloca_submitted(&last.buffer);
    assert_null(pool_dealloca(&small.buffer));
    assert_false(large.served);
    assert_null(pool_dealloca(&last.buffer));
    assert_true(large.served);
    pool_reclaim(&large.buffer);
    pool_destroy(pool);
}

// From alloca to dealloca it has the address, whenever it was asked for first.
static void test_words_have_the_address(void **state)
{
    (void)state;
    keel_pool_t *pool = pool_make(MIB, 0);
    keel_buffer_t early = buffer_make(pool, 64), late = buffer_make(pool, 64);
    pool_word_t *word, *again;
    atomic_store(&words[0].address, 7); // another buffer's had that
    assert_null(pool_word(&early, &word));
    assert_int_equal(atomic_load(&word->address), 0);
    assert_null(take(&early));
    assert_int_equal(atomic_load(&word->address), atomic_load(&early.address));
    pool_dealloca_submitted(&early);
    assert_null(pool_dealloca(&early));
    assert_int_equal(atomic_load(&word->address), 0);
    assert_null(take(&late));
    assert_int_equal(words_taken, 1);
    atomic_store(&words[1].address, 7);
    assert_null(pool_word(&late, &word));
    assert_int_equal(atomic_load(&word->address), atomic_load(&late.address));
    assert_null(pool_word(&late, &again));
    assert_ptr_equal(again, word);
    assert_int_equal(words_taken, 2);
    pool_reclaim(&late);
    assert_int_equal(words_taken, 1);
    pool_reclaim(&early);
    assert_int_equal(words_taken, 0);
    pool_destroy(pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_slabs_shrink),
        cmocka_unit_test(test_slabs_shrink_to_the_request),
        cmocka_unit_test(test_those_that_fit_are_served),
        cmocka_unit_test(test_words_have_the_address),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
