// SPDX-License-Identifier: Apache-2.0
// Promises that outlive what they are for: a thread that asks after a point has one for a moment,
// and no reference to the device.
#include <pthread.h>
#include <sched.h>

#include "drivers/stream/fixture.h"
#include "kit/semaphore.h"

enum { LOOKS = 200 };

static _Atomic bool closed;

static void *closing(void *unused)
{
    keel_device_release(device);
    atomic_store(&closed, true);
    return unused;
}

// The device stays until the thread has given it back.
static void test_after_the_device(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        kind = &kinds[i];
        fixture_open(NULL);
        atomic_store(&closed, false);
        vendor_hold();
        keel_buffer_t *x = buffer_create(1 << 16);
        keel_point_t point;
        ok_status(keel_queue_run(queue, KEEL_NO_WAITS, keel_op_fill(keel_whole(x), 1, 1), &point));
        promise_t *promise = point_promise(&point);
        assert_non_null(promise);
        vendor_go();
        ok(point);
        keel_buffer_release(x);
        keel_executable_release(executable);
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, closing, NULL), 0);
        for (int look = 0; look < LOOKS && !atomic_load(&closed); look++) sched_yield();
        assert_false(atomic_load(&closed));
        promise->ops->poll(promise);
        promise_release(promise);
        pthread_join(thread, NULL);
        all_is_gone(false);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_after_the_device)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
