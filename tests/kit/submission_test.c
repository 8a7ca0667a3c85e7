// SPDX-License-Identifier: Apache-2.0
// Cancelling a submission: before it has begun, while it runs, and when it has ended.
#include "kit/submission.h"

#include <keel/keel.h>
#include <string.h>

#include "unit.h"

typedef struct place_t {
    keel_device_t *device;
    keel_queue_t *queue;
    keel_semaphore_t *gate;
} place_t;

static int place_open(void **state)
{
    static place_t place;
    place = (place_t){0};
    assert_null(keel_device_open("cpu://?threads=1", NULL, &place.device));
    place.queue = keel_device_queue(place.device, 0);
    assert_null(keel_semaphore_create(place.device, NULL, &place.gate));
    *state = &place;
    return 0;
}

static int place_close(void **state)
{
    place_t *place = *state;
    keel_semaphore_release(place->gate);
    keel_device_release(place->device);
    return 0;
}

static keel_code_t code_of(keel_point_t point)
{
    keel_status_t status = keel_wait(KEEL_POINTS(point), KEEL_ALL, KEEL_FOREVER);
    keel_code_t code = keel_status_code(status);
    keel_status_release(status);
    return code;
}

static void test_waits(void **state)
{
    place_t *place = *state;
    keel_point_t waits, next, other;
    keel_points_t gate = KEEL_AFTER(keel_point(place->gate, 1));
    assert_null(keel_queue_run(place->queue, gate, keel_op_barrier(), &waits));
    assert_null(keel_queue_run(place->queue, KEEL_AFTER(waits), keel_op_barrier(), &next));
    assert_null(keel_queue_run(place->queue, gate, keel_op_barrier(), &other));
    assert_int_equal(submission_cancel(waits.semaphore, waits.value), KEEL_CANCEL_WAITING);
    assert_int_equal(code_of(waits), KEEL_CANCELLED);
    assert_int_equal(code_of(next), KEEL_CANCELLED);
    assert_null(keel_semaphore_signal(place->gate, 1));
    assert_int_equal(code_of(other), KEEL_OK);
}

static keel_status_t count(void *user, keel_host_call_t *call)
{
    (void)call;
    ++*(int *)user;
    return NULL;
}

typedef struct itself_t {
    keel_semaphore_t *known; // at 1: `point` is filled in
    keel_point_t point;
    keel_cancel_t was;
} itself_t;

// Cancels the submission that it is part of.
static keel_status_t cancel_itself(void *user, keel_host_call_t *call)
{
    (void)call;
    itself_t *self = user;
    KEEL_TRY(keel_wait(KEEL_POINTS(keel_point(self->known, 1)), KEEL_ALL, KEEL_FOREVER));
    self->was = submission_cancel(self->point.semaphore, self->point.value);
    return NULL;
}

static void test_runs(void **state)
{
    place_t *place = *state;
    int after = 0;
    itself_t self = {.known = place->gate};
    keel_op_t ops[] = {keel_op_host_call(cancel_itself, &self), keel_op_barrier(),
                       keel_op_host_call(count, &after)};
    assert_null(
        keel_queue_submit(place->queue, KEEL_NO_WAITS, ops, 3, KEEL_NO_SIGNALS, &self.point));
    assert_null(keel_semaphore_signal(place->gate, 1));
    keel_status_t status = keel_wait(KEEL_POINTS(self.point), KEEL_ALL, KEEL_FOREVER);
    assert_int_equal(keel_status_code(status), KEEL_CANCELLED);
    assert_non_null(strstr(keel_status_message(status), "was cancelled"));
    keel_status_release(status);
    assert_int_equal(self.was, KEEL_CANCEL_RUNNING);
    assert_int_equal(after, 0);
    keel_point_t next;
    assert_null(
        keel_queue_run(place->queue, KEEL_NO_WAITS, keel_op_host_call(count, &after), &next));
    assert_int_equal(code_of(next), KEEL_OK);
    assert_int_equal(after, 1);
}

static void test_has_ended(void **state)
{
    place_t *place = *state;
    keel_point_t done;
    assert_null(keel_queue_run(place->queue, KEEL_NO_WAITS, keel_op_barrier(), &done));
    assert_int_equal(code_of(done), KEEL_OK);
    assert_int_equal(submission_cancel(done.semaphore, done.value), KEEL_CANCEL_ENDED);
    assert_int_equal(code_of(done), KEEL_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_waits, place_open, place_close),
        cmocka_unit_test_setup_teardown(test_runs, place_open, place_close),
        cmocka_unit_test_setup_teardown(test_has_ended, place_open, place_close),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
