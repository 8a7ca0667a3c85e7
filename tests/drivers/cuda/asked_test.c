// SPDX-License-Identifier: Apache-2.0
// What a CUDA device asks of the vendor that shows in no result: that it is asked, on the CUDA
// driver in software, whose copies take 300 ms.
#include <pthread.h>
#include <stdlib.h>

#include "drivers/cuda/device.h"

enum { SLOW_NS = 300 * MS, LEAST = 0, GREATEST = -5, NONE = 99 };

static cuda_symbols_t *symbols;
static cuda_symbols_t real;
static _Atomic uint32_t functions, loads, pools, independent, sleeps, streams, streams_gone;
static _Atomic uint32_t own_fills; // by the main thread
static _Atomic bool held;          // copies begin when so many threads sleep for events
static _Atomic uint32_t sleepers;
static pthread_t main_thread;
static _Atomic int priority; // of the first stream since it was NONE
// Kept for all tests: giving memory back waits for what runs, and holds up all who ask the vendor.
static keel_buffer_t *slow_source, *slow_target;

static CUresult stream_create(CUstream *stream, unsigned int flags, int asked)
{
    int none = NONE;
    atomic_fetch_add(&streams, 1);
    atomic_compare_exchange_strong(&priority, &none, asked);
    return real.cuStreamCreateWithPriority(stream, flags, asked);
}

static CUresult stream_destroy(CUstream stream)
{
    atomic_fetch_add(&streams_gone, 1);
    return real.cuStreamDestroy(stream);
}

// As of a card that is like no other.
static CUresult attribute_get(int *value, CUdevice_attribute attribute, CUdevice device)
{
    CUresult result = real.cuDeviceGetAttribute(value, attribute, device);
    if (attribute == CU_DEVICE_ATTRIBUTE_WARP_SIZE) *value = 16;
    if (attribute == CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X) *value = 7001;
    if (attribute == CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y) *value = 7002;
    if (attribute == CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z) *value = 7003;
    return result;
}

static CUresult get_function(CUfunction *function, CUmodule module, const char *name)
{
    atomic_fetch_add(&functions, 1);
    return real.cuModuleGetFunction(function, module, name);
}

static CUresult func_load(CUfunction function)
{
    atomic_fetch_add(&loads, 1);
    return real.cuFuncLoad(function);
}

static CUresult pool_create(CUmemoryPool *pool, const CUmemPoolProps *properties)
{
    atomic_fetch_add(&pools, 1);
    return real.cuMemPoolCreate(pool, properties);
}

static CUresult pool_set(CUmemoryPool pool, CUmemPool_attribute attribute, void *value)
{
    if (attribute == CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES && *(int *)value == 0)
        atomic_fetch_add(&independent, 1);
    return real.cuMemPoolSetAttribute(pool, attribute, value);
}

// Events on which threads sleep, and how often one waited for another, where they spin.
enum { BELLS = 64 };
static _Atomic(CUevent) bells[BELLS];
static _Atomic uint32_t bell_count, spins;

static CUresult event_create(CUevent *event, unsigned int flags)
{
    CUresult result = real.cuEventCreate(event, flags);
    if (flags & CU_EVENT_BLOCKING_SYNC)
        atomic_store(&bells[atomic_fetch_add(&bell_count, 1) % BELLS], *event);
    return result;
}

static CUresult event_sync(CUevent event)
{
    int i = 0;
    while (i < BELLS && atomic_load(&bells[i]) != event) i++;
    if (i == BELLS) atomic_fetch_add(&spins, 1);
    if (atomic_fetch_add(&sleeps, 1) + 1 >= atomic_load(&sleepers)) atomic_store(&held, false);
    return real.cuEventSynchronize(event);
}

static CUresult copy(CUdeviceptr target, CUdeviceptr source, size_t size, CUstream stream)
{
    return held_copy(&real, &held, target, source, size, stream);
}

// Counts sleeps from here on; copies begin when there are so many.
static void sleeps_count(uint32_t count)
{
    atomic_store(&sleeps, 0);
    atomic_store(&sleepers, count);
    atomic_store(&held, true);
}

