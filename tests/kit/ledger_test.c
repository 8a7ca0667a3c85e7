// SPDX-License-Identifier: Apache-2.0
#include "kit/ledger.h"

#include <stdlib.h>
#include <string.h>

#include "unit.h"

typedef struct told_t {
    waiter_t waiter;
    int count;
    keel_status_t failure; // borrowed, only compared
} told_t;

static void told_fire(waiter_t *waiter, keel_status_t failure)
{
    told_t *told = (told_t *)(void *)waiter;
    told->count++;
    told->failure = failure;
}

static keel_submission_t *const owner = (keel_submission_t *)(void *)&told_fire; // never looked at

static uint64_t open_one(keel_semaphore_t *s)
{
    uint64_t value = 0;
    lock_enter(&s->lock);
    assert_int_equal(ledger_open(s, owner, &value), LEDGER_OPENED);
    lock_leave(&s->lock);
    return value;
}

static void end_one(keel_semaphore_t *s, uint64_t value, keel_status_t failure)
{
    lock_enter(&s->lock);
    ledger_ended_t ended = ledger_end(s, value, failure);
    lock_leave(&s->lock);
    waiters_fire(ended.waiters, failure);
    waiters_fire(ended.for_all, NULL);
    waiters_fire(ended.behind, ended.cause);
    keel_status_release(ended.cause);
}

static point_state_t watch(keel_point_t point, told_t *told)
{
    *told = (told_t){.waiter = {.fire = told_fire}};
    keel_status_t failure = NULL;
    point_state_t state = point_watch(&point, &told->waiter, &failure);
    keel_status_release(failure);
    return state;
}

static point_state_t poll(keel_semaphore_t *s, uint64_t value)
{
    return ledger_poll(s, value, NULL);
}

static int setup(void **state)
{
    keel_semaphore_t *s = NULL;
    keel_status_t status = ledger_create(&s);
    *state = s;
    return status != NULL;
}

static int teardown(void **state)
{
    keel_semaphore_t *s = *state;
    s->ops->destroy(s);
    return 0;
}

static void test_points_end_in_any_order(void **state)
{
    keel_semaphore_t *s = *state;
    for (uint64_t v = 1; v <= 4; v++) assert_int_equal(open_one(s), v);
    end_one(s, 3, NULL);
    assert_int_equal(poll(s, 3), POINT_REACHED);
    assert_int_equal(poll(s, 1), POINT_PENDING);
    assert_int_equal(ledger_of(s)->ended, 0);
    end_one(s, 1, NULL);
    assert_int_equal(ledger_of(s)->ended, 1);
    end_one(s, 2, NULL);
    assert_int_equal(ledger_of(s)->ended, 3);
    assert_int_equal(poll(s, 4), POINT_PENDING);
    end_one(s, 4, NULL);
}

static void test_failure_is_of_one_point(void **state)
{
    keel_semaphore_t *s = *state;
    for (int i = 0; i < 3; i++) open_one(s);
    keel_status_t cause = KEEL_ERROR(KEEL_ABORTED, "two");
    end_one(s, 1, NULL);
    end_one(s, 2, cause);
    end_one(s, 3, NULL);
    assert_int_equal(poll(s, 1), POINT_REACHED);
    assert_int_equal(poll(s, 3), POINT_REACHED);
    keel_status_t seen = NULL;
    assert_int_equal(ledger_poll(s, 2, &seen), POINT_FAILED);
    assert_ptr_equal(seen, cause);
    keel_status_release(seen);
    keel_status_release(cause);
}

