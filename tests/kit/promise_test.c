// SPDX-License-Identifier: Apache-2.0
#include <pthread.h>
#include <string.h>
#include <time.h>

#include "asleep.h"
#include "kit/ledger.h"
#include "kit/timeline.h"
#include "kit/wait.h"
#include "unit.h"

// A device's promise that counts what happens to it.
typedef struct fake_t {
    promise_t base;
    signal_t *signal; // kept when polled and `true_now`
    _Atomic bool true_now;
    _Atomic int asks;
    int polls, ends;
} fake_t;

static void fake_destroy(promise_t *promise)
{
    ((fake_t *)(void *)promise)->ends++;
}

static void fake_poll(promise_t *promise)
{
    fake_t *fake = (fake_t *)(void *)promise;
    fake->polls++;
    if (!fake->true_now || !fake->signal) return;
    signal_t *signal = fake->signal;
    fake->signal = NULL;
    assert_null(timeline_keep(signal));
}

static void fake_ask(promise_t *promise)
{
    ((fake_t *)(void *)promise)->asks++;
}

static const promise_ops_t fake_ops = {
    .destroy = fake_destroy, .poll = fake_poll, .ask = fake_ask, .poll_ns = 1000};

static keel_device_t here, there;

static fake_t fake_make(void)
{
    return (fake_t){.base = {.refs = 1, .device = &here, .ops = &fake_ops}};
}

static keel_semaphore_t semaphore;

static int setup(void **state)
{
    (void)state;
    memset(&semaphore, 0, sizeof semaphore);
    timeline_init(&semaphore, 0);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    keel_status_release(atomic_load(&semaphore.failure));
    return 0;
}

static int told;

static void count_told(waiter_t *waiter, keel_status_t failure)
{
    (void)waiter;
    assert_null(failure);
    told++;
}

static keel_point_t at(uint64_t value)
{
    return keel_point(&semaphore, value);
}
#define AT(v) (&(keel_point_t){.semaphore = &semaphore, .value = (v)})

// Promises a value of the semaphore.
static void promise_value(fake_t *fake, signal_t *signal, uint64_t value)
{
    *signal = (signal_t){.point = at(value), .promise = &fake->base};
    timeline_promise(signal);
}

static void test_waiters_of_the_device_are_told_at_once(void **state)
{
    (void)state;
    fake_t fake = fake_make();
    signal_t signal = {.point = at(3), .promise = &fake.base};
    waiter_t before = {.fire = count_told, .early = &here, .asks = true}, after = before;
    waiter_t beyond = before, foreign = {.fire = count_told, .early = &there, .asks = true};
    told = 0;
    assert_int_equal(point_watch(AT(2), &before, NULL), POINT_PENDING);
    assert_int_equal(point_watch(AT(4), &beyond, NULL), POINT_PENDING);
    assert_int_equal(point_watch(AT(3), &foreign, NULL), POINT_PENDING);
    timeline_promise(&signal);
    assert_int_equal(told, 1);
    assert_ptr_equal(before.promise, &fake.base);
    assert_int_equal(fake.asks, 1); // for the foreign one, which is told by the host
    assert_int_equal(point_watch(AT(3), &after, NULL), POINT_PROMISED);
    assert_ptr_equal(after.promise, &fake.base);
    assert_null(timeline_keep(&signal));
    assert_int_equal(told, 2);
    assert_true(point_unwatch(AT(4), &beyond));
    promise_release(before.promise);
    promise_release(after.promise);
    promise_release(&fake.base);
    assert_int_equal(fake.ends, 1);
}

// The host may learn of the later one first.
static void test_promised_signals_come_in_any_order(void **state)
{
    (void)state;
    fake_t fake = fake_make();
    signal_t one, two;
    promise_value(&fake, &one, 1);
    promise_value(&fake, &two, 2);
    assert_null(timeline_keep(&two));
    assert_int_equal(atomic_load(&semaphore.value), 2);
    assert_null(timeline_keep(&one));
    assert_int_equal(atomic_load(&semaphore.value), 2);
}

