// SPDX-License-Identifier: Apache-2.0
// Having the vendor notice what was freed on streams, on the CUDA driver in software: looks at what
// streams an event is recorded on and waited for by the thread that needs the memory, and whether
// it gets the memory.
#include <stdlib.h>
#include <string.h>

#include "drivers/cuda/device.h"

enum { SIZE = 1 << 20, LARGE = 40 << 20, MARKS = 256 };

// Events that this thread has recorded.
typedef struct mark_t {
    CUevent event;
    CUstream stream;
    bool waited_for;
} mark_t;

static cuda_symbols_t *symbols;
static cuda_symbols_t real;
static _Thread_local mark_t marks[MARKS];
static _Thread_local uint32_t mark_count;
static _Thread_local uint32_t late;      // so many questions after events are answered with no
static _Thread_local uint32_t questions; // after events that others have recorded
static _Atomic bool held;                // copies take as long as that
static _Atomic bool stuck, at_it;        // and so do calls that enqueue them; one is there
static _Atomic bool blind, broken;       // nothing is found to be over; copies fail for good
static _Atomic uint32_t trims;
static _Atomic uint32_t looks; // of the keeper, at events
static _Atomic int buffers;    // that have memory
static CUstream created;       // the last stream that was

static CUresult stream_create(CUstream *stream, unsigned int flags, int priority)
{
    CUresult result = real.cuStreamCreateWithPriority(stream, flags, priority);
    created = *stream;
    return result;
}

static CUresult mem_alloc(CUdeviceptr *address, size_t size)
{
    CUresult result = real.cuMemAlloc(address, size);
    if (!result) atomic_fetch_add(&buffers, 1);
    return result;
}

static CUresult mem_free(CUdeviceptr address)
{
    CUresult result = real.cuMemFree(address);
    atomic_fetch_sub(&buffers, 1);
    return result;
}

static CUresult event_record(CUevent event, CUstream stream)
{
    if (mark_count < MARKS) marks[mark_count++] = (mark_t){event, stream, false};
    return real.cuEventRecord(event, stream);
}

static CUresult event_query(CUevent event)
{
    questions++;
    if (thread_is("keel-keeper")) atomic_fetch_add(&looks, 1);
    for (uint32_t i = 0; i < mark_count; i++)
        if (marks[i].event == event) questions--;
    if (!late && !atomic_load(&blind)) return real.cuEventQuery(event);
    if (late) late--;
    return CUDA_ERROR_NOT_READY;
}

static CUresult event_sync(CUevent event)
{
    for (uint32_t i = 0; i < mark_count; i++) marks[i].waited_for |= marks[i].event == event;
    return real.cuEventSynchronize(event);
}

static CUresult pool_trim_to(CUmemoryPool pool, size_t keep)
{
    atomic_fetch_add(&trims, 1);
    return real.cuMemPoolTrimTo(pool, keep);
}

static CUresult copy(CUdeviceptr target, CUdeviceptr source, size_t size, CUstream stream)
{
    atomic_store(&at_it, true);
    held_wait(&stuck);
    if (atomic_load(&broken)) return CUDA_ERROR_ILLEGAL_ADDRESS;
    return held_copy(&real, &held, target, source, size, stream);
}

typedef struct place_t {
    keel_device_t *device;
    CUstream side;       // of the device's, beside all queues
    CUstream streams[3]; // of the queues; the first is the application's
    keel_queue_t *queues[3];
    keel_pool_t *pools[2];
    keel_buffer_t *words;
} place_t;