static void test_waiters_are_told_once(void **state)
{
    keel_semaphore_t *s = *state;
    for (int i = 0; i < 3; i++) open_one(s);
    told_t point, other, idle, all, gone;
    assert_int_equal(watch(keel_point(s, 2), &point), POINT_PENDING);
    assert_int_equal(watch(keel_point(s, 2), &other), POINT_PENDING);
    assert_int_equal(watch(keel_ended(keel_up_to(keel_point(s, 3))), &idle), POINT_PENDING);
    assert_int_equal(watch(keel_up_to(keel_point(s, 3)), &all), POINT_PENDING);
    assert_int_equal(watch(keel_point(s, 2), &gone), POINT_PENDING);
    assert_true(s->ops->unwatch(s, &gone.waiter));
    assert_false(s->ops->unwatch(s, &gone.waiter));
    keel_status_t cause = KEEL_ERROR(KEEL_ABORTED, "two");
    end_one(s, 2, cause);
    end_one(s, 3, NULL);
    assert_int_equal(point.count, 1);
    assert_int_equal(other.count, 1);
    assert_ptr_equal(point.failure, cause);
    assert_int_equal(idle.count, 0);
    assert_int_equal(all.count, 0);
    end_one(s, 1, NULL);
    assert_int_equal(idle.count, 1);
    assert_null(idle.failure);
    assert_int_equal(all.count, 1);
    assert_ptr_equal(all.failure, cause);
    assert_int_equal(gone.count, 0);
    keel_status_release(cause);
}

// Far more points in flight than there are slots at first, ended backwards, every third failing.
static void test_window_grows(void **state)
{
    keel_semaphore_t *s = *state;
    enum { COUNT = 5000 };
    for (int i = 0; i < COUNT; i++) open_one(s);
    keel_status_t cause = KEEL_ERROR(KEEL_ABORTED, "third");
    for (uint64_t v = COUNT; v; v--) end_one(s, v, v % 3 ? NULL : cause);
    assert_int_equal(ledger_of(s)->ended, COUNT);
    for (uint64_t v = 1; v <= COUNT; v++)
        assert_int_equal(poll(s, v), v % 3 ? POINT_REACHED : POINT_FAILED);
    keel_status_release(cause);
}

// Those who wait for one point are told in any order, and fail with its cause.
static void test_one_cause_takes_one_range(void **state)
{
    keel_semaphore_t *s = *state;
    enum { COUNT = 1000 };
    for (int i = 0; i < COUNT; i++) open_one(s);
    keel_status_t cause = KEEL_ERROR(KEEL_ABORTED, "one for all"),
                  other = KEEL_ERROR(KEEL_IO, "no");
    for (uint64_t v = COUNT; v > 600; v--) end_one(s, v, cause);
    for (uint64_t v = 1; v < 500; v++) end_one(s, v, cause);
    end_one(s, 500, other);
    for (uint64_t v = 502; v <= 600; v += 2) end_one(s, v, cause);
    for (uint64_t v = 501; v <= 599; v += 2) end_one(s, v, cause);
    assert_int_equal(ledger_of(s)->failed_count, 3);
    for (uint64_t v = 1; v <= COUNT; v++) {
        keel_status_t seen = NULL;
        assert_int_equal(ledger_poll(s, v, &seen), POINT_FAILED);
        assert_ptr_equal(seen, v == 500 ? other : cause);
        keel_status_release(seen);
    }
    keel_status_release(cause);
    keel_status_release(other);
}

enum { MANY = 8 * LEDGER_FAILURES };

// Every second fails, each with a cause of its own.
static void fail_many(keel_semaphore_t *s)
{
    for (uint64_t v = 1; v <= MANY; v++) {
        keel_status_t cause = v % 2 ? NULL : KEEL_ERROR(KEEL_ABORTED, "%d", (int)v);
        end_one(s, open_one(s), cause);
        keel_status_release(cause);
    }
    assert_true(ledger_of(s)->failed_capacity < 2 * LEDGER_FAILURES);
    assert_true(ledger_of(s)->failed_count <= ledger_of(s)->failed_capacity);
}

static void check_cause(keel_semaphore_t *s, uint64_t value, keel_code_t code, const char *words)
{
    keel_status_t failure = NULL;
    assert_int_equal(ledger_poll(s, value, &failure), POINT_FAILED);
    assert_int_equal(keel_status_code(failure), code);
    assert_non_null(strstr(keel_status_message(failure), words));
    keel_status_release(failure);
}