static CUresult fill(CUdeviceptr target, unsigned int pattern, size_t count, CUstream stream)
{
    if (pthread_equal(pthread_self(), main_thread)) atomic_fetch_add(&own_fills, 1);
    return real.cuMemsetD32Async(target, pattern, count, stream);
}

static int setup(void **state)
{
    setenv("KEEL_SIM_CUDA", "slow=300000,leaks=2", 1);
    symbols = symbols_open(&real);
    if (!symbols) return 1;
    symbols->cuStreamCreateWithPriority = stream_create;
    symbols->cuDeviceGetAttribute = attribute_get;
    symbols->cuModuleGetFunction = get_function;
    symbols->cuFuncLoad = func_load;
    symbols->cuMemPoolCreate = pool_create;
    symbols->cuMemPoolSetAttribute = pool_set;
    symbols->cuEventSynchronize = event_sync;
    symbols->cuEventCreate = event_create;
    symbols->cuStreamDestroy = stream_destroy;
    symbols->cuMemsetD32Async = fill;
    symbols->cuMemcpyAsync = copy;
    main_thread = pthread_self();
    *state = device_open("");
    slow_source = buffer_create(*state, FILLED, KEEL_MEMORY_HOST_VISIBLE);
    slow_target = buffer_create(*state, FILLED, KEEL_MEMORY_DEVICE_LOCAL);
    return 0;
}

static int teardown(void **state)
{
    keel_buffer_release(slow_source);
    keel_buffer_release(slow_target);
    keel_device_release(*state);
    *symbols = real;
    return atomic_load(&streams) != atomic_load(&streams_gone);
}

static void test_limits(void **state)
{
    const keel_caps_t *caps = keel_device_caps(*state);
    assert_int_equal(caps->subgroup_size, 16);
    for (int i = 0; i < 3; i++) assert_int_equal(caps->max_group_counts[i], 7001 + i);
}

// With lazy loading the first launch of a kernel may wait for all that runs.
static void test_kernels_are_loaded_early(void **state)
{
    (void)state;
    assert_true(atomic_load(&functions) > 0); // the machine's own
    assert_int_equal(atomic_load(&loads), atomic_load(&functions));
}

static int priority_of(keel_device_t *device, int32_t wanted)
{
    keel_queue_options_t options = {.priority = wanted};
    keel_queue_t *queue = NULL;
    keel_point_t done;
    atomic_store(&priority, NONE);
    assert_null(keel_queue_create(device, &options, &queue));
    assert_null(keel_queue_fill(queue, KEEL_NO_WAITS, keel_whole(slow_target), 1, 4, &done));
    int asked = atomic_load(&priority);
    ok(done);
    keel_queue_release(queue);
    return asked;
}

// The vendor's smaller numbers are the more urgent ones.
static void test_priorities(void **state)
{
    const keel_caps_t *caps = keel_device_caps(*state);
    int usual = priority_of(*state, 0);
    assert_int_equal(priority_of(*state, caps->min_priority), LEAST);
    assert_int_equal(priority_of(*state, caps->max_priority), GREATEST + 1); // the last is its own
    assert_true(usual < LEAST && usual > GREATEST);
}

// Reuse of memory must not make one stream wait for another.
static void test_pools_hide_no_dependencies(void **state)
{
    keel_pool_t *pool = NULL;
    assert_null(keel_pool_create(*state, NULL, &pool));
    assert_true(atomic_load(&pools) > 0);
    assert_int_equal(atomic_load(&independent), atomic_load(&pools));
    keel_pool_release(pool);
}

static uint64_t processor_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (uint64_t)time.tv_sec * 1000 * MS + (uint64_t)time.tv_nsec;
}

