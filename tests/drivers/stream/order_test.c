// SPDX-License-Identifier: Apache-2.0
// Events come late, or out of order: points are reached when their work is over and not before, and
// a thread that finds one reached finds reached what led to it.
#include <pthread.h>
#include <stdatomic.h>

#include "drivers/stream/fixture.h"

static keel_queue_t *other, *third; // the vendor's queues 1 and 2
static keel_buffer_t *x;
static const uint32_t one = 1;

static int queues_open(void **state)
{
    fixture_open(state);
    ok_status(keel_queue_create(device, NULL, &other));
    ok_status(keel_queue_create(device, NULL, &third));
    x = numbers(0, 0, 0);
    return 0;
}

static int queues_close(void **state)
{
    for (uint32_t i = 0; i < 3; i++) vendor_late(i, false);
    keel_buffer_release(x);
    keel_queue_release(other);
    keel_queue_release(third);
    return fixture_close(state);
}

static keel_op_t op_plus(void)
{
    static keel_ref_t ref;
    ref = keel_whole(x);
    return op_add(&ref, &one, 1);
}

static void points_are_reached_as_work_ends(void **state)
{
    (void)state;
    keel_op_t op = op_plus();
    keel_point_t points[3];
    vendor_hold();
    for (int i = 0; i < 3; i++) points[i] = submit(queue, KEEL_NO_WAITS, &op, 1);
    assert_false(is_reached(points[0]));
    assert_int_equal(vendor_run(0, 2), 2);
    ok(points[1]);
    assert_true(is_reached(points[0]));
    assert_false(is_reached(points[2]));
    assert_int_equal(vendor_run(0, 2), 1);
    ok(points[2]);
}

static void queues_end_in_any_order(void **state)
{
    (void)state;
    keel_op_t op = op_plus();
    vendor_hold();
    keel_point_t first = submit(queue, KEEL_NO_WAITS, &op, 1);
    keel_point_t second = submit(other, KEEL_NO_WAITS, &op, 1);
    assert_int_equal(vendor_run(1, 1), 1);
    ok(second);
    assert_false(is_reached(first));
    assert_int_equal(vendor_run(0, 1), 1);
    ok(first);
}

// The host has no part in it: the second is on its stream before the first has run.
static void queues_wait_for_each_other_on_the_device(void **state)
{
    (void)state;
    keel_op_t op = op_plus();
    vendor_hold();
    keel_point_t first = submit(queue, KEEL_NO_WAITS, &op, 1);
    keel_point_t second = submit(other, KEEL_AFTER(first), &op, 1);
    assert_int_equal(vendor_pending(1), 1);
    assert_int_equal(vendor_run(1, 1), 0);
    assert_int_equal(vendor_run(0, 1), 1);
    assert_false(is_reached(second));
    assert_int_equal(vendor_run(1, 1), 1);
    ok(second);
    assert_true(is_reached(first));
}

// The host is told of the last event alone. What led to it must have come.
static void what_led_to_a_point_is_reached(void **state)
{
    (void)state;
    keel_op_t op = op_plus();
    vendor_late(0, true);
    vendor_late(1, true);
    keel_point_t before = submit(queue, KEEL_NO_WAITS, &op, 1);
    keel_point_t first = submit(queue, KEEL_NO_WAITS, &op, 1);
    keel_point_t second = submit(other, KEEL_AFTER(first), &op, 1);
    assert_false(is_reached(second));
    keel_point_t last = submit(third, KEEL_AFTER(second), &op, 1);
    ok(last);
    assert_true(is_reached(second));
    assert_true(is_reached(first));
    assert_true(is_reached(before)); // of the same stream
}

static void signals_are_told_in_order(void **state)
{
    (void)state;
    keel_op_t op = op_plus();
    keel_semaphore_t *s = NULL;
    uint64_t value = 0;
    ok_status(keel_semaphore_create(device, NULL, &s));
    vendor_late(0, true);
    keel_point_t first, second;
    ok_status(
        keel_queue_submit(queue, KEEL_NO_WAITS, &op, 1, KEEL_SIGNAL(keel_point(s, 1)), &first));
    ok_status(keel_queue_submit(other, KEEL_AFTER(keel_point(s, 1)), &op, 1,
                                KEEL_SIGNAL(keel_point(s, 2)), &second));
    ok(keel_point(s, 2));
    ok_status(keel_semaphore_value(s, &value));
    assert_int_equal(value, 2);
    assert_true(is_reached(first));
    keel_semaphore_release(s);
}

