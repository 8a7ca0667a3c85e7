// SPDX-License-Identifier: Apache-2.0
// What counts for the limit of a pool of CUDA's, on the CUDA driver in software: memory that is
// given back counts until it is free, but a queue may have what it has given back itself.
#include "drivers/cuda/device.h"

enum { SIZE = 4096, HOLDS = 0x401d };

static cuda_symbols_t *symbols;
static cuda_symbols_t real;
static _Atomic bool held;

static void stream_hold(void *user)
{
    (void)user;
    held_wait(&held);
}

// The stream gets to such a fill when it is let go.
static CUresult fill(CUdeviceptr target, unsigned int value, size_t count, CUstream stream)
{
    if (value == HOLDS) real.cuLaunchHostFunc(stream, stream_hold, NULL);
    return real.cuMemsetD32Async(target, value, count, stream);
}

typedef struct place_t {
    keel_device_t *device;
    keel_queue_t *queue, *other;
    keel_pool_t *pool;
    keel_semaphore_t *gate;
    keel_buffer_t *word;
} place_t;

static int setup(void **state)
{
    static place_t place;
    symbols = symbols_open(&real);
    if (!symbols) return 1;
    symbols->cuMemsetD32Async = fill;
    keel_pool_options_t limited = {.limit = 3 * SIZE};
    place.device = device_open("");
    place.queue = keel_device_queue(place.device, 0);
    assert_null(keel_queue_create(place.device, NULL, &place.other));
    assert_null(keel_pool_create(place.device, &limited, &place.pool));
    assert_null(keel_semaphore_create(place.device, NULL, &place.gate));
    place.word = buffer_create(place.device, 4, KEEL_MEMORY_DEVICE_LOCAL);
    *state = &place;
    return 0;
}

static int teardown(void **state)
{
    place_t *place = *state;
    keel_buffer_release(place->word);
    keel_semaphore_release(place->gate);
    keel_pool_release(place->pool);
    keel_queue_release(place->other);
    keel_device_release(place->device);
    *symbols = real;
    return 0;
}

// Gives the queue something that takes until it is let go.
static void queue_hold(const place_t *place)
{
    keel_op_t op = keel_op_fill(keel_whole(place->word), HOLDS, 4);
    atomic_store(&held, true);
    assert_null(keel_queue_run(place->queue, KEEL_NO_WAITS, op, NULL));
}

static keel_buffer_t *take(const place_t *place, keel_queue_t *queue, uint64_t size,
                           keel_point_t *ready)
{
    keel_buffer_t *buffer = NULL;
    assert_null(keel_queue_alloca(queue, place->pool, size, &buffer, ready));
    return buffer;
}

static void give(keel_queue_t *queue, keel_points_t waits, keel_buffer_t *buffer)
{
    assert_null(keel_queue_dealloca(queue, waits, buffer, NULL));
    keel_buffer_release(buffer);
}

static void check(const place_t *place, uint64_t used, uint64_t waiting)
{
    keel_pool_stats_t stats;
    keel_pool_stats(place->pool, &stats);
    assert_int_equal(stats.used, used);
    assert_int_equal(stats.waiting, waiting);
}

static void test_a_queue_has_what_it_gave_back(void **state)
{
    const place_t *place = *state;
    keel_point_t ready, last;
    keel_buffer_t *a = take(place, place->queue, 2 * SIZE, &ready);
    keel_buffer_t *b = take(place, place->queue, SIZE, &ready);
    queue_hold(place);
    give(place->queue, KEEL_NO_WAITS, a);
    give(place->queue, KEEL_NO_WAITS, b);
    check(place, 3 * SIZE, 0);
    a = take(place, place->queue, SIZE, &ready); // a part of one
    check(place, 3 * SIZE, 0);
    b = take(place, place->queue, 2 * SIZE, &ready); // the rest of both
    check(place, 3 * SIZE, 0);
    keel_buffer_t *c = take(place, place->other, 3 * SIZE, &last);
    check(place, 3 * SIZE, 1); // though both are free when this queue gets there
    give(place->queue, KEEL_NO_WAITS, a);
    give(place->queue, KEEL_NO_WAITS, b);
    a = take(place, place->queue, 3 * SIZE, &ready);
    check(place, 3 * SIZE, 1);
    give(place->queue, KEEL_NO_WAITS, a);
    check(place, 3 * SIZE, 1);
    atomic_store(&held, false);
    ok(last);
    check(place, 3 * SIZE, 0);
    give(place->other, KEEL_NO_WAITS, c);
    assert_null(keel_device_wait_idle(place->device, KEEL_FOREVER));
    keel_pool_stats_t stats;
    keel_pool_stats(place->pool, &stats);
    assert_int_equal(stats.used, 0);
    assert_int_equal(stats.buffers, 0);
    assert_int_equal(stats.peak, 3 * SIZE);
}

// So does what waits already, behind a dealloca that was issued first after all.
static void test_who_waits_has_it_too(void **state)
{
    const place_t *place = *state;
    keel_point_t ready, last;
    keel_buffer_t *a = take(place, place->queue, 3 * SIZE, &ready);
    queue_hold(place);
    give(place->queue, KEEL_AFTER(keel_point(place->gate, 1)), a);
    keel_buffer_t *b = take(place, place->queue, SIZE, &ready);
    keel_buffer_t *c = take(place, place->other, SIZE, &last);
    check(place, 3 * SIZE, 2);
    assert_null(keel_semaphore_signal(place->gate, 1));
    check(place, 3 * SIZE, 1);
    give(place->queue, KEEL_AFTER(ready), b);
    atomic_store(&held, false);
    ok(last);
    give(place->other, KEEL_NO_WAITS, c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_queue_has_what_it_gave_back, setup, teardown),
        cmocka_unit_test_setup_teardown(test_who_waits_has_it_too, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