static void test_the_oldest_that_covers_a_value_is_found(void **state)
{
    (void)state;
    fake_t fakes[] = {fake_make(), fake_make(), fake_make()};
    static const uint64_t values[] = {2, 5, 9};
    signal_t signals[3];
    for (int i = 0; i < 3; i++) {
        promise_value(&fakes[i], &signals[i], values[i]);
    }
    for (uint64_t value = 1; value <= 9; value++) {
        promise_t *promise = point_promise(AT(value));
        assert_ptr_equal(promise, &fakes[value <= 2 ? 0 : value <= 5 ? 1 : 2].base);
        promise_release(promise);
    }
    assert_null(point_promise(AT(10)));
    for (int i = 0; i < 3; i++) timeline_break(&signals[i]);
    assert_null(point_promise(AT(1)));
}

// The best of some tries: of a thousand looks for the newest of so many promised values.
static uint64_t look_ns(fake_t *fake, signal_t *signals, uint64_t count)
{
    uint64_t best = UINT64_MAX;
    for (uint64_t i = 0; i < count; i++) {
        promise_value(fake, &signals[i], i + 1);
    }
    for (int try = 0; try < 20; try++) {
        uint64_t start = keel_now_ns();
        for (int i = 0; i < 1000; i++) promise_release(point_promise(AT(count)));
        uint64_t took = keel_now_ns() - start;
        if (took < best) best = took;
    }
    for (uint64_t i = 0; i < count; i++) timeline_break(&signals[i]);
    return best;
}

// One who sleeps for a value that is promised has nothing to do with what is promised later.
static void test_only_new_waiters_look_at_a_promise(void **state)
{
    (void)state;
    enum { LATER = 100 };
    fake_t first = fake_make(), later = fake_make();
    signal_t one, others[LATER];
    waiter_t before = {.fire = count_told, .asks = true}, after = before, beyond = before;
    told = 0;
    assert_int_equal(point_watch(AT(1), &before, NULL), POINT_PENDING);
    assert_int_equal(point_watch(AT(LATER), &beyond, NULL), POINT_PENDING);
    promise_value(&first, &one, 1);
    assert_int_equal(first.asks, 1);
    assert_int_equal(point_watch(AT(1), &after, NULL), POINT_PENDING);
    assert_int_equal(first.asks, 2);
    for (uint64_t i = 2; i < LATER; i++) promise_value(&later, &others[i], i);
    assert_int_equal(later.asks, 0);
    promise_value(&later, &others[0], LATER);
    assert_int_equal(later.asks, 1);
    assert_null(timeline_keep(&one));
    assert_int_equal(told, 2);
    for (uint64_t i = 2; i < LATER; i++) assert_null(timeline_keep(&others[i]));
    assert_int_equal(told, 2);
    timeline_break(&others[0]);
    promise_value(&later, &others[0], LATER + 1); // another promise will
    assert_int_equal(later.asks, 2);
    assert_null(timeline_signal(&semaphore, LATER));
    assert_int_equal(told, 3);
    timeline_break(&others[0]);
}

// Work that is chained by a semaphore waits for the newest value, whatever is in flight.
static void test_the_newest_is_found_at_once(void **state)
{
    (void)state;
    enum { FEW = 10, MANY = 10000 };
    static signal_t signals[MANY];
    fake_t fake = fake_make();
    uint64_t few = look_ns(&fake, signals, FEW), many = look_ns(&fake, signals, MANY);
    assert_in_range(many, 0, few * 20);
}

// A larger value is signalled while a smaller one is promised: the two were not ordered.
static void test_overtaken_signals_are_told(void **state)
{
    (void)state;
    fake_t fake = fake_make();
    signal_t three, nine;
    promise_value(&fake, &three, 3);
    promise_value(&fake, &nine, 9);
    assert_null(timeline_signal(&semaphore, 1));
    assert_null(timeline_signal(&semaphore, 5));
    keel_status_t failure = timeline_keep(&three);
    assert_int_equal(keel_status_code(failure), KEEL_FAILED_PRECONDITION);
    assert_non_null(strstr(keel_status_message(failure), "to 3: it has reached 5"));
    keel_status_release(failure);
    assert_null(timeline_keep(&nine));
    assert_int_equal(atomic_load(&semaphore.value), 9);
    assert_null(timeline_signal(&semaphore, 10));
}

// The host may learn of a larger one first and go on by that: what is promised before is in order.
static void test_what_has_come_is_not_overtaken(void **state)
{
    (void)state;
    fake_t fake = fake_make();
    signal_t six, seven;
    promise_value(&fake, &six, 6);
    promise_value(&fake, &seven, 7);
    assert_null(timeline_keep(&seven));
    assert_null(timeline_signal(&semaphore, 9));
    assert_null(timeline_keep(&six));
    assert_int_equal(atomic_load(&semaphore.value), 9);
}