// Causes are forgotten, failures are not.
static void test_old_causes_are_forgotten(void **state)
{
    keel_semaphore_t *s = *state;
    fail_many(s);
    for (uint64_t v = 1; v <= MANY; v++)
        assert_int_equal(poll(s, v), v % 2 ? POINT_REACHED : POINT_FAILED);
    assert_true(ledger_of(s)->forgotten.count <= 4); // a pattern
    check_cause(s, 2, KEEL_ABORTED, "no longer kept");
    check_cause(s, MANY, KEEL_ABORTED, "131072");
    check_cause(s, MANY - 2 * LEDGER_FAILURES + 2, KEEL_ABORTED, "98306");
}

static bool starving;

static void *starve_resize(void *user, void *old, size_t size)
{
    (void)user;
    // Only what grows beyond all else here: the causes have room for good by then.
    return starving && size < 1000 ? NULL : realloc(old, size);
}

static void starve_free(void *user, void *memory)
{
    (void)user;
    free(memory);
}

// Without memory for it, no failure is taken for success.
static void test_failures_without_memory(void **state)
{
    keel_semaphore_t *s = *state;
    keel_allocator_t allocator = {starve_resize, starve_free, NULL};
    keel_status_t cause = KEEL_ERROR(KEEL_ABORTED, "again");
    keel_allocator_set(&allocator);
    end_one(s, open_one(s), NULL);
    starving = true;
    for (uint64_t v = 2; v <= MANY; v++) end_one(s, open_one(s), v % 2 ? NULL : cause);
    starving = false;
    assert_int_equal(poll(s, 1), POINT_REACHED); // before the first failure
    for (uint64_t v = 2; v <= MANY; v += 2) assert_int_equal(poll(s, v), POINT_FAILED);
    check_cause(s, 3, KEEL_OUT_OF_MEMORY, "memory"); // it went well; who knows
    assert_int_equal(poll(s, MANY - 1), POINT_REACHED);
    keel_status_release(cause);
    keel_allocator_set(NULL);
}

// One waits while others come and end.
static void test_one_that_waits_holds_up_nothing(void **state)
{
    keel_semaphore_t *s = *state;
    enum { COUNT = 1000000 };
    told_t point, all;
    uint64_t first = open_one(s);
    for (int i = 0; i < COUNT / 2; i++) end_one(s, open_one(s), NULL);
    assert_int_equal(watch(keel_point(s, first), &point), POINT_PENDING);
    assert_int_equal(watch(keel_up_to(keel_point(s, first)), &all), POINT_PENDING);
    for (int i = 0; i < COUNT / 2; i++) end_one(s, open_one(s), NULL);
    assert_true(ledger_of(s)->mask < 1024);
    assert_true(ledger_of(s)->failed_capacity < 1024);
    assert_true(ledger_of(s)->late_capacity < 1024);
    assert_int_equal(ledger_of(s)->ended, 0);
    assert_int_equal(poll(s, first), POINT_PENDING);
    assert_int_equal(poll(s, COUNT / 2), POINT_REACHED);
    end_one(s, first, NULL);
    assert_int_equal(ledger_of(s)->ended, COUNT + 1);
    assert_int_equal(poll(s, first), POINT_REACHED);
    assert_int_equal(point.count, 1);
    assert_int_equal(all.count, 1);
}

// What the ledger is to know, in as many words.
enum { MODEL = 60000 };
typedef struct model_t {
    bool pending[MODEL + 2], failed[MODEL + 2];
    uint64_t last, count;
    uint32_t seed;
} model_t;

static uint32_t model_random(model_t *m, uint32_t below)
{
    m->seed = m->seed * 1664525 + 1013904223;
    return (m->seed >> 8) % below;
}

static void model_end(model_t *m, keel_semaphore_t *s, uint64_t value, keel_status_t cause)
{
    m->pending[value] = false;
    m->failed[value] = cause;
    m->count--;
    end_one(s, value, cause);
}

