// SPDX-License-Identifier: Apache-2.0
// Allocas that wait for memory, on the CUDA driver in software: what counts for the limit of a
// pool, and that they go on when the device has got to what they wait for.
#include <pthread.h>
#include <stdlib.h>

#include "drivers/cuda/device.h"
#include "drivers/stream/driver.h"

enum { SIZE = 4096, HOLDS = 0x401d, HALF = 5 << 20 }; // of all memory, and a little more

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

static _Atomic bool deaf; // events say nothing any more

// A device that gives nothing back before it rests, however long that takes, unless a thread needs
// it: looks of its thread for that while it held up the queues. Fields of the device's: to others
// the two reasons for which queues are held up differ in time alone.
static _Atomic(stream_device_t *) patient;
static _Atomic uint32_t holds;

static CUresult query(CUevent event)
{
    stream_device_t *own = atomic_load(&patient);
    if (own && thread_is("keel-free")) {
        own->hold.patience_ns = UINT64_MAX;
        if (atomic_load(&own->hold.on)) atomic_fetch_add(&holds, 1);
    }
    return atomic_load(&deaf) ? CUDA_ERROR_NOT_READY : real.cuEventQuery(event);
}

static _Atomic uint32_t sleeps; // that a thread began on an event

static CUresult synchronize(CUevent event)
{
    atomic_fetch_add(&sleeps, 1);
    return real.cuEventSynchronize(event);
}

typedef struct place_t {
    keel_device_t *device;
    keel_queue_t *queue, *other;
    keel_pool_t *pool;
    keel_semaphore_t *gate;
    keel_buffer_t *words; // of each queue
} place_t;

static void place_open(place_t *place, const char *options, const keel_pool_options_t *pool)
{
    atomic_store(&deaf, false);
    place->device = device_open(options);
    place->queue = keel_device_queue(place->device, 0);
    assert_null(keel_queue_create(place->device, NULL, &place->other));
    assert_null(keel_pool_create(place->device, pool, &place->pool));
    assert_null(keel_semaphore_create(place->device, NULL, &place->gate));
    place->words = buffer_create(place->device, 2 * FILLED, KEEL_MEMORY_DEVICE_LOCAL);
}

static void place_close(place_t *place)
{
    keel_buffer_release(place->words);
    keel_semaphore_release(place->gate);
    keel_pool_release(place->pool);
    keel_queue_release(place->other);
    keel_device_release(place->device);
}

static int setup(void **state)
{
    (void)state;
    setenv("KEEL_SIM_CUDA", "memory=8388608,leaks=2", 1);
    symbols = symbols_open(&real);
    if (!symbols) return 1;
    symbols->cuMemsetD32Async = fill;
    symbols->cuEventQuery = query;
    symbols->cuEventSynchronize = synchronize;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    *symbols = real;
    return 0;
}

// Gives the queue something that takes until it is let go.
static keel_point_t queue_hold(const place_t *place, keel_queue_t *queue)
{
    uint64_t at = queue == place->queue ? 0 : FILLED;
    keel_op_t op = keel_op_fill(keel_span(place->words, at, FILLED), HOLDS, 4);
    keel_point_t done;
    atomic_store(&held, true);
    assert_null(keel_queue_run(queue, KEEL_NO_WAITS, op, &done));
    return done;
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
    (void)state;
    place_t opened, *place = &opened;
    keel_point_t ready, last;
    place_open(place, "", &(keel_pool_options_t){.limit = 3 * SIZE});
    keel_buffer_t *a = take(place, place->queue, 2 * SIZE, &ready);
    keel_buffer_t *b = take(place, place->queue, SIZE, &ready);
    queue_hold(place, place->queue);
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
    place_close(place);
}

