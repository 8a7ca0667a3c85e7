// SPDX-License-Identifier: Apache-2.0
// Host calls: who ends them, and with what.
#include "kit/call.h"

#include <keel/keel.h>
#include <stddef.h>

#include "kit/submission.h"
#include "unit.h"

typedef struct place_t {
    keel_device_t *device;
    keel_cmd_call_t command;
    keel_call_t detached;
    keel_host_call_t *call; // the last one
    int calls, ends;
    bool defers, completes, inside;
    keel_status_t returned, completed, ended; // what is returned and said, and what came of it
} place_t;

static keel_status_t called(void *user, keel_host_call_t *call)
{
    place_t *place = user;
    place->calls++;
    place->call = call;
    place->inside = submission_is_inside(place->device);
    if (place->defers) keel_call_defer(call);
    if (place->completes) keel_call_complete(call, place->completed);
    return place->returned;
}

static void done(keel_call_state_t *state, keel_status_t status)
{
    place_t *place = state->context;
    place->ends++;
    place->ended = status;
}

static void place_open(place_t *place)
{
    *place = (place_t){0};
    assert_null(keel_device_open("null://", NULL, &place->device));
    place->command.call = (keel_call_t){.fn = called, .user = place};
    place->command.state = (keel_call_state_t){.done = done, .context = place};
    place->detached = (keel_call_t){.fn = called, .user = place, .detached = true};
}

static keel_status_t trouble(void)
{
    return KEEL_ERROR(KEEL_ABORTED, "trouble");
}

static void test_returns(void **state)
{
    (void)state;
    place_t place;
    keel_status_t status = NULL;
    place_open(&place);
    assert_true(call_make(place.device, &place.command, &status));
    assert_null(status);
    assert_true(place.inside);
    assert_false(submission_is_inside(place.device));
    place.returned = trouble();
    assert_true(call_make(place.device, &place.command, &status));
    assert_ptr_equal(status, place.returned);
    assert_int_equal(place.ends, 0);
    keel_status_release(status);
    keel_device_release(place.device);
}

static void test_deferred(void **state)
{
    (void)state;
    place_t place;
    keel_status_t status = NULL;
    place_open(&place);
    place.defers = true;
    assert_false(call_make(place.device, &place.command, &status));
    assert_null(status);
    assert_int_equal(place.ends, 0);
    keel_status_t later = trouble();
    keel_call_complete(place.call, later);
    assert_int_equal(place.ends, 1);
    assert_ptr_equal(place.ended, later);
    keel_status_release(later);
    // Once more: the name is that of no call, also when the memory is that of another one.
    keel_call_complete(place.call, trouble());
    keel_host_call_t *first = place.call;
    place.command.state = (keel_call_state_t){.done = done, .context = &place};
    assert_false(call_make(place.device, &place.command, &status));
    keel_call_complete(first, trouble());
    assert_int_equal(place.ends, 1);
    keel_call_complete(place.call, NULL);
    assert_int_equal(place.ends, 2);
    assert_null(place.ended);
    keel_device_release(place.device);
}

// An error after the deferral ends the call.
static void test_deferred_in_vain(void **state)
{
    (void)state;
    place_t place;
    keel_status_t status = NULL;
    place_open(&place);
    place.defers = true;
    place.returned = trouble();
    assert_true(call_make(place.device, &place.command, &status));
    assert_ptr_equal(status, place.returned);
    keel_status_release(status);
    keel_call_complete(place.call, trouble()); // too late: it is logged
    assert_int_equal(place.ends, 0);
    keel_device_release(place.device);
}

// What is no deferred call of this thread is not taken for one.
static void test_deferred_elsewhere(void **state)
{
    (void)state;
    place_t place;
    keel_status_t status = NULL;
    place_open(&place);
    assert_true(call_make(place.device, &place.command, &status));
    keel_call_defer(place.call); // it has returned
    keel_call_defer(NULL);
    keel_call_complete(place.call, NULL);
    keel_call_complete(NULL, trouble());
    assert_int_equal(place.ends, 0);
    assert_null(status);
    keel_device_release(place.device);
}

static void test_completed_within(void **state)
{
    (void)state;
    place_t place;
    keel_status_t status = NULL;
    place_open(&place);
    place.defers = place.completes = true;
    place.completed = trouble();
    assert_true(call_make(place.device, &place.command, &status));
    assert_ptr_equal(status, place.completed);
    assert_int_equal(place.ends, 0);
    keel_status_release(status);
    keel_device_release(place.device);
}

static void test_posted(void **state)
{
    (void)state;
    place_t place;
    chores_t chores = {0};
    place_open(&place);
    keel_queue_t *queue = keel_device_queue(place.device, 0);
    chores_init(&chores, "keel-test", NULL, NULL);
    place.returned = trouble();
    assert_null(call_post(&chores, queue, &place.command));
    chores_wait(&chores);
    assert_int_equal(place.calls, 1);
    assert_int_equal(place.ends, 1);
    assert_ptr_equal(place.ended, place.returned);
    // A detached one ends nothing, and its failure is logged.
    keel_cmd_call_t detached = {.call = place.detached};
    assert_null(call_post(&chores, queue, &detached));
    chores_stop(&chores);
    assert_int_equal(place.calls, 2);
    assert_int_equal(place.ends, 1);
    keel_device_release(place.device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_returns),          cmocka_unit_test(test_deferred),
        cmocka_unit_test(test_deferred_in_vain), cmocka_unit_test(test_deferred_elsewhere),
        cmocka_unit_test(test_completed_within), cmocka_unit_test(test_posted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
