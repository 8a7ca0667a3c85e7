// SPDX-License-Identifier: Apache-2.0
// The order in which the ends of submissions become known, on the CUDA driver in software.
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "drivers/cuda/device.h"
#include "drivers/stream/driver.h"

enum { SIZE = FILLED, LAST = 0x1a57 };

static cuda_symbols_t *symbols;
static cuda_symbols_t real;
static _Atomic bool held, reached; // who issues the fill of LAST stays there
static _Atomic bool deaf;          // events say nothing any more
// Its queues are held up from the fill of LAST on. This and `lets_go` write a field of the
// device's: when memory is given back there is no call that falls between the two steps that matter
// here.
static _Atomic(stream_device_t *) holds;
static _Atomic(CUstream) filled_on; // where the last fill went

static CUresult fill(CUdeviceptr target, unsigned int value, size_t count, CUstream stream)
{
    stream_device_t *own = atomic_load(&holds);
    if (value == LAST && own) atomic_store(&own->hold.on, true);
    if (value == LAST) {
        atomic_store(&reached, true);
        held_wait(&held);
    }
    atomic_store(&filled_on, stream);
    return real.cuMemsetD32Async(target, value, count, stream);
}

static _Thread_local stream_device_t *lets_go; // its queues, when this thread leaves the vendor

static CUresult exchange(CUstreamCaptureMode *mode)
{
    if (lets_go) atomic_store(&lets_go->hold.on, false);
    return real.cuThreadExchangeStreamCaptureMode(mode);
}

static _Atomic bool mute;   // nor does it help to sleep for one
static _Atomic bool broken; // and no thread can, for good

static CUresult sync(CUevent event)
{
    held_wait(&mute);
    if (atomic_load(&broken)) return CUDA_ERROR_ILLEGAL_ADDRESS;
    return real.cuEventSynchronize(event);
}

static _Atomic uint32_t came; // times that an event was seen to have come

static CUresult query(CUevent event)
{
    if (atomic_load(&deaf)) return CUDA_ERROR_NOT_READY;
    CUresult result = real.cuEventQuery(event);
    if (!result) atomic_fetch_add(&came, 1);
    return result;
}

static int setup(void **state)
{
    (void)state;
    setenv("KEEL_SIM_CUDA", "slow=100000", 1); // copies take 100 ms
    symbols = symbols_open(&real);
    if (!symbols) return 1;
    symbols->cuMemsetD32Async = fill;
    symbols->cuEventQuery = query;
    symbols->cuEventSynchronize = sync;
    symbols->cuThreadExchangeStreamCaptureMode = exchange;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    *symbols = real;
    return 0;
}

static uint64_t value_of(keel_semaphore_t *semaphore)
{
    uint64_t value = 0;
    assert_null(keel_semaphore_value(semaphore, &value));
    return value;
}

// A copy, on another queue what waits for it, and on another device too: the thread that tells the
// end of the copy issues that one, and is kept there. Meanwhile a thread learns that the second has
// come. It may not retire it before the first; the other thread does, when it goes on, though no
// thread asks again.
static void test_who_is_held_up_is_told(void **state)
{
    (void)state;
    keel_device_t *device = device_open(""), *other = device_open("");
    keel_queue_t *queue = NULL;
    keel_buffer_t *from = buffer_create(device, SIZE, KEEL_MEMORY_HOST_VISIBLE);
    keel_buffer_t *to = buffer_create(device, SIZE, KEEL_MEMORY_DEVICE_LOCAL);
    keel_buffer_t *last = buffer_create(other, SIZE, KEEL_MEMORY_DEVICE_LOCAL);
    keel_point_t copied, filled, ended;
    assert_null(keel_queue_create(device, NULL, &queue));
    atomic_store(&held, true);
    assert_null(keel_queue_copy(keel_device_queue(device, 0), KEEL_NO_WAITS, keel_whole(from),
                                keel_whole(to), &copied));
    assert_null(keel_queue_fill(queue, KEEL_AFTER(copied), keel_whole(to), 1, 4, &filled));
    assert_null(keel_queue_fill(keel_device_queue(other, 0), KEEL_AFTER(copied), keel_whole(last),
                                LAST, 4, &ended));
    uint64_t limit = keel_now_ns() + PATIENCE_NS;
    while (!atomic_load(&reached) && keel_now_ns() < limit) {
    }
    assert_true(atomic_load(&reached));
    atomic_store(&came, 0);
    while (!atomic_load(&came) && keel_now_ns() < limit)
        assert_int_equal(value_of(filled.semaphore), 0);
    assert_true(atomic_load(&came)); // by this thread or the keeper's
    assert_int_equal(value_of(filled.semaphore), 0);
    atomic_store(&deaf, true);
    atomic_store(&held, false);
    while (!value_of(filled.semaphore) && keel_now_ns() < limit) {
    }
    assert_int_equal(value_of(filled.semaphore), filled.value);
    atomic_store(&deaf, false);
    ok(ended);
    keel_buffer_release(from), keel_buffer_release(to), keel_buffer_release(last);
    keel_queue_release(queue);
    keel_device_release(device), keel_device_release(other);
}

