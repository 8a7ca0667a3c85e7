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

static keel_pool_t *pool_make(uint64_t memory, uint64_t block_size)
{
    keel_pool_t *pool;
    device.ops = &ops;
    left = memory;
    assert_null(pool_create(&device, NULL, &pool));
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_slabs_shrink),
        cmocka_unit_test(test_slabs_shrink_to_the_request),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
