// SPDX-License-Identifier: Apache-2.0
// The thread that ends work no thread asks after, on the CUDA driver in software. A pool with a
// threshold has it call the vendor once a round, which is when it is held up.
#include <pthread.h>

#include "drivers/cuda/device.h"
#include "drivers/stream/driver.h"

enum { SIZE = 64 };
enum { QUEUES = 4, BURST = 800, KEPT = 1024, BELLS = 32 };
enum { LARGE = 80 << 20 }; // of which all goes back but a piece of less

static cuda_symbols_t *symbols;
static cuda_symbols_t real;
static keel_device_t *device;
static _Atomic bool held;        // copies take as long as that
static _Atomic uint32_t idle;    // rounds of the keeper without work
static _Atomic uint32_t stop_at; // such a round waits for `submitted`
static _Atomic bool stopped, submitted;
static _Atomic uint32_t events; // there are
static _Atomic uint32_t looks;  // of the keeper, at events
static _Atomic bool awake;      // no watcher sleeps for one

static CUresult copy(CUdeviceptr target, CUdeviceptr source, size_t size, CUstream stream)
{
    return held_copy(&real, &held, target, source, size, stream);
}

static CUresult event_create(CUevent *event, unsigned int flags)
{
    atomic_fetch_add(&events, 1);
    return real.cuEventCreate(event, flags);
}

static CUresult event_destroy(CUevent event)
{
    atomic_fetch_sub(&events, 1);
    return real.cuEventDestroy(event);
}

static CUresult event_query(CUevent event)
{
    if (thread_is("keel-keeper")) atomic_fetch_add(&looks, 1);
    return real.cuEventQuery(event);
}

static _Atomic uint32_t streams; // that were destroyed
static _Atomic bool strange;     // one by a thread of a queue

static CUresult stream_destroy(CUstream stream)
{
    if (helper_here() && !thread_is("keel-keeper")) atomic_store(&strange, true);
    atomic_fetch_add(&streams, 1);
    return real.cuStreamDestroy(stream);
}

static CUresult event_sync(CUevent event)
{
    atomic_store(&awake, false);
    return real.cuEventSynchronize(event);
}

// Reads a field of the device's: no call shows which round of the keeper's is its last.
static uint32_t idle_rounds(void)
{
    return stream_device(device)->idle_rounds;
}

static CUresult pool_get(CUmemoryPool pool, CUmemPool_attribute attribute, void *value)
{
    CUresult result = real.cuMemPoolGetAttribute(pool, attribute, value);
    if (thread_is("keel-keeper")) {
        atomic_store(&idle, idle_rounds());
        bool stop = idle_rounds() && idle_rounds() == atomic_load(&stop_at);
        if (stop) atomic_store(&stopped, true);
        uint64_t end = keel_now_ns() + PATIENCE_NS;
        while (stop && !atomic_load(&submitted) && keel_now_ns() < end)
            nanosleep(&(struct timespec){.tv_nsec = MS}, NULL);
    }
    return result;
}

static int setup(void **state)
{
    keel_pool_options_t options = {.threshold = 1};
    keel_pool_t *pool = NULL;
    symbols = symbols_open(&real);
    if (!symbols) return 1;
    symbols->cuEventCreate = event_create;
    symbols->cuEventDestroy = event_destroy;
    symbols->cuEventQuery = event_query;
    symbols->cuEventSynchronize = event_sync;
    symbols->cuStreamDestroy = stream_destroy;
    device = device_open("");
    if (keel_pool_create(device, &options, &pool)) return 1;
    symbols->cuMemcpyAsync = copy;
    symbols->cuMemPoolGetAttribute = pool_get;
    *state = pool;
    return 0;
}

static int teardown(void **state)
{
    keel_pool_release(*state);
    keel_device_release(device);
    *symbols = real;
    return atomic_load(&events) != 0;
}

// A copy that no thread asks after.
static void copy_submit(keel_buffer_t *from, keel_buffer_t *to)
{
    assert_null(keel_queue_copy(keel_device_queue(device, 0), KEEL_NO_WAITS, keel_whole(from),
                                keel_whole(to), NULL));
}

// Waits until it has ended, without a look at its point.
static void copy_ends(void)
{
    keel_live_t live;
    uint64_t end = keel_now_ns() + PATIENCE_NS;
    do {
        nanosleep(&(struct timespec){.tv_nsec = MS}, NULL);
        keel_live_objects(&live);
    } while (live.submissions && keel_now_ns() < end);
    assert_int_equal(live.submissions, 0);
}

