// SPDX-License-Identifier: Apache-2.0
// Having the vendor notice what was freed on streams, on the CUDA driver in software, which notices
// too much by itself: looks at what streams an event is recorded on and waited for by the thread
// that needs the memory.
#include <stdlib.h>
#include <string.h>

#include "drivers/cuda/device.h"
#include "drivers/stream/stream.h"

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
static _Thread_local uint32_t late; // so many questions after its events are answered with no
static _Atomic bool held;           // copies take as long as that
static _Atomic uint32_t trims;

static CUresult event_record(CUevent event, CUstream stream)
{
    if (mark_count < MARKS) marks[mark_count++] = (mark_t){event, stream, false};
    return real.cuEventRecord(event, stream);
}

static CUresult event_query(CUevent event)
{
    if (!late) return real.cuEventQuery(event);
    late--;
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
    return held_copy(&real, &held, target, source, size, stream);
}

typedef struct place_t {
    keel_device_t *device;
    CUstream stream;         // the first queue's, which is the application's
    keel_queue_t *queues[3]; // the others are not
    keel_pool_t *pools[2];
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
    if (real.cuStreamCreateWithPriority(&place.stream, 1, 0)) return 1;
    snprintf(options, sizeof options, "&stream=%p", (void *)place.stream);
    place.device = device_open(options);
    place.queues[0] = keel_device_queue(place.device, 0);
    for (int i = 1; i < 3; i++)
        if (keel_queue_create(place.device, NULL, &place.queues[i])) return 1;
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
    keel_device_release(place->device);
    *symbols = real;
    return real.cuStreamDestroy(place->stream) || real.cuCtxSetCurrent(NULL) ||
           real.cuDevicePrimaryCtxRelease(0);
}

static CUstream stream_of(const keel_queue_t *queue)
{
    return (CUstream)stream_queue(queue)->stream;
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
static void pool_use_of(keel_pool_t *pool, keel_queue_t *queue)
{
    keel_buffer_t *buffer = NULL;
    keel_point_t done;
    assert_null(keel_queue_alloca(queue, pool, SIZE, &buffer, &done));
    ok(done);
    assert_null(keel_queue_dealloca(queue, KEEL_NO_WAITS, buffer, &done));
    ok(done);
    keel_buffer_release(buffer);
}

static void pool_use(const place_t *place, keel_queue_t *queue)
{
    pool_use_of(place->pools[0], queue);
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
    assert_true(is_settled(stream_of(place->queues[1])));
    assert_true(is_settled(stream_of(place->queues[2])));
    assert_true(is_settled((CUstream)stream_device(place->device)->side));
    assert_false(is_marked(place->stream));
}

// Nothing is put on a stream that works, and nobody waits for it.
static void test_busy_stream(void **state)
{
    const place_t *place = *state;
    keel_buffer_t *x = buffer_create(place->device, 64, 0),
                  *y = buffer_create(place->device, 64, 0);
    keel_point_t done;
    pool_use(place, place->queues[1]);
    atomic_store(&held, true);
    assert_null(
        keel_queue_copy(place->queues[2], KEEL_NO_WAITS, keel_whole(x), keel_whole(y), &done));
    pool_trim(place);
    assert_true(is_settled(stream_of(place->queues[1])));
    assert_false(is_marked(stream_of(place->queues[2])));
    atomic_store(&held, false);
    ok(done);
    keel_buffer_release(x), keel_buffer_release(y);
}

// An event on an idle stream comes in a moment, which is given it. One that does not, because the
// stream shares a channel with another, is not waited for.
static void test_late_events(void **state)
{
    const place_t *place = *state;
    pool_use(place, place->queues[1]);
    late = 3;
    pool_trim(place);
    assert_true(is_settled(stream_of(place->queues[1])));
    assert_true(is_settled(stream_of(place->queues[2])));
    assert_true(is_settled((CUstream)stream_device(place->device)->side));
    pool_use(place, place->queues[1]);
    late = UINT32_MAX;
    pool_trim(place);
    assert_true(UINT32_MAX - late < 500); // it is not asked after all the time
    late = 0;
    assert_true(is_marked(stream_of(place->queues[1])));
    for (uint32_t i = 0; i < mark_count; i++) assert_false(marks[i].waited_for);
}

// The stream for which memory is sought is one of them, though somebody issues to it.
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
    assert_true(is_settled(stream_of(queue)));
    assert_null(keel_queue_dealloca(queue, KEEL_AFTER(done), y, &done));
    ok(done);
    keel_buffer_release(x), keel_buffer_release(y);
}

// A pool that is beyond its threshold because buffers hold so much has nothing to give back, and
// nobody looks for it each time that something is freed.
static void test_live_memory(void **state)
{
    const place_t *place = *state;
    keel_buffer_t *x = buffer_create(place->device, 64, 0),
                  *y = buffer_create(place->device, 64, 0), *live = NULL;
    keel_pool_t *pool = NULL;
    keel_point_t done;
    assert_null(keel_pool_create(place->device, &(keel_pool_options_t){.threshold = 1}, &pool));
    assert_null(keel_queue_alloca(place->queues[1], pool, SIZE, &live, &done));
    ok(done);
    atomic_store(&held, true);
    assert_null(
        keel_queue_copy(place->queues[2], KEEL_NO_WAITS, keel_whole(x), keel_whole(y), &done));
    atomic_store(&trims, 0);
    for (int i = 0; i < 20; i++) {
        pool_use_of(pool, place->queues[1]);
        nanosleep(&(struct timespec){.tv_nsec = 10 * MS}, NULL);
    }
    assert_int_equal(atomic_load(&trims), 0);
    keel_buffer_release(live);
    uint64_t end = keel_now_ns() + PATIENCE_NS;
    while (!atomic_load(&trims) && keel_now_ns() < end)
        nanosleep(&(struct timespec){.tv_nsec = MS}, NULL);
    assert_true(atomic_load(&trims) > 0);
    atomic_store(&held, false);
    ok(done);
    keel_pool_release(pool);
    keel_buffer_release(x), keel_buffer_release(y);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_idle_streams), cmocka_unit_test(test_busy_stream),
        cmocka_unit_test(test_late_events),  cmocka_unit_test(test_own_stream),
        cmocka_unit_test(test_live_memory),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
