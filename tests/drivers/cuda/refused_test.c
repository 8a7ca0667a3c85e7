// SPDX-License-Identifier: Apache-2.0
// What the vendor refuses to put on a stream, on the CUDA driver in software, whose copies take
// 200 ms: the submission fails, but not before the device is done with it, and others go on.
#include <stdlib.h>

#include "drivers/cuda/device.h"

enum { SIZE = 4096, SLOW_NS = 200 * MS };

static cuda_symbols_t *symbols;
static cuda_symbols_t real;
static _Atomic bool no_waits, no_events;
static _Atomic int refusals;         // of events
static _Atomic int unasked, unslept; // queries and sleeps that are refused
static _Atomic bool held;            // copies begin when it is not

static CUresult stream_wait(CUstream stream, CUevent event, unsigned int flags)
{
    if (atomic_load(&no_waits)) return CUDA_ERROR_OUT_OF_MEMORY;
    return real.cuStreamWaitEvent(stream, event, flags);
}

static CUresult event_record(CUevent event, CUstream stream)
{
    if (atomic_load(&no_events)) return CUDA_ERROR_OUT_OF_MEMORY;
    if (atomic_load(&refusals) && atomic_fetch_sub(&refusals, 1)) return CUDA_ERROR_OUT_OF_MEMORY;
    return real.cuEventRecord(event, stream);
}

static CUresult event_query(CUevent event)
{
    if (atomic_load(&unasked) && atomic_fetch_sub(&unasked, 1)) return CUDA_ERROR_OUT_OF_MEMORY;
    return real.cuEventQuery(event);
}

static CUresult event_sync(CUevent event)
{
    if (atomic_load(&unslept) && atomic_fetch_sub(&unslept, 1)) return CUDA_ERROR_OUT_OF_MEMORY;
    return real.cuEventSynchronize(event);
}

static CUresult copy_held(CUdeviceptr target, CUdeviceptr source, size_t size, CUstream stream)
{
    return held_copy(&real, &held, target, source, size, stream);
}

typedef struct work_t {
    keel_device_t *device;
    keel_buffer_t *from, *to;
} work_t;

static int setup(void **state)
{
    static work_t work;
    setenv("KEEL_SIM_CUDA", "slow=200000,leaks=2", 1);
    symbols = symbols_open(&real);
    if (!symbols) return 1;
    symbols->cuStreamWaitEvent = stream_wait;
    symbols->cuEventRecord = event_record;
    symbols->cuEventQuery = event_query;
    symbols->cuEventSynchronize = event_sync;
    symbols->cuMemcpyAsync = copy_held;
    work.device = device_open("");
    work.from = buffer_create(work.device, SIZE, KEEL_MEMORY_HOST_VISIBLE);
    work.to = buffer_create(work.device, SIZE, KEEL_MEMORY_DEVICE_LOCAL);
    *state = &work;
    return 0;
}

static int teardown(void **state)
{
    work_t *work = *state;
    keel_buffer_release(work->from), keel_buffer_release(work->to);
    keel_device_release(work->device);
    *symbols = real;
    return 0;
}

static keel_point_t copy(const work_t *work)
{
    keel_point_t done;
    assert_null(keel_queue_copy(keel_device_queue(work->device, 0), KEEL_NO_WAITS,
                                keel_whole(work->from), keel_whole(work->to), &done));
    return done;
}

static void exhausted(keel_point_t point)
{
    keel_status_t status = keel_wait(KEEL_POINTS(point), KEEL_ALL, KEEL_FOREVER);
    assert_int_equal(keel_status_code(status), KEEL_RESOURCE_EXHAUSTED);
    keel_status_release(status);
}

// A wait: what it was for goes on.
static void test_nothing_is_reached_early(void **state)
{
    const work_t *work = *state;
    keel_queue_t *queue = NULL;
    keel_buffer_t *other = buffer_create(work->device, SIZE, KEEL_MEMORY_DEVICE_LOCAL);
    assert_null(keel_queue_create(work->device, NULL, &queue));
    atomic_store(&held, true);
    keel_point_t copied = copy(work), refused;
    atomic_store(&no_waits, true);
    assert_null(keel_queue_fill(queue, KEEL_AFTER(copied), keel_whole(other), 1, 4, &refused));
    exhausted(refused);
    atomic_store(&no_waits, false);
    keel_status_t status = keel_wait(KEEL_POINTS(copied), KEEL_ALL, 0);
    assert_int_equal(keel_status_code(status), KEEL_DEADLINE_EXCEEDED);
    keel_status_release(status);
    atomic_store(&held, false);
    ok(copied);
    keel_buffer_release(other);
    keel_queue_release(queue);
}

static keel_status_t nothing(void *user, keel_host_call_t *call)
{
    (void)user, (void)call;
    return NULL;
}

// The event behind it, and one before a call of the host's: the thread that submits waits for
// nothing, and what is submitted behind it goes its way.
static void test_submitting_does_not_wait(void **state)
{
    const work_t *work = *state;
    keel_queue_t *queue = keel_device_queue(work->device, 0);
    keel_op_t ops[] = {keel_op_copy(keel_whole(work->from), keel_whole(work->to)),
                       keel_op_barrier(), keel_op_host_call(nothing, NULL)};
    for (size_t count = 1; count <= 3; count += 2) {
        keel_point_t failed, next;
        atomic_store(&held, true);
        atomic_store(&no_events, true);
        assert_null(keel_queue_submit(queue, KEEL_NO_WAITS, ops, count, KEEL_NO_SIGNALS, &failed));
        next = copy(work);
        keel_status_t status = keel_wait(KEEL_POINTS(failed), KEEL_ALL, 10 * MS);
        assert_int_equal(keel_status_code(status), KEEL_DEADLINE_EXCEEDED);
        keel_status_release(status);
        atomic_store(&held, false);
        exhausted(failed);
        exhausted(next);
        atomic_store(&no_events, false);
        ok(copy(work));
    }
}

// One that is recorded when it is tried again is as good as any.
static void test_once_is_not_enough(void **state)
{
    atomic_store(&refusals, 1);
    ok(copy(*state));
    assert_int_equal(atomic_load(&refusals), 0);
}

// The event behind it.
static void test_failure_waits_for_the_device(void **state)
{
    uint64_t start = keel_now_ns();
    atomic_store(&no_events, true);
    keel_point_t failed = copy(*state);
    exhausted(failed);
    assert_true(keel_now_ns() - start >= SLOW_NS);
    atomic_store(&no_events, false);
    ok(copy(*state));
}

// A look at the event, or the watcher's sleep: that says nothing of the device, which works on.
static void test_a_question_is_asked_again(void **state)
{
    atomic_store(&unasked, 1);
    ok(copy(*state));
    assert_int_equal(atomic_load(&unasked), 0);
    atomic_store(&unslept, 1);
    ok(copy(*state));
    assert_int_equal(atomic_load(&unslept), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_is_reached_early),
        cmocka_unit_test(test_submitting_does_not_wait),
        cmocka_unit_test(test_once_is_not_enough),
        cmocka_unit_test(test_failure_waits_for_the_device),
        cmocka_unit_test(test_a_question_is_asked_again),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