static int setup(void **state)
{
    static place_t place;
    CUcontext context;
    char options[64];
    setenv("KEEL_SIM_CUDA", "memory=64M", 1);
    symbols = symbols_open(&real);
    if (!symbols || real.cuDevicePrimaryCtxRetain(&context, 0)) return 1;
    if (real.cuCtxSetCurrent(context)) return 1;
    if (real.cuStreamCreateWithPriority(&place.streams[0], 1, 0)) return 1;
    snprintf(options, sizeof options, "&stream=%p", (void *)place.streams[0]);
    symbols->cuStreamCreateWithPriority = stream_create;
    place.device = device_open(options);
    place.side = created;
    place.queues[0] = keel_device_queue(place.device, 0);
    symbols->cuMemAlloc = mem_alloc;
    symbols->cuMemFree = mem_free;
    place.words = buffer_create(place.device, FILLED, 0);
    for (int i = 1; i < 3; i++) {
        if (keel_queue_create(place.device, NULL, &place.queues[i])) return 1;
        place.streams[i] = stream_of(place.queues[i], place.words);
    }
    for (int i = 0; i < 2; i++)
        if (keel_pool_create(place.device, NULL, &place.pools[i])) return 1;
    symbols->cuEventRecord = event_record;
    symbols->cuEventQuery = event_query;
    symbols->cuEventSynchronize = event_sync;
    symbols->cuMemcpyAsync = copy;
    symbols->cuMemPoolTrimTo = pool_trim_to;
    *state = &place;
    return 0;
}

static int teardown(void **state)
{
    place_t *place = *state;
    for (int i = 0; i < 2; i++) keel_pool_release(place->pools[i]);
    for (int i = 1; i < 3; i++) keel_queue_release(place->queues[i]);
    keel_buffer_release(place->words);
    keel_device_release(place->device);
    *symbols = real;
    return real.cuStreamDestroy(place->streams[0]) || real.cuCtxSetCurrent(NULL) ||
           real.cuDevicePrimaryCtxRelease(0);
}

static bool is_marked(CUstream stream)
{
    for (uint32_t i = 0; i < mark_count; i++)
        if (marks[i].stream == stream) return true;
    return false;
}

static bool is_settled(CUstream stream)
{
    for (uint32_t i = 0; i < mark_count; i++)
        if (marks[i].stream == stream && marks[i].waited_for) return true;
    return false;
}

// Memory comes and goes, so that there is some to trim.
static void pool_use_of(keel_pool_t *pool, keel_queue_t *queue, uint64_t size)
{
    keel_buffer_t *buffer = NULL;
    keel_point_t done;
    assert_null(keel_queue_alloca(queue, pool, size, &buffer, &done));
    ok(done);
    assert_null(keel_queue_dealloca(queue, KEEL_NO_WAITS, buffer, &done));
    ok(done);
    keel_buffer_release(buffer);
}

static void pool_use(const place_t *place, keel_queue_t *queue)
{
    pool_use_of(place->pools[0], queue, SIZE);
}

static void pool_trim(const place_t *place)
{
    mark_count = 0;
    assert_null(keel_pool_trim(place->pools[0], 0));
}

// Streams that have nothing to do, and the one on which released buffers are freed; what is the
// application's is left alone.
static void test_idle_streams(void **state)
{
    const place_t *place = *state;
    for (int i = 0; i < 3; i++) pool_use(place, place->queues[i]);
    pool_trim(place);
    assert_true(is_settled(place->streams[1]));
    assert_true(is_settled(place->streams[2]));
    assert_true(is_settled(place->side));
    assert_false(is_marked(place->streams[0]));
}

// Nothing is put on a stream that works, and no thread waits for it, be it that something was freed
// behind its work. Nor on one without frees behind its last event.
static void test_busy_stream(void **state)
{
    const place_t *place = *state;
    keel_buffer_t *x = buffer_create(place->device, FILLED, 0),
                  *y = buffer_create(place->device, FILLED, 0), *freed = NULL;
    keel_point_t done;
    pool_use(place, place->queues[1]);
    assert_null(keel_queue_alloca(place->queues[2], place->pools[0], SIZE, &freed, &done));
    ok(done);
    atomic_store(&held, true);
    assert_null(
        keel_queue_copy(place->queues[2], KEEL_NO_WAITS, keel_whole(x), keel_whole(y), &done));
    assert_null(keel_queue_dealloca(place->queues[2], KEEL_NO_WAITS, freed, NULL));
    questions = 0;
    pool_trim(place);
    assert_true(is_settled(place->streams[1]));
    assert_false(is_marked(place->streams[2]));
    assert_true(questions < 20); // of those who look how far it is
    atomic_store(&held, false);
    ok(done);
    assert_null(
        keel_queue_copy(place->queues[2], KEEL_NO_WAITS, keel_whole(x), keel_whole(y), &done));
    ok(done);
    pool_use(place, place->queues[1]);
    pool_trim(place);
    assert_false(is_marked(place->streams[2]));
    keel_buffer_release(x), keel_buffer_release(y), keel_buffer_release(freed);
}