static void model_check(const model_t *m, keel_semaphore_t *s)
{
    uint64_t first = 1, at = 0, seen = 0;
    while (first <= m->last && !m->pending[first]) first++;
    assert_int_equal(ledger_of(s)->ended, first - 1);
    for (uint64_t v = 1; v <= m->last; v++)
        assert_int_equal(poll(s, v), m->pending[v]  ? POINT_PENDING
                                     : m->failed[v] ? POINT_FAILED
                                                    : POINT_REACHED);
    lock_enter(&s->lock);
    for (uint64_t before = 0; ledger_next(s, &at); before = at, seen++)
        assert_true(at > before && m->pending[at]);
    lock_leave(&s->lock);
    assert_int_equal(seen, m->count);
}

// Some end at once, some after thousands of others, some fail; at times many are pending.
static void test_ledger_against_model(void **state)
{
    keel_semaphore_t *s = *state;
    keel_status_t cause = KEEL_ERROR(KEEL_ABORTED, "now and then");
    model_t *m = calloc(1, sizeof *m);
    for (m->seed = 1; m->last < MODEL;) {
        uint32_t stays = m->last / 10000 % 2 ? 3 : 100; // one of so many
        m->last = open_one(s);
        m->pending[m->last] = true;
        m->count++;
        keel_status_t failure = model_random(m, 50) ? NULL : cause;
        if (model_random(m, stays)) model_end(m, s, m->last, failure);
        uint64_t old = 1 + model_random(m, (uint32_t)m->last);
        if (m->pending[old]) model_end(m, s, old, failure);
        if (m->last % 3000 == 0) model_check(m, s);
    }
    for (uint64_t v = 1; v <= MODEL; v++)
        if (m->pending[v]) model_end(m, s, v, NULL);
    model_check(m, s);
    assert_int_equal(ledger_of(s)->ended, MODEL);
    free(m);
    keel_status_release(cause);
}

static void test_next_and_closed(void **state)
{
    keel_semaphore_t *s = *state;
    uint64_t one = open_one(s), two = open_one(s), three = open_one(s), at = 0;
    end_one(s, two, NULL);
    lock_enter(&s->lock);
    assert_ptr_equal(ledger_next(s, &at), owner);
    assert_int_equal(at, one);
    assert_ptr_equal(ledger_next(s, &at), owner);
    assert_int_equal(at, three); // two has ended
    assert_null(ledger_next(s, &at));
    lock_leave(&s->lock);
    ledger_close(s);
    uint64_t none = 0;
    lock_enter(&s->lock);
    assert_int_equal(ledger_open(s, owner, &none), LEDGER_CLOSED);
    lock_leave(&s->lock);
    end_one(s, three, NULL);
    end_one(s, one, NULL);
    assert_int_equal(ledger_of(s)->ended, three);
}

static void test_link(void **state)
{
    keel_semaphore_t *s = *state;
    uint64_t one = open_one(s);
    told_t told = {.waiter = {.fire = told_fire, .node.key = one}}, late = told;
    lock_enter(&s->lock);
    assert_true(ledger_link(s, &told.waiter));
    lock_leave(&s->lock);
    end_one(s, one, NULL);
    assert_int_equal(told.count, 1);
    lock_enter(&s->lock);
    assert_false(ledger_link(s, &late.waiter));
    lock_leave(&s->lock);
    assert_int_equal(late.count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_points_end_in_any_order, setup, teardown),
        cmocka_unit_test_setup_teardown(test_failure_is_of_one_point, setup, teardown),
        cmocka_unit_test_setup_teardown(test_waiters_are_told_once, setup, teardown),
        cmocka_unit_test_setup_teardown(test_window_grows, setup, teardown),
        cmocka_unit_test_setup_teardown(test_one_cause_takes_one_range, setup, teardown),
        cmocka_unit_test_setup_teardown(test_old_causes_are_forgotten, setup, teardown),
        cmocka_unit_test_setup_teardown(test_failures_without_memory, setup, teardown),
        cmocka_unit_test_setup_teardown(test_one_that_waits_holds_up_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(test_ledger_against_model, setup, teardown),
        cmocka_unit_test_setup_teardown(test_next_and_closed, setup, teardown),
        cmocka_unit_test_setup_teardown(test_link, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