// Waits until the keeper rests, which it does when nothing has come for long. Reads a field of the
// device's: a thread that rests calls nothing.
static void keeper_rests(void)
{
    await(!atomic_load(&stream_device(device)->active));
}

// Has it wake with work, and stay in its last round after that, when it has looked at everything.
static void keeper_stops(keel_buffer_t *from, keel_buffer_t *to)
{
    copy_submit(from, to);
    copy_ends();
    keeper_rests();
    assert_true(atomic_load(&idle) > 0);
    atomic_store(&submitted, false);
    atomic_store(&stopped, false);
    atomic_store(&stop_at, atomic_load(&idle));
    copy_submit(from, to);
    copy_ends();
    await(atomic_load(&stopped));
}

static void keeper_goes_on(void)
{
    atomic_store(&stop_at, 0);
    atomic_store(&submitted, true);
}

// Work that comes in its last round, after it has looked and before it rests, is not forgotten.
static void test_rests_and_forgets_nothing(void **state)
{
    (void)state;
    keel_buffer_t *from = buffer_create(device, SIZE, KEEL_MEMORY_HOST_VISIBLE);
    keel_buffer_t *to = buffer_create(device, SIZE, KEEL_MEMORY_DEVICE_LOCAL);
    keeper_stops(from, to);
    atomic_store(&held, true);
    copy_submit(from, to);
    uint32_t before = atomic_load(&looks);
    keeper_goes_on();
    await(atomic_load(&looks) != before);
    atomic_store(&held, false);
    copy_ends();
    keel_buffer_release(from), keel_buffer_release(to);
}

// Nor is memory, though a dealloca by itself puts nothing on its stream that could be busy.
static void test_forgets_no_memory(void **state)
{
    keel_pool_t *pool = *state;
    keel_pool_stats_t stats;
    keel_buffer_t *from = buffer_create(device, SIZE, KEEL_MEMORY_HOST_VISIBLE);
    keel_buffer_t *to = buffer_create(device, SIZE, KEEL_MEMORY_DEVICE_LOCAL), *large = NULL;
    keel_queue_t *queue = keel_device_queue(device, 0);
    keel_point_t done;
    keeper_stops(from, to);
    assert_null(keel_queue_alloca(queue, pool, LARGE, &large, &done));
    assert_null(keel_queue_dealloca(queue, KEEL_AFTER(done), large, &done));
    ok(done);
    keeper_goes_on();
    uint64_t end = keel_now_ns() + PATIENCE_NS;
    do {
        nanosleep(&(struct timespec){.tv_nsec = MS}, NULL);
        keel_pool_stats(pool, &stats);
    } while (stats.reserved >= LARGE && keel_now_ns() < end);
    assert_true(stats.reserved < LARGE);
    keel_buffer_release(large);
    keel_buffer_release(from), keel_buffer_release(to);
}

// While a watcher sleeps for what comes next there is little to look after: one event, seldom.
static void test_leaves_it_to_watchers(void **state)
{
    (void)state;
    enum { LOOKS = 12, PACE_NS = 40 * MS, MORE = 2 };
    keel_buffer_t *from = buffer_create(device, FILLED, 0), *to = buffer_create(device, FILLED, 0);
    keel_completion_t *queue = NULL;
    keel_point_t done;
    atomic_store(&held, true);
    assert_null(keel_queue_copy(keel_device_queue(device, 0), KEEL_NO_WAITS, keel_whole(from),
                                keel_whole(to), &done));
    atomic_store(&awake, true);
    assert_null(keel_completion_create(&queue));
    assert_null(keel_completion_add(queue, KEEL_POINTS(done), KEEL_ALL, NULL));
    held_wait(&awake);
    uint32_t before = atomic_load(&looks);
    uint64_t start = keel_now_ns();
    await(atomic_load(&looks) - before >= LOOKS);
    uint32_t count = atomic_load(&looks) - before;
    assert_in_range(count, LOOKS, (keel_now_ns() - start) / PACE_NS + MORE);
    atomic_store(&held, false);
    ok(done);
    keel_completion_release(queue);
    keel_buffer_release(from), keel_buffer_release(to);
}