// An event on an idle stream comes in a moment, which is given it. One that does not, because the
// stream shares a channel with another, is not waited for.
static void test_late_events(void **state)
{
    const place_t *place = *state;
    bool settled = false;
    // The moment is 10 ms, in which this thread may not get to ask so often.
    for (int attempt = 0; attempt < 100 && !settled; attempt++) {
        for (int i = 1; i < 3; i++) pool_use(place, place->queues[i]);
        late = 3;
        pool_trim(place);
        settled = is_settled(place->streams[1]) && is_settled(place->streams[2]) &&
                  is_settled(place->side);
        late = 0;
    }
    assert_true(settled);
    pool_use(place, place->queues[1]);
    late = UINT32_MAX;
    pool_trim(place);
    assert_true(UINT32_MAX - late < 500); // it is not asked after all the time
    late = 0;
    assert_true(is_marked(place->streams[1]));
    for (uint32_t i = 0; i < mark_count; i++) assert_false(marks[i].waited_for);
}

// The stream for which memory is sought is one of them, though a thread issues to it.
static void test_own_stream(void **state)
{
    const place_t *place = *state;
    keel_queue_t *queue = place->queues[1];
    keel_buffer_t *x = NULL, *y = NULL;
    keel_point_t done;
    assert_null(keel_queue_alloca(queue, place->pools[0], LARGE, &x, &done));
    assert_null(keel_queue_dealloca(queue, KEEL_AFTER(done), x, &done));
    ok(done);
    mark_count = 0;
    assert_null(keel_queue_alloca(queue, place->pools[1], LARGE, &y, &done));
    assert_true(is_settled(place->streams[1]));
    assert_null(keel_queue_dealloca(queue, KEEL_AFTER(done), y, &done));
    ok(done);
    keel_buffer_release(x), keel_buffer_release(y);
}

static uint64_t reserved_by(keel_pool_t *pool)
{
    keel_pool_stats_t stats;
    keel_pool_stats(pool, &stats);
    return stats.reserved;
}

static keel_point_t copy_begin(const place_t *place, keel_queue_t *queue)
{
    keel_buffer_t *x = buffer_create(place->device, FILLED, 0),
                  *y = buffer_create(place->device, FILLED, 0);
    keel_point_t done;
    assert_null(keel_queue_copy(queue, KEEL_NO_WAITS, keel_whole(x), keel_whole(y), &done));
    keel_buffer_release(x), keel_buffer_release(y);
    return done;
}

// A thread that sleeps for work on the application's stream sleeps for nothing that others put
// there.
static void test_own_stream_has_other_work(void **state)
{
    const place_t *place = *state;
    static _Atomic bool other = true;
    atomic_store(&held, true);
    keel_point_t done = copy_begin(place, place->queues[0]);
    assert_int_equal(real.cuLaunchHostFunc(place->streams[0], held_call, &other), 0);
    atomic_store(&blind, true);
    atomic_store(&held, false);
    keel_status_t status = keel_wait(KEEL_POINTS(done), KEEL_ALL, PATIENCE_NS / 2);
    atomic_store(&blind, false);
    atomic_store(&other, false);
    assert_null(status);
}