typedef struct pair_t {
    keel_queue_t *queue;
    keel_buffer_t *memory, *last;
    keel_point_t done;
} pair_t;

// With an alloca, so that who issues this leaves the vendor with a call.
static void *pair_submit(void *argument)
{
    pair_t *pair = argument;
    lets_go = stream_device(keel_queue_info(pair->queue)->device);
    keel_op_t ops[] = {keel_op_alloca(pair->memory), keel_op_fill(keel_whole(pair->last), LAST, 4)};
    assert_null(
        keel_queue_submit(pair->queue, KEEL_NO_WAITS, ops, 2, KEEL_NO_SIGNALS, &pair->done));
    return NULL;
}

// The issuer finds that no thread is to issue, and by the time it has put aside what is left, one
// may: then it does, for no other thread will.
static void test_let_go_just_then(void **state)
{
    (void)state;
    keel_device_t *device = device_open("");
    keel_buffer_options_t size = {.size = SIZE};
    pair_t pair = {.queue = keel_device_queue(device, 0), .last = buffer_create(device, SIZE, 0)};
    keel_point_t done;
    pthread_t thread;
    assert_null(keel_buffer_reserve(keel_device_pool(device, 0), &size, &pair.memory));
    atomic_store(&reached, false);
    atomic_store(&held, true);
    assert_int_equal(pthread_create(&thread, NULL, pair_submit, &pair), 0);
    await(atomic_load(&reached));
    assert_null(keel_queue_fill(pair.queue, KEEL_NO_WAITS, keel_whole(pair.last), 1, 4, &done));
    atomic_store(&stream_device(device)->hold.on, true);
    atomic_store(&held, false);
    pthread_join(thread, NULL);
    assert_null(keel_wait(KEEL_POINTS(done), KEEL_ALL, PATIENCE_NS));
    assert_false(atomic_load(&stream_device(device)->hold.on));
    keel_buffer_release(pair.memory), keel_buffer_release(pair.last);
    keel_device_release(device);
}

typedef struct look_t {
    keel_semaphore_t *semaphore;
    uint64_t seen; // what its value was
} look_t;

static keel_status_t look(void *user, keel_host_call_t *call)
{
    (void)call;
    look_t *own = user;
    own->seen = value_of(own->semaphore);
    return NULL;
}

static void come(void *there)
{
    atomic_store((_Atomic bool *)there, true);
}

// Waits until the stream is past all that is on it, of which events say nothing.
static void stream_await(CUstream stream)
{
    _Atomic bool there = false;
    assert_int_equal(real.cuLaunchHostFunc(stream, come, &there), 0);
    await(atomic_load(&there));
}