// Much work at once, that waits until it may begin, on each queue with memory of its own.
static void burst(keel_queue_t **queues, keel_buffer_t *from, keel_buffer_t **to)
{
    keel_point_t last[QUEUES];
    atomic_store(&held, true);
    for (int i = 0; i < QUEUES; i++) {
        keel_ref_t target = keel_whole(to[i]);
        assert_null(keel_queue_copy(queues[i], KEEL_NO_WAITS, keel_whole(from), target, NULL));
        for (int j = 0; j < BURST; j++)
            assert_null(keel_queue_fill(queues[i], KEEL_NO_WAITS, target, 0, 4, &last[i]));
    }
    await(atomic_load(&events) > QUEUES * BURST); // other threads may issue a part of it
    atomic_store(&held, false);
    for (int i = 0; i < QUEUES; i++) ok(last[i]);
}

// Events that were needed once are not kept for ever, be they the device's or a queue's; and the
// device goes on after that.
static void test_sheds_events(void **state)
{
    (void)state;
    keel_buffer_t *from = buffer_create(device, FILLED, 0), *to[QUEUES];
    keel_queue_t *queues[QUEUES];
    for (int i = 0; i < QUEUES; i++) to[i] = buffer_create(device, FILLED, 0);
    for (int i = 0; i < QUEUES; i++) assert_null(keel_queue_create(device, NULL, &queues[i]));
    for (int i = 0; i < 2; i++) {
        burst(queues, from, to);
        copy_submit(from, to[0]);                    // takes all that there are
        await(atomic_load(&events) <= KEPT + BELLS); // of sleepers
        assert_true(atomic_load(&events) >= KEPT);
    }
    for (int i = 0; i < QUEUES; i++) keel_queue_release(queues[i]), keel_buffer_release(to[i]);
    keel_buffer_release(from);
}

static void *wait_main(void *point)
{
    ok(*(keel_point_t *)point);
    return NULL;
}

// The thread that ends the last work of a queue, whose own it is, cannot take it apart.
static void test_buries_queues(void **state)
{
    (void)state;
    keel_buffer_t *from = buffer_create(device, FILLED, 0), *to = buffer_create(device, FILLED, 0);
    for (int i = 0; i < 5; i++) {
        uint32_t before = atomic_load(&streams);
        keel_queue_t *queue = NULL;
        keel_point_t done;
        pthread_t thread;
        atomic_store(&held, true);
        atomic_store(&awake, true);
        assert_null(keel_queue_create(device, NULL, &queue));
        assert_null(keel_queue_copy(queue, KEEL_NO_WAITS, keel_whole(from), keel_whole(to), &done));
        keel_semaphore_retain(done.semaphore);
        keel_queue_release(queue);
        assert_int_equal(pthread_create(&thread, NULL, wait_main, &done), 0);
        await(!atomic_load(&awake));
        atomic_store(&held, false);
        pthread_join(thread, NULL);
        keel_semaphore_release(done.semaphore);
        await(atomic_load(&streams) != before);
    }
    assert_false(atomic_load(&strange));
    keel_buffer_release(from), keel_buffer_release(to);
}

static _Atomic bool enough;

static void *shed_main(void *queue)
{
    while (!atomic_load(&enough)) stream_queue_shed(queue);
    return NULL;
}

// Who gives events back keeps others from issuing meanwhile, and does it for them. The keeper does
// it too seldom to meet a submission, so a thread does what the keeper does.
static void test_sheds_while_others_submit(void **state)
{
    (void)state;
    keel_queue_t *queue = keel_device_queue(device, 0);
    keel_buffer_t *buffer = buffer_create(device, SIZE, 0);
    keel_status_t status = NULL;
    keel_point_t done;
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, shed_main, stream_queue(queue)), 0);
    for (int i = 0; i < 2000 && !status; i++) {
        assert_null(keel_queue_fill(queue, KEEL_NO_WAITS, keel_whole(buffer), 1, 4, &done));
        status = keel_wait(KEEL_POINTS(done), KEEL_ALL, PATIENCE_NS);
    }
    atomic_store(&enough, true);
    pthread_join(thread, NULL);
    assert_null(status);
    keel_buffer_release(buffer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rests_and_forgets_nothing),
        cmocka_unit_test(test_forgets_no_memory),
        cmocka_unit_test(test_leaves_it_to_watchers),
        cmocka_unit_test(test_sheds_events),
        cmocka_unit_test(test_buries_queues),
        cmocka_unit_test(test_sheds_while_others_submit),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
