// SPDX-License-Identifier: Apache-2.0
// Promises that outlive what they are for: a thread that asks after a point has one for a moment,
// and no reference to the device.
#include <sched.h>

#include "drivers/stream/fixture.h"
#include "kit/semaphore.h"

// Of the device, which is released while this thread has a promise, and may ask after it.
static void test_after_the_device(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        kind = &kinds[i];
        fixture_open(NULL);
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
        keel_device_release(device);
        uint64_t destroyed = vendor_calls(SLOT(event_destroy));
        promise->ops->poll(promise);
        promise_release(promise);
        while (vendor_calls(SLOT(event_destroy)) == destroyed) sched_yield();
        all_is_gone(false);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_after_the_device)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
