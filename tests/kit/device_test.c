// SPDX-License-Identifier: Apache-2.0
// The end of a device as a driver brings it about that loses one: here a cpu device, which cannot
// be lost by itself.
#include "kit/device.h"

#include <pthread.h>

#include "base/status.h"
#include "unit.h"

static int settled;

static void settle(keel_device_t *device)
{
    assert_non_null(device);
    settled++;
}

static void device_lose(keel_device_t *device)
{
    device_end(device, KEEL_ERROR(KEEL_DEVICE_LOST, "it fell down"), settle);
}

static void assert_lost(keel_status_t status)
{
    assert_int_equal(keel_status_code(status), KEEL_DEVICE_LOST);
    assert_string_equal(keel_status_message(status), "it fell down");
    keel_status_release(status);
}

static keel_device_t *open_device(void)
{
    keel_device_t *device = NULL;
    assert_null(keel_device_open("cpu://?threads=1", NULL, &device));
    return device;
}

static keel_semaphore_t *make_semaphore(keel_device_t *device)
{
    keel_semaphore_t *semaphore = NULL;
    assert_null(keel_semaphore_create(device, NULL, &semaphore));
    return semaphore;
}

static void *wait_for_ever(void *point)
{
    return keel_wait(keel_points(point, 1), KEEL_ALL, KEEL_FOREVER);
}

static void ends_every_wait(void **state)
{
    keel_device_t *device = open_device(), *other = open_device();
    keel_semaphore_t *never = make_semaphore(device), *there = make_semaphore(other);
    enum { HOST, CHAIN, WORK, FOREIGN, BEHIND, POINTS };
    keel_point_t points[POINTS];
    keel_queue_t *queue = keel_device_queue(device, 0);
    points[HOST] = keel_point(never, 1);
    assert_null(keel_queue_signal(queue, KEEL_AFTER(points[HOST]), KEEL_NO_SIGNALS, &points[WORK]));
    assert_null(
        keel_queue_signal(queue, KEEL_AFTER(points[WORK]), KEEL_NO_SIGNALS, &points[CHAIN]));
    assert_null(keel_queue_signal(queue, KEEL_AFTER(keel_point(there, 1)), KEEL_NO_SIGNALS,
                                  &points[FOREIGN]));
    assert_null(keel_queue_signal(keel_device_queue(other, 0), KEEL_AFTER(points[HOST]),
                                  KEEL_NO_SIGNALS, &points[BEHIND]));
    pthread_t threads[POINTS];
    for (int i = 0; i < POINTS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, wait_for_ever, &points[i]), 0);
    settled = 0;
    device_lose(device);
    assert_int_equal(settled, 1);
    for (int i = 0; i < POINTS; i++) {
        void *status = NULL;
        pthread_join(threads[i], &status);
        assert_lost(status);
    }
    assert_null(keel_semaphore_signal(there, 1)); // which the end of the first does not touch
    keel_semaphore_release(never);
    keel_semaphore_release(there);
    keel_device_release(device);
    keel_device_release(other);
}

static void later_waits_end_at_once(void **state)
{
    keel_device_t *device = open_device(), *other = open_device();
    keel_semaphore_t *never = make_semaphore(device), *there = make_semaphore(other), *none = NULL;
    keel_point_t point = keel_point(never, 1), done;
    device_lose(device);
    assert_lost(keel_wait(KEEL_POINTS(point), KEEL_ALL, KEEL_FOREVER));
    assert_lost(keel_semaphore_signal(never, 1));
    assert_null(keel_queue_signal(keel_device_queue(device, 0), KEEL_AFTER(keel_point(there, 1)),
                                  KEEL_NO_SIGNALS, &done));
    assert_lost(keel_wait(KEEL_POINTS(done), KEEL_ALL, KEEL_FOREVER));
    assert_lost(keel_semaphore_create(device, NULL, &none));
    assert_null(none);
    keel_semaphore_release(never);
    keel_semaphore_release(there);
    keel_device_release(device);
    keel_device_release(other);
}

// Closing comes after the loss and changes nothing.
static void the_first_cause_stays(void **state)
{
    keel_device_t *device = open_device();
    keel_semaphore_t *never = make_semaphore(device);
    keel_point_t point = keel_point(never, 1);
    device_lose(device);
    device_end(device, KEEL_ERROR(KEEL_INTERNAL, "and broke"), settle);
    keel_device_release(device);
    assert_lost(keel_wait(KEEL_POINTS(point), KEEL_ALL, KEEL_FOREVER));
    keel_semaphore_release(never);
    keel_live_t live;
    keel_live_objects(&live);
    assert_int_equal(live.devices, 0);
    assert_int_equal(live.statuses, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ends_every_wait),
        cmocka_unit_test(later_waits_end_at_once),
        cmocka_unit_test(the_first_cause_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