static void test_signals_out_of_order_are_not_promised(void **state)
{
    (void)state;
    fake_t fake = fake_make();
    signal_t two, one;
    promise_value(&fake, &two, 2);
    promise_value(&fake, &one, 1);
    assert_false(one.listed);
    assert_null(timeline_keep(&two));
    keel_status_t failure = timeline_keep(&one);
    assert_int_equal(keel_status_code(failure), KEEL_FAILED_PRECONDITION);
    keel_status_release(failure);
}

static void test_broken_promises_leave_the_point_pending(void **state)
{
    (void)state;
    fake_t fake = fake_make();
    signal_t signal;
    promise_value(&fake, &signal, 1);
    timeline_break(&signal);
    assert_null(point_promise(AT(1)));
    assert_int_equal(timeline_poll(&semaphore, 1, NULL), POINT_PENDING);
}

// A lost device breaks its promises; what another has promised still comes, and shows at once.
static void test_waiters_of_a_broken_promise_ask_the_next(void **state)
{
    (void)state;
    fake_t lost[] = {fake_make(), fake_make()}, other = fake_make(), beyond = fake_make();
    signal_t signals[4];
    waiter_t asking = {.fire = count_told, .asks = true}, early = asking, later = asking;
    other.base.device = beyond.base.device = early.early = &there;
    for (uint64_t i = 0; i < 2; i++) promise_value(&lost[i], &signals[i], i + 1);
    told = 0;
    assert_int_equal(point_watch(AT(1), &asking, NULL), POINT_PENDING);
    assert_int_equal(point_watch(AT(1), &early, NULL), POINT_PENDING);
    promise_value(&other, &signals[2], 3);
    promise_value(&beyond, &signals[3], 4);
    assert_int_equal(point_watch(AT(4), &later, NULL), POINT_PENDING);
    timeline_break(&signals[0]);
    assert_int_equal(lost[1].asks, 0); // goes the same way
    assert_int_equal(other.asks, 0);
    timeline_break(&signals[1]);
    assert_int_equal(told, 1); // by that promise of its own device
    assert_ptr_equal(early.promise, &other.base);
    assert_int_equal(other.asks, 1);
    assert_int_equal(beyond.asks, 1); // by the one that waits for it alone
    assert_null(timeline_keep(&signals[2]));
    assert_int_equal(told, 2);
    assert_null(timeline_keep(&signals[3]));
    assert_int_equal(told, 3);
    promise_release(early.promise);
    assert_int_equal(other.base.refs, 1);
}

static void timed_out(keel_status_t status)
{
    assert_int_equal(keel_status_code(status), KEEL_DEADLINE_EXCEEDED);
    keel_status_release(status);
}

static void test_a_wait_polls_first(void **state)
{
    (void)state;
    fake_t fake = fake_make();
    signal_t signal = {.point = at(1), .promise = &fake.base};
    fake.signal = &signal;
    timeline_promise(&signal);
    wait_t wait;
    wait_entry_t entry = {.point = at(1)};
    wait_begin(&wait, KEEL_ALL, &entry, 1);
    wait_sleep(&wait, 1, 0); // long ago: looks once, and needs no wake-up
    assert_int_equal(fake.polls, 1);
    assert_int_equal(fake.asks, 0);
    timed_out(wait_end(&wait, NULL));
    fake.true_now = true;
    entry = (wait_entry_t){.point = at(1)};
    wait_begin(&wait, KEEL_ALL, &entry, 1);
    wait_sleep(&wait, KEEL_FOREVER, 0);
    assert_null(wait_end(&wait, NULL));
    assert_int_equal(fake.asks, 0);
}

// If any will do, each is looked at.
static void wait_for_any(uint64_t deadline_ns, uint64_t spin_ns)
{
    fake_t fakes[] = {fake_make(), fake_make()};
    signal_t signals[2];
    wait_entry_t entries[2];
    wait_t wait;
    for (uint64_t i = 0; i < 2; i++) {
        promise_value(&fakes[i], &signals[i], i + 1);
        entries[i] = (wait_entry_t){.point = at(2 - i)};
    }
    fakes[0].signal = &signals[0];
    fakes[0].true_now = true;
    size_t index = 0;
    wait_begin(&wait, KEEL_ANY, entries, 2);
    wait_sleep(&wait, deadline_ns, spin_ns);
    assert_null(wait_end(&wait, &index));
    assert_int_equal(index, 1);
    assert_int_equal(fakes[0].asks + fakes[1].asks, 0);
    timeline_break(&signals[1]);
}