// Who waits for long sleeps, in the vendor's library, and is woken from there: if nothing has come
// since, by the queue's own stream.
static void test_waiters_sleep(void **state)
{
    uint64_t start = keel_now_ns(), processor = processor_ns();
    uint32_t made = atomic_load(&streams);
    keel_point_t done;
    sleeps_count(1);
    assert_null(keel_queue_copy(keel_device_queue(*state, 0), KEEL_NO_WAITS,
                                keel_whole(slow_source), keel_whole(slow_target), &done));
    ok(done);
    assert_true(keel_now_ns() - start >= SLOW_NS);
    assert_in_range(processor_ns() - processor, 0, SLOW_NS / 3);
    assert_in_range(atomic_load(&sleeps), 1, 4);
    assert_int_equal(atomic_load(&spins), 0);
    assert_int_equal(atomic_load(&streams), made);
}

static void *wait_for(void *point)
{
    return keel_wait(keel_points(point, 1), KEEL_ALL, KEEL_FOREVER);
}

static void sleepers_await(uint32_t count)
{
    while (atomic_load(&sleeps) < count) nanosleep(&(struct timespec){.tv_nsec = MS}, NULL);
}

// A thread sleeps for the older of two points, while the queue's watcher sleeps for the newer one.
// Both watchers go with the queue.
static void test_older_points_are_watched_too(void **state)
{
    keel_queue_t *queue = NULL;
    int watchers = threads_named("keel-watch");
    assert_null(keel_queue_create(*state, NULL, &queue));
    keel_op_t copy = keel_op_copy(keel_whole(slow_source), keel_whole(slow_target)),
              barrier = keel_op_barrier();
    keel_op_t work[] = {copy, barrier, copy, barrier, copy};
    keel_point_t older, newer;
    pthread_t first, second;
    void *failed;
    uint32_t made = atomic_load(&streams);
    uint64_t start = keel_now_ns();
    sleeps_count(2);
    atomic_store(&priority, NONE); // until the first alarm
    assert_null(keel_queue_submit(queue, KEEL_NO_WAITS, work, 5, KEEL_NO_SIGNALS, &older));
    assert_null(keel_queue_run(queue, KEEL_NO_WAITS, copy, &newer));
    assert_int_equal(pthread_create(&first, NULL, wait_for, &newer), 0);
    sleepers_await(1);
    assert_int_equal(pthread_create(&second, NULL, wait_for, &older), 0);
    assert_int_equal(pthread_join(second, &failed), 0);
    assert_null(failed);
    assert_true(keel_now_ns() - start >= 3ull * SLOW_NS); // and not before
    assert_true(atomic_load(&sleeps) >= 2);
    assert_int_equal(atomic_load(&streams), made + 1);  // what is behind it is not waited for
    assert_int_equal(atomic_load(&priority), GREATEST); // which no queue has
    assert_int_equal(pthread_join(first, &failed), 0);
    assert_null(failed);
    keel_queue_release(queue);
    await(threads_named("keel-watch") <= watchers);
}

// A thread that waits for all of a queue's work needs to be woken once. On a device to which
// nothing is given back: while that is done, other threads issue.
static void test_one_event_serves_a_wait_for_many(void **state)
{
    (void)state;
    enum { COUNT = 200 };
    keel_device_t *device = device_open("");
    keel_queue_t *queue = keel_device_queue(device, 0);
    keel_buffer_t *from = buffer_create(device, FILLED, KEEL_MEMORY_HOST_VISIBLE);
    keel_buffer_t *to = buffer_create(device, FILLED, KEEL_MEMORY_DEVICE_LOCAL);
    keel_point_t points[COUNT + 1];
    for (int idle = 0; idle < 2; idle++) {
        sleeps_count(1);
        assert_null(keel_queue_copy(queue, KEEL_NO_WAITS, keel_whole(from), keel_whole(to),
                                    &points[COUNT]));
        for (int i = 0; i < COUNT; i++)
            assert_null(keel_queue_fill(queue, KEEL_NO_WAITS, keel_whole(to), 1, 4, &points[i]));
        if (idle)
            assert_null(keel_queue_wait_idle(queue, KEEL_FOREVER));
        else
            assert_null(keel_wait(keel_points(points, COUNT + 1), KEEL_ALL, KEEL_FOREVER));
        assert_in_range(atomic_load(&sleeps), 1, 4);
    }
    keel_buffer_release(from);
    keel_buffer_release(to);
    keel_device_release(device);
}