// What was freed before a stream got work that lasts goes back meanwhile, and others may have it:
// allocas, trims, and buffers. With work before the frees, which has an event, and without.
static void test_freed_before_work(void **state)
{
    const place_t *place = *state;
    for (int i = 0; i < 4; i++) {
        keel_queue_t *queue = place->queues[i % 2]; // the application's, and one that is not
        if (i / 2) ok(copy_begin(place, queue));
        pool_use_of(place->pools[0], queue, LARGE);
        atomic_store(&held, true);
        keel_point_t done = copy_begin(place, queue);
        pool_use_of(place->pools[1], place->queues[2], LARGE);
        assert_int_equal(reserved_by(place->pools[0]), 0);
        assert_null(keel_pool_trim(place->pools[1], 0));
        assert_int_equal(reserved_by(place->pools[1]), 0);
        keel_buffer_t *buffer = buffer_create(place->device, LARGE, 0);
        atomic_store(&held, false);
        ok(done);
        keel_buffer_release(buffer);
    }
}

static void come(void *user)
{
    atomic_store((_Atomic bool *)user, true);
}

// Frees on a queue of its own, behind work that has come though no thread looked, or with `soon` in
// front of work that stays. Whether a thread that makes a buffer finds that memory.
static bool freed_just_now(const place_t *place, keel_buffer_t *word, bool soon)
{
    keel_buffer_options_t size = {.size = LARGE};
    keel_buffer_t *x = NULL, *found = NULL;
    keel_queue_t *queue = NULL;
    keel_point_t done;
    _Atomic bool there = false;
    assert_null(keel_queue_create(place->device, NULL, &queue));
    assert_null(keel_queue_alloca(queue, place->pools[0], LARGE, &x, &done));
    ok(done);
    await(atomic_load(&buffers) == 2); // nothing is to be given back, for which others issue
    CUstream stream = stream_of(queue, place->words);
    keel_op_t ops[] = {keel_op_fill(keel_whole(word), 0, 4), keel_op_barrier(),
                       keel_op_dealloca(x)};
    assert_null(keel_queue_submit(queue, KEEL_NO_WAITS, soon ? ops + 2 : ops, soon ? 1 : 3,
                                  KEEL_NO_SIGNALS, &done));
    atomic_store(&held, soon);
    if (soon) {
        done = copy_begin(place, queue);
    } else {
        assert_null(keel_queue_fill(queue, KEEL_NO_WAITS, keel_whole(word), 1, 4, &done));
        assert_int_equal(real.cuLaunchHostFunc(stream, come, &there), 0);
        await(atomic_load(&there));
    }
    late = soon ? 4 : 0; // which are those of the thread that looks how far the stream is
    keel_status_t status = keel_buffer_create(place->device, &size, &found);
    late = 0;
    atomic_store(&held, false);
    ok(done);
    keel_queue_release(queue);
    keel_buffer_release(found), keel_buffer_release(x);
    keel_status_release(status);
    return !status;
}

// It does; and waits a moment for frees that have nothing else before them, if they have yet to
// come. As above it may not get to ask so often in that moment.
static void test_freed_just_now(void **state)
{
    const place_t *place = *state;
    keel_buffer_t *word = buffer_create(place->device, 64, 0);
    assert_true(freed_just_now(place, word, false));
    bool found = false;
    for (int attempt = 0; attempt < 100 && !found; attempt++)
        found = freed_just_now(place, word, true);
    assert_true(found);
    keel_buffer_release(word);
}

static void *copy_main(void *argument)
{
    const place_t *place = argument;
    ok(copy_begin(place, place->queues[1]));
    return NULL;
}

// The same while a thread issues to the stream, which does not come back from the vendor.
static void test_freed_while_issuing(void **state)
{
    place_t *place = *state;
    pthread_t thread;
    pool_use_of(place->pools[0], place->queues[1], LARGE);
    atomic_store(&at_it, false);
    atomic_store(&stuck, true);
    assert_int_equal(pthread_create(&thread, NULL, copy_main, place), 0);
    while (!atomic_load(&at_it)) nanosleep(&(struct timespec){.tv_nsec = MS}, NULL);
    pool_use_of(place->pools[1], place->queues[2], LARGE);
    atomic_store(&stuck, false);
    pthread_join(thread, NULL);
}