static void test_a_wait_for_any_polls_all(void **state)
{
    (void)state;
    wait_for_any(KEEL_FOREVER, UINT64_C(10000000000));
}

static void test_asking_for_any_polls_all(void **state)
{
    (void)state;
    wait_for_any(1, 0); // long ago
}

// A thread that will not sleep looks at all points, as long as they have come.
static void test_a_poll_sees_all_that_came(void **state)
{
    (void)state;
    enum { N = 3 };
    fake_t fakes[N];
    signal_t signals[N];
    wait_t wait;
    for (uint64_t i = 0; i < N; i++) {
        fakes[i] = fake_make();
        promise_value(&fakes[i], &signals[i], i + 1);
        fakes[i].signal = &signals[i];
    }
    for (int came = 0; came <= N; came++) {
        wait_entry_t entries[N] = {{.point = at(1)}, {.point = at(2)}, {.point = at(3)}};
        for (int i = 0; i < came; i++) fakes[i].true_now = true;
        wait_begin(&wait, KEEL_ALL, entries, N);
        wait_sleep(&wait, 0, 0);
        if (came < N) timed_out(wait_end(&wait, NULL));
    }
    assert_null(wait_end(&wait, NULL));
    for (int i = 0; i < N; i++) assert_int_equal(fakes[i].asks, 0);
    assert_int_equal(fakes[0].polls + fakes[1].polls + fakes[2].polls, 2 + 2 + 2);
}

// When a thread has asked, and sleeps.
static void *come_true_late(void *argument)
{
    fake_t *fake = argument;
    while (!fake->asks) nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    asleep(getpid());
    fake->true_now = true;
    return NULL;
}

// A thread that asks may find no thread to tell it.
static void test_a_wait_that_nobody_tells_ends(void **state)
{
    (void)state;
    fake_t fake = fake_make();
    signal_t signal = {.point = at(1), .promise = &fake.base};
    fake.signal = &signal;
    timeline_promise(&signal);
    wait_t wait;
    wait_entry_t entry = {.point = at(1)};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, come_true_late, &fake), 0);
    wait_begin(&wait, KEEL_ALL, &entry, 1);
    wait_sleep(&wait, KEEL_FOREVER, 0);
    assert_null(wait_end(&wait, NULL));
    assert_int_equal(fake.asks, 1);
    pthread_join(thread, NULL);
}

static void test_points_of_a_queue(void **state)
{
    (void)state;
    keel_semaphore_t *ledger = NULL;
    assert_null(ledger_create(&ledger));
    fake_t fake = fake_make();
    uint64_t value = 0;
    lock_enter(&ledger->lock);
    assert_int_equal(ledger_open(ledger, (keel_submission_t *)(void *)&value, &value),
                     LEDGER_OPENED);
    lock_leave(&ledger->lock);
    keel_point_t point = keel_point(ledger, value), up_to = keel_up_to(point);
    waiter_t early = {.fire = count_told, .early = &here}, late = early;
    waiter_t all = {.fire = count_told};
    told = 0;
    assert_int_equal(point_watch(&point, &early, NULL), POINT_PENDING);
    assert_int_equal(point_watch(&up_to, &all, NULL), POINT_PENDING);
    ledger_promise(ledger, value, &fake.base);
    assert_int_equal(told, 1);
    assert_int_equal(fake.asks, 1); // for the one that waits for all
    assert_int_equal(point_watch(&point, &late, NULL), POINT_PROMISED);
    wait_t wait;
    wait_entry_t entry = {.point = up_to};
    wait_begin(&wait, KEEL_ALL, &entry, 1);
    wait_sleep(&wait, 0, 0);
    timed_out(wait_end(&wait, NULL));
    assert_int_equal(fake.polls, 1);
    assert_int_equal(fake.asks, 1);
    promise_t *last = point_ask(&up_to, &all);
    assert_ptr_equal(last, &fake.base);
    promise_release(last);
    lock_enter(&ledger->lock);
    ledger_ended_t ended = ledger_end(ledger, value, NULL);
    lock_leave(&ledger->lock);
    waiters_fire(ended.for_all, NULL);
    assert_int_equal(told, 2);
    assert_null(point_promise(&point));
    ledger->ops->destroy(ledger);
}

