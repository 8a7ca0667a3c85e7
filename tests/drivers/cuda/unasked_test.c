// SPDX-License-Identifier: Apache-2.0
// Calls of the vendor's that a CUDA device can do without, on the CUDA driver in software: they are
// counted while the device is busy.
#include "drivers/cuda/device.h"

enum { SIZE = FILLED, LINKS = 20 };

static cuda_symbols_t *symbols;
static cuda_symbols_t real;
static _Thread_local uint32_t waits, records, queries, fills; // of the thread that submits
static _Atomic bool held;                                     // copies take as long as that

static CUresult stream_wait(CUstream stream, CUevent event, unsigned int flags)
{
    waits++;
    return real.cuStreamWaitEvent(stream, event, flags);
}

static CUresult event_record(CUevent event, CUstream stream)
{
    records++;
    return real.cuEventRecord(event, stream);
}

static CUresult event_query(CUevent event)
{
    queries++;
    return real.cuEventQuery(event);
}

static CUresult fill(CUdeviceptr target, unsigned int pattern, size_t count, CUstream stream)
{
    fills++;
    return real.cuMemsetD32Async(target, pattern, count, stream);
}

static CUresult copy(CUdeviceptr target, CUdeviceptr source, size_t size, CUstream stream)
{
    return held_copy(&real, &held, target, source, size, stream);
}

typedef struct work_t {
    keel_device_t *device;
    keel_queue_t *queues[2];
    keel_buffer_t *from, *to;
} work_t;

static int setup(void **state)
{
    static work_t work;
    symbols = symbols_open(&real);
    if (!symbols) return 1;
    symbols->cuStreamWaitEvent = stream_wait;
    symbols->cuEventRecord = event_record;
    symbols->cuEventQuery = event_query;
    symbols->cuMemsetD32Async = fill;
    symbols->cuMemcpyAsync = copy;
    work.device = device_open("");
    work.queues[0] = keel_device_queue(work.device, 0);
    if (keel_queue_create(work.device, NULL, &work.queues[1])) return 1;
    work.from = buffer_create(work.device, SIZE, KEEL_MEMORY_HOST_VISIBLE);
    work.to = buffer_create(work.device, SIZE, KEEL_MEMORY_DEVICE_LOCAL);
    *state = &work;
    return 0;
}

static int teardown(void **state)
{
    work_t *work = *state;
    keel_buffer_release(work->from), keel_buffer_release(work->to);
    keel_queue_release(work->queues[1]);
    keel_device_release(work->device);
    *symbols = real;
    return 0;
}

static keel_point_t slow_on(const work_t *work, keel_queue_t *queue)
{
    keel_point_t done;
    atomic_store(&held, true);
    assert_null(
        keel_queue_copy(queue, KEEL_NO_WAITS, keel_whole(work->from), keel_whole(work->to), &done));
    return done;
}

static keel_point_t slow(const work_t *work)
{
    return slow_on(work, work->queues[0]);
}

// A stream keeps its own order.
static void test_chain_on_one_queue_waits_for_nothing(void **state)
{
    const work_t *work = *state;
    keel_point_t done = slow(work);
    waits = 0;
    for (uint32_t i = 0; i < LINKS; i++)
        assert_null(
            keel_queue_fill(work->queues[0], KEEL_AFTER(done), keel_whole(work->to), i, 4, &done));
    assert_int_equal(waits, 0);
    atomic_store(&held, false);
    ok(done);
}

// Between two of them each link waits once.
static void test_chain_on_two_queues(void **state)
{
    const work_t *work = *state;
    keel_point_t done = slow(work);
    waits = 0;
    for (uint32_t i = 1; i <= LINKS; i++)
        assert_null(keel_queue_fill(work->queues[i % 2], KEEL_AFTER(done), keel_whole(work->to), i,
                                    4, &done));
    assert_int_equal(waits, LINKS);
    atomic_store(&held, false);
    ok(done);
}

// What puts nothing on the stream ends with what was there last; unless a thread is just retiring
// the end of what was there before, so it may take more than one attempt to see.
static void test_nothing_needs_no_event(void **state)
{
    const work_t *work = *state;
    for (int attempt = 0; attempt < 100; attempt++) {
        keel_point_t done = slow(work);
        records = 0;
        for (int i = 0; i < LINKS; i++)
            assert_null(keel_queue_submit(work->queues[0], KEEL_AFTER(done), NULL, 0,
                                          KEEL_NO_SIGNALS, &done));
        atomic_store(&held, false);
        ok(done);
        if (!records) return;
        nanosleep(&(struct timespec){.tv_nsec = 10 * MS}, NULL);
    }
    fail_msg("%u events for %d submissions of nothing", records, LINKS);
}

// A thread that submits looks how far the stream is, but rarely: after 64 submissions each for the
// event that was the newest the last time.
static void test_looks_back_now_and_then(void **state)
{
    const work_t *work = *state;
    keel_queue_t *queue = NULL;
    assert_null(keel_queue_create(work->device, NULL, &queue));
    keel_point_t done = slow_on(work, queue);
    queries = 0;
    for (uint32_t i = 2; i <= 4 * 64; i++) {
        assert_null(keel_queue_fill(queue, KEEL_NO_WAITS, keel_whole(work->to), i, 4, &done));
        assert_int_equal(queries, i < 2 * 64 ? 0 : i / 64 - 1);
    }
    atomic_store(&held, false);
    ok(done);
    keel_queue_release(queue);
}

// A stream that is not full, however much it has done, is the submitting thread's to fill.
static void test_nobody_else_issues(void **state)
{
    const work_t *work = *state;
    keel_point_t done;
    fills = 0;
    for (uint32_t i = 1; i <= 2000; i++) {
        assert_null(
            keel_queue_fill(work->queues[1], KEEL_NO_WAITS, keel_whole(work->to), i, 4, &done));
        if (i % 100 == 0) ok(done);
    }
    assert_int_equal(fills, 2000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_chain_on_one_queue_waits_for_nothing),
        cmocka_unit_test(test_chain_on_two_queues),
        cmocka_unit_test(test_nothing_needs_no_event),
        cmocka_unit_test(test_looks_back_now_and_then),
        cmocka_unit_test(test_nobody_else_issues),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