static void wait_fails(keel_point_t point)
{
    keel_status_t status = keel_wait(KEEL_POINTS(point), KEEL_ALL, KEEL_FOREVER);
    assert_int_equal(keel_status_code(status), KEEL_FAILED_PRECONDITION);
    keel_status_release(status);
}

// What may yet fail promises nothing to other queues, and still who waits for it sleeps until the
// device has ended it. Here it does fail, when it is issued: the buffer has no memory.
static void test_what_may_fail_is_watched_too(void **state)
{
    keel_queue_t *queue = keel_device_queue(*state, 0);
    keel_buffer_t *none = NULL;
    keel_buffer_options_t options = {.size = 64};
    keel_semaphore_t *semaphore = NULL;
    assert_null(keel_buffer_reserve(keel_device_pool(*state, 0), &options, &none));
    assert_null(keel_semaphore_create(*state, NULL, &semaphore));
    keel_op_t work[] = {keel_op_copy(keel_whole(slow_source), keel_whole(slow_target)),
                        keel_op_barrier(), keel_op_fill(keel_whole(none), 1, 4)};
    keel_point_t done, signal = keel_point(semaphore, 1);
    sleeps_count(1);
    assert_null(keel_queue_submit(queue, KEEL_NO_WAITS, work, 3, KEEL_NO_SIGNALS, &done));
    wait_fails(done);
    assert_int_equal(atomic_load(&sleeps), 1);
    sleeps_count(1);
    assert_null(keel_queue_submit(queue, KEEL_NO_WAITS, work, 3, KEEL_SIGNAL(signal), NULL));
    wait_fails(signal);
    assert_int_equal(atomic_load(&sleeps), 1);
    keel_semaphore_release(semaphore);
    keel_buffer_release(none);
}

// A thread that signals issues what waited for it, but not all of it if that is much. On
// a device to which nothing is given back, as above.
static void test_long_lists_are_handed_on(void **state)
{
    (void)state;
    enum { QUEUES = 8, EACH = 50 };
    keel_queue_t *queues[QUEUES];
    keel_point_t done[QUEUES];
    keel_semaphore_t *gate = NULL;
    keel_device_t *device = device_open("");
    keel_buffer_t *buffer = buffer_create(device, QUEUES * FILLED, KEEL_MEMORY_DEVICE_LOCAL);
    assert_null(keel_semaphore_create(device, NULL, &gate));
    for (int i = 0; i < QUEUES; i++) assert_null(keel_queue_create(device, NULL, &queues[i]));
    for (int i = 0; i < QUEUES * EACH; i++)
        assert_null(keel_queue_fill(queues[i % QUEUES], KEEL_AFTER(keel_point(gate, 1)),
                                    keel_span(buffer, (uint64_t)(i % QUEUES) * FILLED, FILLED), 1,
                                    4, &done[i % QUEUES]));
    atomic_store(&own_fills, 0);
    assert_null(keel_semaphore_signal(gate, 1));
    assert_in_range(atomic_load(&own_fills), 1, 100);
    assert_null(keel_wait(keel_points(done, QUEUES), KEEL_ALL, KEEL_FOREVER));
    for (int i = 0; i < QUEUES; i++) keel_queue_release(queues[i]);
    keel_semaphore_release(gate);
    keel_buffer_release(buffer);
    keel_device_release(device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_kernels_are_loaded_early),
        cmocka_unit_test(test_priorities),
        cmocka_unit_test(test_pools_hide_no_dependencies),
        cmocka_unit_test(test_waiters_sleep),
        cmocka_unit_test(test_older_points_are_watched_too),
        cmocka_unit_test(test_one_event_serves_a_wait_for_many),
        cmocka_unit_test(test_what_may_fail_is_watched_too),
        cmocka_unit_test(test_long_lists_are_handed_on),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