// Those that may fail are for waiters for one point's success alone.
static void test_one_that_may_fail_serves_fewer(void **state)
{
    (void)state;
    fake_t fake = fake_make();
    fake.base.may_fail = true;
    signal_t signal;
    promise_value(&fake, &signal, 1);
    waiter_t plain = {.fire = count_told, .early = &here}, ended = plain;
    told = 0;
    assert_int_equal(point_watch(AT(1), &plain, NULL), POINT_PROMISED);
    keel_point_t end = at(1);
    end.until = KEEL_ENDED;
    assert_int_equal(point_watch(&end, &ended, NULL), POINT_PENDING);
    assert_null(timeline_keep(&signal));
    assert_int_equal(told, 1);
    promise_release(plain.promise);
}

// Nor for who waits for a smaller value, which may come from elsewhere. A waiter that is there
// before takes it no more than one that comes after it.
static void test_one_that_may_fail_serves_its_value(void **state)
{
    (void)state;
    fake_t fake = fake_make();
    fake.base.may_fail = true;
    signal_t signal;
    waiter_t before = {.fire = count_told, .early = &here}, after = before, exact = before;
    told = 0;
    assert_int_equal(point_watch(AT(3), &before, NULL), POINT_PENDING);
    promise_value(&fake, &signal, 5);
    assert_int_equal(told, 0);
    assert_int_equal(point_watch(AT(3), &after, NULL), POINT_PENDING);
    assert_int_equal(point_watch(AT(5), &exact, NULL), POINT_PROMISED);
    assert_null(timeline_signal(&semaphore, 3));
    assert_int_equal(told, 2);
    assert_null(before.promise);
    assert_null(after.promise);
    assert_null(timeline_keep(&signal));
    promise_release(exact.promise);
}

// One that does not hang on the one before it is made when its submission has ended, and not if the
// one before has failed meanwhile.
static void test_one_that_may_fail_hangs_on_the_one_before(void **state)
{
    (void)state;
    fake_t first = fake_make(), second = fake_make(), third = fake_make();
    first.base.may_fail = third.base.may_fail = true;
    signal_t signals[3] = {{.point = at(1), .promise = &first.base},
                           {.point = at(2), .promise = &second.base},
                           {.point = at(2), .promise = &third.base, .after = 1}};
    for (int i = 0; i < 3; i++) timeline_promise(&signals[i]);
    assert_true(signals[0].listed && signals[2].listed);
    assert_false(signals[1].listed);
    keel_status_t failure = KEEL_ERROR(KEEL_ABORTED, "it died");
    for (int i = 0; i < 3; i += 2) assert_null(timeline_settle(&signals[i], failure));
    assert_null(timeline_settle(&signals[1], NULL));
    uint64_t value = 9;
    keel_status_t status = semaphore.ops->value(&semaphore, &value);
    assert_int_equal(keel_status_code(status), KEEL_ABORTED);
    assert_int_equal(value, 0);
    keel_status_release(status);
    keel_status_release(failure);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_waiters_of_the_device_are_told_at_once, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_promised_signals_come_in_any_order, setup, teardown),
        cmocka_unit_test_setup_teardown(test_the_oldest_that_covers_a_value_is_found, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_only_new_waiters_look_at_a_promise, setup, teardown),
        cmocka_unit_test_setup_teardown(test_the_newest_is_found_at_once, setup, teardown),
        cmocka_unit_test_setup_teardown(test_overtaken_signals_are_told, setup, teardown),
        cmocka_unit_test_setup_teardown(test_what_has_come_is_not_overtaken, setup, teardown),
        cmocka_unit_test_setup_teardown(test_signals_out_of_order_are_not_promised, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_broken_promises_leave_the_point_pending, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_waiters_of_a_broken_promise_ask_the_next, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_a_wait_polls_first, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_wait_for_any_polls_all, setup, teardown),
        cmocka_unit_test_setup_teardown(test_asking_for_any_polls_all, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_poll_sees_all_that_came, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_wait_that_nobody_tells_ends, setup, teardown),
        cmocka_unit_test_setup_teardown(test_points_of_a_queue, setup, teardown),
        cmocka_unit_test_setup_teardown(test_one_that_may_fail_serves_fewer, setup, teardown),
        cmocka_unit_test_setup_teardown(test_one_that_may_fail_serves_its_value, setup, teardown),
        cmocka_unit_test_setup_teardown(test_one_that_may_fail_hangs_on_the_one_before, setup,
                                        teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
