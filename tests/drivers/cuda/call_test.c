// SPDX-License-Identifier: Apache-2.0
// Host calls of a CUDA device, on the CUDA driver in software.
#include "drivers/cuda/device.h"

typedef struct calls_t {
    keel_queue_t *other;
    _Atomic bool called;
} calls_t;

static keel_status_t second(void *user, keel_host_call_t *call)
{
    (void)call;
    calls_t *calls = user;
    atomic_store(&calls->called, true);
    return NULL;
}

static keel_status_t first(void *user, keel_host_call_t *call)
{
    (void)call;
    calls_t *calls = user;
    keel_point_t done;
    KEEL_TRY(keel_queue_run(calls->other, KEEL_NO_WAITS, keel_op_host_call(second, calls), &done));
    return keel_wait(KEEL_POINTS(done), KEEL_ALL, 5ull * SECOND_NS);
}

// A host call may wait for one of another queue.
static void test_call_waits_for_call(void **state)
{
    (void)state;
    keel_device_t *device = device_open("");
    calls_t calls = {0};
    keel_point_t done;
    assert_null(keel_queue_create(device, NULL, &calls.other));
    assert_null(keel_queue_run(keel_device_queue(device, 0), KEEL_NO_WAITS,
                               keel_op_host_call(first, &calls), &done));
    keel_status_t status = keel_wait(KEEL_POINTS(done), KEEL_ALL, 20ull * SECOND_NS);
    if (status) fail_msg("%s", keel_status_message(status));
    assert_true(atomic_load(&calls.called));
    keel_queue_release(calls.other);
    keel_device_release(device);
}

// The last reference to a queue goes with a call of its own.
static keel_status_t release_queue(void *user, keel_host_call_t *call)
{
    (void)call;
    calls_t *calls = user;
    keel_queue_release(calls->other);
    atomic_store(&calls->called, true);
    return NULL;
}

static void test_queue_goes_in_its_call(void **state)
{
    (void)state;
    keel_device_t *device = device_open("");
    calls_t calls = {0};
    keel_call_t call = {.fn = release_queue, .user = &calls, .detached = true};
    keel_op_t op = keel_op_host_call(NULL, NULL);
    op.as.call = call;
    assert_null(keel_queue_create(device, NULL, &calls.other));
    assert_null(keel_queue_submit(calls.other, KEEL_NO_WAITS, &op, 1, KEEL_NO_SIGNALS, NULL));
    keel_device_release(device);
    assert_true(atomic_load(&calls.called));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_call_waits_for_call),
        cmocka_unit_test(test_queue_goes_in_its_call),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