// And nothing else.
static void test_queues_have_their_own(void **state)
{
    (void)state;
    place_t opened, *place = &opened;
    keel_point_t ready;
    place_open(place, "", &(keel_pool_options_t){.limit = 3 * SIZE});
    keel_buffer_t *a = take(place, place->queue, SIZE, &ready);
    keel_buffer_t *b = take(place, place->other, 2 * SIZE, &ready);
    queue_hold(place, place->queue);
    queue_hold(place, place->other);
    give(place->queue, KEEL_NO_WAITS, a);
    give(place->other, KEEL_NO_WAITS, b);
    a = take(place, place->queue, SIZE, &ready);
    b = take(place, place->other, 2 * SIZE, &ready);
    check(place, 3 * SIZE, 0);
    give(place->queue, KEEL_NO_WAITS, a);
    a = take(place, place->other, SIZE, &ready);
    check(place, 3 * SIZE, 1);
    atomic_store(&held, false);
    ok(ready);
    give(place->other, KEEL_NO_WAITS, a);
    give(place->other, KEEL_NO_WAITS, b);
    place_close(place);
}

// So does what waits already, behind a dealloca that was issued first after all.
static void test_who_waits_has_it_too(void **state)
{
    (void)state;
    place_t opened, *place = &opened;
    keel_point_t ready, last;
    place_open(place, "", &(keel_pool_options_t){.limit = 3 * SIZE});
    keel_buffer_t *a = take(place, place->queue, 3 * SIZE, &ready);
    queue_hold(place, place->queue);
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
    place_close(place);
}

typedef struct shortage_t {
    const char *options;
    keel_pool_options_t pool;
    uint64_t size; // of which there is one
} shortage_t;

static const shortage_t shortages[] = {
    {"", {.limit = SIZE}, SIZE},
    {"", {.limit = SIZE, .memory = KEEL_MEMORY_HOST_VISIBLE}, SIZE},
    {"&alloc=sync", {.limit = SIZE}, SIZE},
    {"", {0}, HALF},
};

// An alloca waits for a dealloca behind work of another queue. No event says anything to a thread
// that looks at it now and then; but a watcher sleeps until it has come. The dealloca is on the
// stream before the alloca waits, or comes late; with work of its own, or with none.
static void check_wakes(const shortage_t *shortage, bool late, bool works)
{
    place_t opened, *place = &opened;
    keel_point_t ready, last;
    place_open(place, shortage->options, &shortage->pool);
    keel_buffer_t *a = take(place, place->queue, shortage->size, &ready), *b;
    ok(ready);
    keel_op_t work[] = {keel_op_fill(keel_span(place->words, 0, FILLED), 1, 4), keel_op_barrier(),
                        keel_op_dealloca(a)};
    keel_point_t points[] = {queue_hold(place, place->queue), keel_point(place->gate, 1)};
    keel_points_t waits = {points, late ? 2 : 1};
    assert_null(keel_queue_submit(place->queue, waits, works ? work : work + 2, works ? 3 : 1,
                                  KEEL_NO_SIGNALS, NULL));
    b = take(place, place->other, shortage->size, &last);
    assert_null(keel_semaphore_signal(place->gate, 1));
    keel_buffer_info_t info;
    keel_buffer_info(b, &info);
    assert_false(info.resident);
    atomic_store(&deaf, true);
    atomic_store(&held, false);
    assert_null(keel_wait(KEEL_POINTS(last), KEEL_ALL, 3ull * SECOND_NS));
    atomic_store(&deaf, false);
    // No alloca waits any more, and no watcher sleeps for what comes back now.
    work[2] = keel_op_dealloca(b);
    atomic_store(&sleeps, 0);
    assert_null(keel_queue_submit(place->other, KEEL_AFTER(last), work, 3, KEEL_NO_SIGNALS, &last));
    uint64_t value = 0, end = keel_now_ns() + 3ull * SECOND_NS;
    while (value < last.value && keel_now_ns() < end)
        assert_null(keel_semaphore_value(last.semaphore, &value));
    assert_int_equal(atomic_load(&sleeps), 0);
    keel_buffer_release(a);
    keel_buffer_release(b);
    place_close(place);
}