// A failure that only the device finds out reaches what waits for it on other queues, which does
// not run.
static void failures_go_the_same_way(void **state)
{
    (void)state;
    raw_t raw;
    keel_op_t op = op_plus();
    keel_buffer_t *counts = numbers(1, 70000, 1);
    keel_op_t bad = op_raw_add(&raw, keel_whole(x), 1, keel_span(counts, 0, 12));
    vendor_hold();
    keel_point_t first = submit(queue, KEEL_NO_WAITS, &bad, 1);
    keel_point_t second = submit(other, KEEL_AFTER(first), &op, 1);
    vendor_go();
    fails(second, KEEL_OUT_OF_RANGE, "70000");
    fails(first, KEEL_OUT_OF_RANGE, "70000");
    assert_int_equal(words_of(x)[0], 0);
    keel_buffer_release(counts);
}

// A vendor that cannot say whether an event has come is asked again.
static void a_refused_answer_is_asked_for_again(void **state)
{
    (void)state;
    keel_op_t op = op_plus();
    vendor_fail(SLOT(event_query), 1, KEEL_RESOURCE_EXHAUSTED);
    ok(submit(queue, KEEL_NO_WAITS, &op, 1));
    vendor_fail(SLOT(event_sync), 1, KEEL_RESOURCE_EXHAUSTED);
    vendor_hold();
    keel_op_t ops[] = {op, keel_op_barrier(), keel_op_timestamp(keel_span(x, 8, 8))};
    keel_point_t done = submit(queue, KEEL_NO_WAITS, ops, COUNT(ops));
    vendor_go();
    ok(done);
    assert_int_equal(words_of(x)[0], 2);
}

// Sleepers of an older point and of a newer one, with more work behind: each wakes with its own.
typedef struct sleeper_t {
    pthread_t thread;
    keel_point_t point;
    _Atomic bool awake;
} sleeper_t;

static void *sleep_for(void *argument)
{
    sleeper_t *sleeper = argument;
    keel_status_t status = keel_wait(KEEL_POINTS(sleeper->point), KEEL_ALL, KEEL_FOREVER);
    if (!status) atomic_store(&sleeper->awake, true);
    keel_status_release(status);
    return NULL;
}

static void sleepers_wake_with_their_points(void **state)
{
    (void)state;
    enum { MANY = 4 };
    static sleeper_t sleepers[MANY];
    keel_op_t op = op_plus();
    vendor_hold();
    for (int i = 0; i < MANY; i++)
        sleepers[i] = (sleeper_t){.point = submit(queue, KEEL_NO_WAITS, &op, 1)};
    for (int i = MANY - 1; i >= 0; i--) // the newest first: a watcher that sleeps is not woken
        assert_int_equal(pthread_create(&sleepers[i].thread, NULL, sleep_for, &sleepers[i]), 0);
    for (int i = 0; i < MANY; i++) {
        assert_false(atomic_load(&sleepers[i].awake));
        assert_int_equal(vendor_run(0, 1), 1);
        pthread_join(sleepers[i].thread, NULL);
        assert_true(atomic_load(&sleepers[i].awake));
    }
}

// No stream waits for what hosts sleep for, and so neither does the clock.
static void sleepers_hold_up_no_clock(void **state)
{
    (void)state;
    enum { SLEEPERS = 3 };
    static sleeper_t sleepers[SLEEPERS];
    keel_queue_t *queues[] = {queue, other, third};
    uint64_t made = vendor_calls(SLOT(event_create)), waits = vendor_calls(SLOT(stream_wait));
    keel_clock_pair_t now;
    keel_op_t op = op_plus();
    if (!kind->quirks.waits_shared) skip();
    vendor_channels(1);
    vendor_hold();
    for (int i = 0; i < SLEEPERS; i++) {
        sleepers[i] = (sleeper_t){.point = submit(queues[i], KEEL_NO_WAITS, &op, 1)};
        submit(queues[i], KEEL_NO_WAITS, &op, 1);
        assert_int_equal(pthread_create(&sleepers[i].thread, NULL, sleep_for, &sleepers[i]), 0);
    }
    assert_true(vendor_await(SLOT(event_create), made + SLEEPERS)); // by watchers
    ok_status(keel_device_clock(device, &now));
    vendor_go();
    for (int i = 0; i < SLEEPERS; i++) pthread_join(sleepers[i].thread, NULL);
    assert_int_equal(vendor_calls(SLOT(stream_wait)), waits);
}

#define QUEUES(f) cmocka_unit_test_setup_teardown(f, queues_open, queues_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        QUEUES(points_are_reached_as_work_ends),
        QUEUES(queues_end_in_any_order),
        QUEUES(queues_wait_for_each_other_on_the_device),
        QUEUES(what_led_to_a_point_is_reached),
        QUEUES(signals_are_told_in_order),
        QUEUES(failures_go_the_same_way),
        QUEUES(a_refused_answer_is_asked_for_again),
        QUEUES(sleepers_wake_with_their_points),
        QUEUES(sleepers_hold_up_no_clock),
    };
    return run_on_all(tests, COUNT(tests));
}