// And when there is no such stream any more.
static void test_freed_for_the_last_time(void **state)
{
    const place_t *place = *state;
    keel_queue_t *queue = NULL;
    assert_null(keel_queue_create(place->device, NULL, &queue));
    pool_use_of(place->pools[0], queue, LARGE);
    keel_queue_release(queue);
    pool_use_of(place->pools[1], place->queues[2], LARGE);
}

// A device may be lost when a queue has nothing but frees left that are not known to be over; it
// says what came behind them.
static void test_lost_behind_frees(void **state)
{
    (void)state;
    keel_device_t *device = device_open("");
    keel_queue_t *queue = keel_device_queue(device, 0);
    keel_buffer_t *x = buffer_create(device, FILLED, 0), *y = buffer_create(device, FILLED, 0);
    keel_pool_t *pool = NULL;
    keel_point_t done;
    assert_null(keel_pool_create(device, NULL, &pool));
    pool_use_of(pool, queue, SIZE);
    atomic_store(&blind, true);
    assert_null(keel_queue_copy(queue, KEEL_NO_WAITS, keel_whole(x), keel_whole(y), NULL));
    atomic_store(&broken, true);
    assert_null(keel_queue_copy(queue, KEEL_NO_WAITS, keel_whole(x), keel_whole(y), &done));
    atomic_store(&blind, false);
    atomic_store(&broken, false);
    keel_status_t status = keel_wait(KEEL_POINTS(done), KEEL_ALL, KEEL_FOREVER);
    assert_int_equal(keel_status_code(status), KEEL_DEVICE_LOST);
    assert_non_null(strstr(keel_status_message(status), "submission 3")); // the first copy
    keel_status_release(status);
    keel_pool_release(pool);
    keel_buffer_release(x), keel_buffer_release(y);
    keel_device_release(device);
}

// A pool that is beyond its threshold because buffers hold so much has nothing to give back, and
// no thread looks for it each time that something is freed.
static void test_live_memory(void **state)
{
    const place_t *place = *state;
    keel_buffer_t *x = buffer_create(place->device, FILLED, 0),
                  *y = buffer_create(place->device, FILLED, 0), *live = NULL;
    keel_pool_t *pool = NULL;
    keel_point_t done;
    assert_null(keel_pool_create(place->device, &(keel_pool_options_t){.threshold = 1}, &pool));
    assert_null(keel_queue_alloca(place->queues[1], pool, SIZE, &live, &done));
    ok(done);
    atomic_store(&held, true);
    assert_null(
        keel_queue_copy(place->queues[2], KEEL_NO_WAITS, keel_whole(x), keel_whole(y), &done));
    atomic_store(&trims, 0);
    for (int i = 0; i < 10; i++) {
        pool_use_of(pool, place->queues[1], SIZE);
        uint32_t before = atomic_load(&looks);
        await(atomic_load(&looks) > before + 1); // one may have been under way
    }
    assert_int_equal(atomic_load(&trims), 0);
    keel_buffer_release(live);
    await(atomic_load(&trims) > 0);
    atomic_store(&held, false);
    ok(done);
    keel_pool_release(pool);
    keel_buffer_release(x), keel_buffer_release(y);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_idle_streams),
        cmocka_unit_test(test_busy_stream),
        cmocka_unit_test(test_late_events),
        cmocka_unit_test(test_own_stream),
        cmocka_unit_test(test_own_stream_has_other_work),
        cmocka_unit_test(test_freed_before_work),
        cmocka_unit_test(test_freed_just_now),
        cmocka_unit_test(test_freed_while_issuing),
        cmocka_unit_test(test_freed_for_the_last_time),
        cmocka_unit_test(test_lost_behind_frees),
        cmocka_unit_test(test_live_memory),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