static void test_who_waits_is_woken(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof shortages / sizeof *shortages; i++) {
        for (int how = 0; how < 4; how++) check_wakes(&shortages[i], how & 1, how & 2);
    }
}

// Frees get an event of their own in front of work. What comes meanwhile and puts nothing on the
// stream ends, and leaves no free that is for ever under way: who waits is told that none is left.
static void test_who_waits_in_vain_is_told(void **state)
{
    (void)state;
    place_t opened, *place = &opened;
    keel_buffer_options_t size = {.size = HALF};
    keel_point_t ready, last;
    place_open(place, "", &(keel_pool_options_t){.limit = 1 << 30});
    keel_buffer_t *a = take(place, place->queue, HALF, &ready), *b = NULL;
    keel_buffer_t *before = take(place, place->queue, SIZE, &ready);
    keel_buffer_t *meanwhile = take(place, place->queue, SIZE, &ready);
    ok(ready);
    assert_null(keel_buffer_reserve(place->pool, &size, &b));
    queue_hold(place, place->queue);
    give(place->queue, KEEL_NO_WAITS, before);
    keel_op_t ops[] = {keel_op_alloca(b), keel_op_barrier(),
                       keel_op_fill(keel_span(place->words, 0, FILLED), 1, 4)};
    assert_null(keel_queue_submit(place->queue, KEEL_NO_WAITS, ops, 3, KEEL_NO_SIGNALS, &last));
    give(place->queue, KEEL_NO_WAITS, meanwhile);
    atomic_store(&held, false);
    keel_status_t status = keel_wait(KEEL_POINTS(last), KEEL_ALL, PATIENCE_NS);
    give(place->queue, KEEL_NO_WAITS, a); // for which it must not have waited
    assert_int_equal(keel_status_code(status), KEEL_RESOURCE_EXHAUSTED);
    keel_status_release(status);
    keel_buffer_release(b);
    place_close(place);
}

static void *create_main(void *argument)
{
    const place_t *place = argument;
    keel_buffer_options_t size = {.size = HALF};
    keel_buffer_t *buffer = NULL;
    keel_status_t status = keel_buffer_create(place->device, &size, &buffer);
    keel_buffer_release(buffer);
    return status;
}

// Memory was released while the device is busy. A thread that needs it, an alloca or a call that
// makes a buffer, has queues held up for it.
static void check_needed(bool by_call)
{
    place_t opened, *place = &opened;
    keel_point_t last;
    pthread_t thread;
    void *failed = NULL;
    place_open(place, "", &(keel_pool_options_t){.limit = 1 << 30});
    keel_buffer_t *old = buffer_create(place->device, HALF, 0), *b = NULL;
    queue_hold(place, place->queue);
    atomic_store(&holds, 0);
    atomic_store(&patient, stream_device(place->device));
    keel_buffer_release(old);
    if (by_call)
        assert_int_equal(pthread_create(&thread, NULL, create_main, place), 0);
    else
        b = take(place, place->other, HALF, &last);
    await(atomic_load(&holds) > 0);
    atomic_store(&held, false);
    if (by_call)
        pthread_join(thread, &failed);
    else
        ok(last), give(place->other, KEEL_NO_WAITS, b);
    assert_null(failed);
    atomic_store(&patient, NULL);
    place_close(place);
}

static void test_who_needs_memory_has_queues_held_up(void **state)
{
    (void)state;
    check_needed(false);
    check_needed(true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_queue_has_what_it_gave_back),
        cmocka_unit_test(test_queues_have_their_own),
        cmocka_unit_test(test_who_waits_has_it_too),
        cmocka_unit_test(test_who_waits_is_woken),
        cmocka_unit_test(test_who_waits_in_vain_is_told),
        cmocka_unit_test(test_who_needs_memory_has_queues_held_up),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