// A fill that signals two semaphores, and a call behind a fill that waits for the second of them,
// on one queue: the keeper learns of both ends at once, and is kept at the first semaphore, for
// which another device waits. The call is not made before the second was told.
static void test_calls_come_after_what_they_wait_for(void **state)
{
    (void)state;
    keel_device_t *device = device_open(""), *other = device_open("");
    keel_queue_t *queue = keel_device_queue(device, 0);
    keel_buffer_t *x = buffer_create(device, SIZE, KEEL_MEMORY_DEVICE_LOCAL);
    keel_buffer_t *last = buffer_create(other, SIZE, KEEL_MEMORY_DEVICE_LOCAL);
    keel_semaphore_t *first = NULL;
    keel_point_t called, ended;
    look_t own = {0};
    assert_null(keel_semaphore_create(device, NULL, &first));
    assert_null(keel_semaphore_create(device, NULL, &own.semaphore));
    const keel_point_t signals[] = {keel_point(first, 1), keel_point(own.semaphore, 1)};
    keel_op_t op = keel_op_fill(keel_whole(x), 1, 4);
    keel_op_t ops[] = {op, keel_op_barrier(), keel_op_host_call(look, &own)};
    atomic_store(&reached, false);
    atomic_store(&held, true), atomic_store(&deaf, true), atomic_store(&mute, true);
    assert_null(keel_queue_fill(keel_device_queue(other, 0), KEEL_AFTER(signals[0]),
                                keel_whole(last), LAST, 4, &ended));
    assert_null(keel_queue_submit(queue, KEEL_NO_WAITS, &op, 1, (keel_points_t){signals, 2}, NULL));
    assert_null(keel_queue_submit(queue, KEEL_AFTER(signals[1]), ops, 3, KEEL_NO_SIGNALS, &called));
    stream_await(atomic_load(&filled_on));
    atomic_store(&deaf, false);
    await(atomic_load(&reached));
    for (int i = 0; i < 1000; i++) assert_true(value_of(called.semaphore) < called.value);
    atomic_store(&mute, false), atomic_store(&held, false);
    ok(called);
    assert_int_equal(own.seen, 1);
    ok(ended);
    keel_buffer_release(x), keel_buffer_release(last);
    keel_semaphore_release(first), keel_semaphore_release(own.semaphore);
    keel_device_release(device), keel_device_release(other);
}

// A thread that cannot sleep for an event does not know that it has come.
static void test_nothing_is_told_by_a_failure(void **state)
{
    (void)state;
    keel_device_t *device = device_open("");
    keel_buffer_t *from = buffer_create(device, SIZE, KEEL_MEMORY_HOST_VISIBLE);
    keel_buffer_t *to = buffer_create(device, SIZE, KEEL_MEMORY_DEVICE_LOCAL);
    keel_point_t copied;
    atomic_store(&deaf, true), atomic_store(&broken, true);
    assert_null(keel_queue_copy(keel_device_queue(device, 0), KEEL_NO_WAITS, keel_whole(from),
                                keel_whole(to), &copied));
    keel_status_t status = keel_wait(KEEL_POINTS(copied), KEEL_ALL, PATIENCE_NS);
    atomic_store(&deaf, false), atomic_store(&broken, false);
    assert_int_equal(keel_status_code(status), KEEL_DEVICE_LOST);
    keel_status_release(status);
    keel_buffer_release(from), keel_buffer_release(to);
    keel_device_release(device);
}

// No thread takes a submission of which a part is on the device for one that waits, though nothing
// is recorded behind that part, and no thread issues the rest.
static void test_what_is_half_issued_is_on_the_device(void **state)
{
    (void)state;
    enum { MORE = 1000 }; // than a stream takes
    static keel_op_t ops[MORE];
    keel_device_t *device = device_open("");
    stream_queue_t *queue = stream_queue(keel_device_queue(device, 0));
    keel_buffer_t *buffer = buffer_create(device, SIZE, KEEL_MEMORY_DEVICE_LOCAL);
    keel_point_t done;
    for (int i = 0; i < MORE; i++) ops[i] = keel_op_fill(keel_whole(buffer), LAST, 4);
    atomic_store(&holds, stream_device(device));
    assert_null(keel_queue_submit(&queue->base, KEEL_NO_WAITS, ops, MORE, KEEL_NO_SIGNALS, &done));
    await(atomic_load(&queue->turn) == STREAM_TURN_HELD);
    stream_device_lose(stream_device(device), KEEL_ERROR(KEEL_DEVICE_LOST, "it fell"));
    atomic_store(&holds, NULL);
    atomic_store(&stream_device(device)->hold.on, false);
    stream_queue_go_on(queue);
    keel_status_t status = keel_wait(KEEL_POINTS(done), KEEL_ALL, PATIENCE_NS);
    assert_int_equal(keel_status_code(status), KEEL_DEVICE_LOST);
    assert_non_null(strstr(keel_status_message(status), "not known complete: queue 'queue 0', "));
    assert_null(strstr(keel_status_message(status), "waiting"));
    keel_status_release(status);
    keel_buffer_release(buffer);
    keel_device_release(device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_who_is_held_up_is_told),
        cmocka_unit_test(test_calls_come_after_what_they_wait_for),
        cmocka_unit_test(test_nothing_is_told_by_a_failure),
        cmocka_unit_test(test_what_is_half_issued_is_on_the_device),
        cmocka_unit_test(test_let_go_just_then),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
