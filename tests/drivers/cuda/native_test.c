// SPDX-License-Identifier: Apache-2.0
// The handles of a CUDA device are those that CUDA knows, on the CUDA driver in software.
#include <stdlib.h>

#include "drivers/cuda/device.h"

static const cuda_symbols_t *symbols;

static int setup(void **state)
{
    (void)state;
    setenv("KEEL_SIM_CUDA", "devices=2,leaks=2", 1);
    return cuda_symbols_open(CUDA_LIBRARY, &symbols) != NULL;
}

static CUstream stream_native(keel_queue_t *queue)
{
    uint64_t handle = 0;
    assert_null(keel_queue_native(queue, KEEL_NATIVE_CUDA_STREAM, &handle));
    return (CUstream)(uintptr_t)handle;
}

static void test_device_and_queue(void **state)
{
    (void)state;
    keel_device_t *device = NULL;
    uint64_t ordinal = 0, context = 0;
    CUcontext its = NULL;
    assert_null(device_try_open("1", "", &device));
    assert_null(keel_device_native(device, KEEL_NATIVE_CUDA_DEVICE, &ordinal));
    assert_null(keel_device_native(device, KEEL_NATIVE_CUDA_CONTEXT, &context));
    assert_int_equal(ordinal, 1);
    keel_queue_t *queue = keel_device_queue(device, 0);
    keel_buffer_t *buffer = buffer_create(device, FILLED, KEEL_MEMORY_DEVICE_LOCAL);
    assert_ptr_equal(stream_native(queue), stream_of(queue, buffer));
    assert_int_equal(symbols->cuCtxSetCurrent((CUcontext)(uintptr_t)context), 0);
    assert_int_equal(symbols->cuStreamGetCtx(stream_native(queue), &its), 0);
    assert_int_equal((uintptr_t)its, context);
    assert_int_equal(symbols->cuCtxSetCurrent(NULL), 0);
    keel_buffer_release(buffer);
    keel_device_release(device);
}

// A stream of the program's own, and an event behind all on it.
typedef struct mine_t {
    CUstream stream;
    CUevent event;
} mine_t;

static keel_status_t wait_on(void *user, uint64_t event)
{
    mine_t *mine = user;
    assert_int_equal(symbols->cuStreamWaitEvent(mine->stream, (CUevent)(uintptr_t)event, 0), 0);
    assert_int_equal(symbols->cuEventRecord(mine->event, mine->stream), 0);
    return NULL;
}

static bool waits_on(keel_point_t point, mine_t *mine)
{
    keel_status_t status = keel_point_native(point, KEEL_NATIVE_CUDA_EVENT, wait_on, mine);
    keel_status_release(status);
    return !status;
}

// What is behind the event waits for the work, also when Keel has used the event again.
static void test_event_orders_streams(void **state)
{
    (void)state;
    keel_device_t *device = device_open("");
    keel_queue_t *queue = keel_device_queue(device, 0);
    keel_buffer_t *buffer = buffer_create(device, FILLED, KEEL_MEMORY_DEVICE_LOCAL);
    _Atomic bool held = true;
    keel_point_t filled;
    mine_t mine;
    uint64_t context = 0;
    assert_null(keel_device_native(device, KEEL_NATIVE_CUDA_CONTEXT, &context));
    assert_int_equal(symbols->cuCtxSetCurrent((CUcontext)(uintptr_t)context), 0);
    assert_int_equal(symbols->cuStreamCreateWithPriority(&mine.stream, CU_STREAM_NON_BLOCKING, 0),
                     0);
    assert_int_equal(symbols->cuEventCreate(&mine.event, CU_EVENT_DISABLE_TIMING), 0);

    assert_int_equal(symbols->cuLaunchHostFunc(stream_native(queue), held_call, &held), 0);
    assert_null(keel_queue_fill(queue, KEEL_NO_WAITS, keel_whole(buffer), 7, 4, &filled));
    await(waits_on(filled, &mine)); // when it is on the stream
    assert_int_equal(symbols->cuEventQuery(mine.event), CUDA_ERROR_NOT_READY);
    atomic_store(&held, false);
    ok(filled);
    for (int i = 0; i < 200; i++) {
        keel_point_t done;
        assert_null(keel_queue_fill(queue, KEEL_NO_WAITS, keel_whole(buffer), 8, 4, &done));
        ok(done);
    }
    assert_int_equal(symbols->cuEventSynchronize(mine.event), 0);

    assert_int_equal(symbols->cuEventDestroy(mine.event), 0);
    assert_int_equal(symbols->cuStreamDestroy(mine.stream), 0);
    assert_int_equal(symbols->cuCtxSetCurrent(NULL), 0);
    keel_buffer_release(buffer);
    keel_device_release(device);
}

// A semaphore that a queue signals has the event of the submission.
static void test_event_of_a_semaphore(void **state)
{
    (void)state;
    keel_device_t *device = device_open("");
    keel_queue_t *queue = keel_device_queue(device, 0);
    keel_buffer_t *buffer = buffer_create(device, FILLED, KEEL_MEMORY_DEVICE_LOCAL);
    keel_semaphore_t *semaphore = NULL;
    assert_null(keel_semaphore_create(device, NULL, &semaphore));
    _Atomic bool held = true;
    keel_op_t op = keel_op_fill(keel_whole(buffer), 7, 4);
    keel_point_t point = keel_point(semaphore, 3);
    mine_t mine = {.stream = stream_native(queue)}; // a wait that is over when it begins
    uint64_t context = 0;
    assert_null(keel_device_native(device, KEEL_NATIVE_CUDA_CONTEXT, &context));
    assert_int_equal(symbols->cuCtxSetCurrent((CUcontext)(uintptr_t)context), 0);
    assert_int_equal(symbols->cuEventCreate(&mine.event, CU_EVENT_DISABLE_TIMING), 0);
    assert_int_equal(symbols->cuLaunchHostFunc(mine.stream, held_call, &held), 0);
    assert_null(keel_queue_submit(queue, KEEL_NO_WAITS, &op, 1, KEEL_SIGNAL(point), NULL));
    await(waits_on(point, &mine));
    assert_int_equal(symbols->cuEventQuery(mine.event), CUDA_ERROR_NOT_READY);
    atomic_store(&held, false);
    ok(point);
    assert_int_equal(symbols->cuEventSynchronize(mine.event), 0);
    assert_int_equal(symbols->cuEventDestroy(mine.event), 0);
    assert_int_equal(symbols->cuCtxSetCurrent(NULL), 0);
    keel_semaphore_release(semaphore);
    keel_buffer_release(buffer);
    keel_device_release(device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_device_and_queue),
        cmocka_unit_test(test_event_orders_streams),
        cmocka_unit_test(test_event_of_a_semaphore),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
