// SPDX-License-Identifier: Apache-2.0
// Waiting on the host.
#include "suite/suite.h"

#include <sched.h>

#define MS 1000000u

TEST(wait, for_nothing)
{
    TRY(keel_wait(KEEL_NO_WAITS, KEEL_ALL, 0));
    TRY(keel_wait(KEEL_NO_WAITS, KEEL_ANY, 0));
    TRY(keel_wait(KEEL_NO_WAITS, KEEL_ALL, KEEL_FOREVER));
    TRY(keel_wait_with(KEEL_NO_WAITS, KEEL_ALL, KEEL_FOREVER, NULL));
    the_device();
}

TEST(wait, bad_arguments)
{
    keel_point_t points[] = {keel_point(new_semaphore(1), 1), keel_point(NULL, 1)};
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "points", keel_wait(keel_points(NULL, 1), KEEL_ALL, 0));
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "points[1]",
                 keel_wait(keel_points(points, 2), KEEL_ALL, 0));
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "mode",
                 keel_wait(keel_points(points, 1), (keel_wait_mode_t)2, 0));
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "mode",
                 keel_wait(keel_points(points, 1), (keel_wait_mode_t)17, 0));
}

TEST(wait, asks_without_waiting)
{
    keel_semaphore_t *semaphore = new_semaphore(1);
    TRY(keel_wait(KEEL_POINTS(keel_point(semaphore, 1)), KEEL_ALL, 0));
    FAILS(KEEL_DEADLINE_EXCEEDED, keel_wait(KEEL_POINTS(keel_point(semaphore, 2)), KEEL_ALL, 0));
    FAILS(KEEL_DEADLINE_EXCEEDED, keel_wait(KEEL_POINTS(keel_point(semaphore, 2)), KEEL_ANY, 0));
}

// Of work on two queues, by its own points, by a semaphore, and by all up to a point.
TEST(wait, polls_see_what_is_reached)
{
    keel_queue_t *queues[] = {the_queue(), new_queue(0)};
    keel_semaphore_t *semaphore = new_semaphore(0);
    keel_op_t op = keel_op_barrier();
    for (uint64_t round = 1; round <= 20; round++) {
        keel_point_t points[3] = {[2] = keel_point(semaphore, round)};
        for (size_t i = 0; i < 2; i++) {
            keel_points_t signals = i ? KEEL_SIGNAL(points[2]) : KEEL_NO_SIGNALS;
            TRY(keel_queue_run(queues[i], KEEL_NO_WAITS, op, NULL));
            TRY(keel_queue_submit(queues[i], KEEL_NO_WAITS, &op, 1, signals, &points[i]));
        }
        reach_polling(keel_points(points, 3), round % 2 ? KEEL_ALL : KEEL_ANY);
        points[round % 2] = keel_up_to(points[round % 2]);
        reach_polling(keel_points(points, 3), KEEL_ALL);
        TRY(keel_wait(keel_points(points, 3), KEEL_ALL, 0));
    }
}

TEST(wait, ends_when_time_is_up)
{
    keel_semaphore_t *semaphore = new_semaphore(0);
    static const unsigned times[] = {1, 20, 60};
    for (size_t i = 0; i < COUNT(times); i++) {
        row("%u ms", times[i]);
        uint64_t start = keel_now_ns();
        FAILS(KEEL_DEADLINE_EXCEEDED,
              keel_wait(KEEL_POINTS(keel_point(semaphore, 1)), KEEL_ALL, times[i] * MS));
        CHECK_GE(keel_now_ns() - start, times[i] * MS);
    }
}

TEST(wait, very_long_timeouts_do_not_overflow)
{
    keel_point_t point = keel_point(new_semaphore(1), 1);
    static const uint64_t times[] = {UINT64_MAX, UINT64_MAX - 1, UINT64_MAX / 2, INT64_MAX};
    for (size_t i = 0; i < COUNT(times); i++) {
        row("%llu", (unsigned long long)times[i]);
        TRY(keel_wait(KEEL_POINTS(point), KEEL_ALL, times[i]));
    }
}

TEST(wait, all_needs_all)
{
    keel_semaphore_t *a = new_semaphore(1), *b = new_semaphore(0), *c = new_semaphore(7);
    keel_point_t points[] = {keel_point(a, 1), keel_point(b, 1), keel_point(c, 7)};
    FAILS(KEEL_DEADLINE_EXCEEDED, keel_wait(keel_points(points, 3), KEEL_ALL, 5 * MS));
    TRY(keel_semaphore_signal(b, 1));
    TRY(keel_wait(keel_points(points, 3), KEEL_ALL, 0));
}

TEST(wait, any_needs_one)
{
    keel_semaphore_t *a = new_semaphore(0), *b = new_semaphore(0), *c = new_semaphore(0);
    keel_point_t points[] = {keel_point(a, 1), keel_point(b, 2), keel_point(c, 1)};
    size_t index = 99;
    keel_wait_options_t options = {.index = &index};
    TRY(keel_semaphore_signal(b, 1));
    FAILS(KEEL_DEADLINE_EXCEEDED, keel_wait_with(keel_points(points, 3), KEEL_ANY, 0, &options));
    TRY(keel_semaphore_signal(b, 2));
    TRY(keel_wait(keel_points(points, 3), KEEL_ANY, 0));
    TRY(keel_wait_with(keel_points(points, 3), KEEL_ANY, 0, &options));
    CHECK_EQ(index, 1);
}

TEST(wait, same_point_twice)
{
    keel_semaphore_t *semaphore = new_semaphore(0);
    keel_point_t points[] = {keel_point(semaphore, 1), keel_point(semaphore, 1),
                             keel_point(semaphore, 2)};
    FAILS(KEEL_DEADLINE_EXCEEDED, keel_wait(keel_points(points, 2), KEEL_ALL, MS));
    TRY(keel_semaphore_signal(semaphore, 1));
    TRY(keel_wait(keel_points(points, 2), KEEL_ALL, 0));
    TRY(keel_wait(keel_points(points, 3), KEEL_ANY, 0));
    FAILS(KEEL_DEADLINE_EXCEEDED, keel_wait(keel_points(points, 3), KEEL_ALL, MS));
}

TEST(wait, many_points)
{
    enum { N = 300 };
    keel_semaphore_t *semaphore = new_semaphore(0);
    keel_point_t *points = scratch(N * sizeof *points);
    for (uint64_t i = 0; i < N; i++) points[i] = keel_point(semaphore, N - i);
    FAILS(KEEL_DEADLINE_EXCEEDED, keel_wait(keel_points(points, N), KEEL_ANY, MS));
    TRY(keel_semaphore_signal(semaphore, N - 1));
    FAILS(KEEL_DEADLINE_EXCEEDED, keel_wait(keel_points(points, N), KEEL_ALL, MS));
    size_t index = 0;
    keel_wait_options_t options = {.index = &index};
    TRY(keel_wait_with(keel_points(points, N), KEEL_ANY, KEEL_FOREVER, &options));
    CHECK_GE(index, 1);
    TRY(keel_semaphore_signal(semaphore, N));
    TRY(keel_wait(keel_points(points, N), KEEL_ALL, 0));
}

TEST(wait, all_fails_at_once)
{
    keel_semaphore_t *a = new_semaphore(0), *b = new_semaphore(0);
    keel_point_t points[] = {keel_point(a, 1), keel_point(b, 1)};
    size_t index = 99;
    keel_wait_options_t options = {.index = &index};
    TRY(keel_semaphore_fail(b, KEEL_ERROR(KEEL_ABORTED, "b broke")));
    FAILS_SAYING(KEEL_ABORTED, "b broke", keel_wait(keel_points(points, 2), KEEL_ALL, patience()));
    FAILS(KEEL_ABORTED, keel_wait_with(keel_points(points, 2), KEEL_ALL, KEEL_FOREVER, &options));
    CHECK_EQ(index, 1);
}

TEST(wait, any_ends_with_a_failure)
{
    keel_semaphore_t *a = new_semaphore(0), *b = new_semaphore(0);
    keel_point_t points[] = {keel_point(a, 1), keel_point(b, 1)};
    size_t index = 99;
    keel_wait_options_t options = {.index = &index};
    TRY(keel_semaphore_fail(a, KEEL_ERROR(KEEL_IO, "a broke")));
    FAILS_SAYING(KEEL_IO, "a broke",
                 keel_wait_with(keel_points(points, 2), KEEL_ANY, KEEL_FOREVER, &options));
    CHECK_EQ(index, 0);
}

TEST(wait, time_up_is_not_a_failure_of_the_semaphore)
{
    keel_semaphore_t *semaphore = new_semaphore(0);
    FAILS(KEEL_DEADLINE_EXCEEDED, keel_wait(KEEL_POINTS(keel_point(semaphore, 1)), KEEL_ALL, MS));
    CHECK_EQ(value_of(semaphore), 0);
    TRY(keel_semaphore_signal(semaphore, 1));
}

// Threads that wait, of which each writes down how its wait ended.
typedef struct waiter_t {
    keel_point_t points[4];
    size_t count;
    keel_wait_mode_t mode;
    keel_wait_options_t options;
    keel_code_t expected;
    gate_t *waiting;
    gate_t *ended;
    size_t index;
} waiter_t;

static void wait_once(void *user)
{
    waiter_t *waiter = user;
    waiter->options.index = &waiter->index;
    gate_open(waiter->waiting);
    keel_status_t status = keel_wait_with(keel_points(waiter->points, waiter->count), waiter->mode,
                                          KEEL_FOREVER, &waiter->options);
    gate_open(waiter->ended);
    if (waiter->expected == KEEL_OK) {
        TRY(status);
    } else {
        FAILS(waiter->expected, status);
    }
}

static waiter_t *new_waiter(keel_code_t expected, keel_wait_mode_t mode, keel_point_t a,
                            keel_point_t b)
{
    waiter_t *waiter = scratch(sizeof *waiter);
    waiter->points[0] = a;
    waiter->points[1] = b;
    waiter->count = b.semaphore ? 2 : 1;
    waiter->mode = mode;
    waiter->expected = expected;
    waiter->waiting = new_gate();
    waiter->ended = new_gate();
    waiter->index = 99;
    return waiter;
}

static thread_t *start_waiter(waiter_t *waiter)
{
    thread_t *thread = thread_start(wait_once, waiter);
    gate_wait(waiter->waiting);
    if (waiter->options.spin_ns < MS) thread_asleep(thread);
    return thread;
}

#define NO_POINT keel_point(NULL, 0)

TEST(wait, woken_by_a_signal)
{
    keel_semaphore_t *semaphore = new_semaphore(0);
    waiter_t *waiter = new_waiter(KEEL_OK, KEEL_ALL, keel_point(semaphore, 1), NO_POINT);
    thread_t *thread = start_waiter(waiter);
    CHECK(!gate_is_open(waiter->ended));
    TRY(keel_semaphore_signal(semaphore, 1));
    thread_join(thread);
}

TEST(wait, woken_by_a_signal_beyond)
{
    keel_semaphore_t *semaphore = new_semaphore(0);
    thread_t *thread =
        start_waiter(new_waiter(KEEL_OK, KEEL_ALL, keel_point(semaphore, 3), NO_POINT));
    TRY(keel_semaphore_signal(semaphore, 1000));
    thread_join(thread);
}

TEST(wait, woken_in_the_middle_of_spinning)
{
    keel_semaphore_t *semaphore = new_semaphore(0);
    waiter_t *waiter = new_waiter(KEEL_OK, KEEL_ALL, keel_point(semaphore, 1), NO_POINT);
    waiter->options.spin_ns = 5000 * (uint64_t)MS;
    thread_t *thread = start_waiter(waiter);
    TRY(keel_semaphore_signal(semaphore, 1));
    thread_join(thread);
}

TEST(wait, spinning_respects_the_deadline)
{
    keel_point_t point = keel_point(new_semaphore(0), 1);
    uint64_t start = keel_now_ns();
    keel_wait_options_t options = {.spin_ns = 10000 * (uint64_t)MS};
    FAILS(KEEL_DEADLINE_EXCEEDED, keel_wait_with(KEEL_POINTS(point), KEEL_ALL, 20 * MS, &options));
    CHECK_GE(keel_now_ns() - start, 20 * MS);
    CHECK_LE(keel_now_ns() - start, 5000 * (uint64_t)MS);
}

TEST(wait, sleeps_after_spinning)
{
    keel_semaphore_t *semaphore = new_semaphore(0);
    waiter_t *waiter = new_waiter(KEEL_OK, KEEL_ALL, keel_point(semaphore, 1), NO_POINT);
    waiter->options.spin_ns = 100000;
    thread_t *thread = start_waiter(waiter);
    TRY(keel_semaphore_signal(semaphore, 1));
    thread_join(thread);
}

TEST(wait, not_woken_below_its_value)
{
    keel_semaphore_t *semaphore = new_semaphore(0);
    waiter_t *low = new_waiter(KEEL_OK, KEEL_ALL, keel_point(semaphore, 1), NO_POINT);
    waiter_t *high = new_waiter(KEEL_OK, KEEL_ALL, keel_point(semaphore, 2), NO_POINT);
    thread_t *threads[] = {start_waiter(low), start_waiter(high)};
    TRY(keel_semaphore_signal(semaphore, 1));
    thread_join(threads[0]);
    thread_asleep(threads[1]);
    CHECK(!gate_is_open(high->ended));
    TRY(keel_semaphore_signal(semaphore, 2));
    thread_join(threads[1]);
}

TEST(wait, many_threads_on_one_value)
{
    keel_semaphore_t *semaphore = new_semaphore(0);
    thread_t *threads[8];
    for (int i = 0; i < 8; i++) {
        threads[i] =
            start_waiter(new_waiter(KEEL_OK, KEEL_ALL, keel_point(semaphore, 1), NO_POINT));
    }
    TRY(keel_semaphore_signal(semaphore, 1));
    for (int i = 0; i < 8; i++) thread_join(threads[i]);
}

TEST(wait, all_woken_by_the_last)
{
    keel_semaphore_t *a = new_semaphore(0), *b = new_semaphore(0);
    waiter_t *waiter = new_waiter(KEEL_OK, KEEL_ALL, keel_point(a, 1), keel_point(b, 1));
    thread_t *thread = start_waiter(waiter);
    TRY(keel_semaphore_signal(b, 1));
    thread_asleep(thread);
    CHECK(!gate_is_open(waiter->ended));
    TRY(keel_semaphore_signal(a, 1));
    thread_join(thread);
}

TEST(wait, any_woken_by_the_first)
{
    keel_semaphore_t *a = new_semaphore(0), *b = new_semaphore(0);
    waiter_t *waiter = new_waiter(KEEL_OK, KEEL_ANY, keel_point(a, 1), keel_point(b, 1));
    thread_t *thread = start_waiter(waiter);
    TRY(keel_semaphore_signal(b, 1));
    thread_join(thread);
    CHECK_EQ(waiter->index, 1);
    CHECK_EQ(value_of(a), 0);
}

TEST(wait, woken_by_a_failure)
{
    keel_semaphore_t *semaphore = new_semaphore(0);
    thread_t *threads[4];
    for (int i = 0; i < 4; i++) {
        threads[i] = start_waiter(
            new_waiter(KEEL_ABORTED, KEEL_ALL, keel_point(semaphore, (uint64_t)i + 1), NO_POINT));
    }
    TRY(keel_semaphore_fail(semaphore, KEEL_ERROR(KEEL_ABORTED, "enough")));
    for (int i = 0; i < 4; i++) thread_join(threads[i]);
}

TEST(wait, all_woken_by_one_failure)
{
    keel_semaphore_t *a = new_semaphore(0), *b = new_semaphore(0);
    waiter_t *waiter = new_waiter(KEEL_IO, KEEL_ALL, keel_point(a, 1), keel_point(b, 1));
    thread_t *thread = start_waiter(waiter);
    TRY(keel_semaphore_fail(b, KEEL_ERROR(KEEL_IO, "enough")));
    thread_join(thread);
    CHECK_EQ(waiter->index, 1);
}

TEST(wait, any_woken_by_one_failure)
{
    keel_semaphore_t *a = new_semaphore(0), *b = new_semaphore(0);
    waiter_t *waiter = new_waiter(KEEL_IO, KEEL_ANY, keel_point(a, 1), keel_point(b, 1));
    thread_t *thread = start_waiter(waiter);
    TRY(keel_semaphore_fail(a, KEEL_ERROR(KEEL_IO, "enough")));
    thread_join(thread);
    CHECK_EQ(waiter->index, 0);
}

TEST(wait, on_two_devices)
{
    keel_semaphore_t *here = new_semaphore(0), *there = NULL;
    TRY(keel_semaphore_create(open_device(the_uri()), NULL, &there));
    OWN(there);
    waiter_t *waiter = new_waiter(KEEL_OK, KEEL_ALL, keel_point(here, 1), keel_point(there, 1));
    thread_t *thread = start_waiter(waiter);
    TRY(keel_semaphore_signal(there, 1));
    TRY(keel_semaphore_signal(here, 1));
    thread_join(thread);
}

TEST(wait, on_host_and_device_signals)
{
    keel_semaphore_t *host = new_semaphore(0), *gate = new_semaphore(0);
    keel_point_t done = submit_after(KEEL_AFTER(keel_point(gate, 1)), keel_op_barrier());
    waiter_t *all = new_waiter(KEEL_OK, KEEL_ALL, keel_point(host, 1), done);
    waiter_t *any = new_waiter(KEEL_OK, KEEL_ANY, keel_point(host, 1), done);
    thread_t *threads[] = {start_waiter(all), start_waiter(any)};
    TRY(keel_semaphore_signal(gate, 1));
    thread_join(threads[1]);
    CHECK_EQ(any->index, 1);
    CHECK(!gate_is_open(all->ended));
    TRY(keel_semaphore_signal(host, 1));
    thread_join(threads[0]);
}

TEST(wait, ends_when_the_device_closes)
{
    keel_semaphore_t *semaphore = new_semaphore(0);
    thread_t *thread =
        start_waiter(new_waiter(KEEL_CANCELLED, KEEL_ALL, keel_point(semaphore, 1), NO_POINT));
    drop(the_device());
    thread_join(thread);
}

typedef struct impatient_t {
    keel_semaphore_t *semaphore;
    atomic_int given_up; // waits
} impatient_t;

static void wait_and_give_up(void *user)
{
    impatient_t *own = user;
    keel_semaphore_t *semaphore = own->semaphore;
    for (uint64_t value = 1; value <= 300;) {
        keel_status_t status =
            keel_wait(KEEL_POINTS(keel_point(semaphore, value)), KEEL_ALL, random_below(50000));
        if (!status) {
            value++;
        } else {
            FAILS(KEEL_DEADLINE_EXCEEDED, status);
            atomic_fetch_add(&own->given_up, 1);
        }
    }
}

// Waits until one more has given up.
static void gives_up(impatient_t *own, int before)
{
    uint64_t start = keel_now_ns();
    while (atomic_load(&own->given_up) == before && keel_now_ns() - start < patience())
        sched_yield();
}

// Waits that give up again and again, while signals come: none is lost, none is left linked.
TEST(wait, giving_up_races_with_signals)
{
    impatient_t *own = scratch(sizeof *own);
    own->semaphore = new_semaphore(0);
    thread_t *threads[3];
    for (int i = 0; i < 3; i++) threads[i] = thread_start(wait_and_give_up, own);
    for (uint64_t i = 1; i <= 300; i++) {
        int before = atomic_load(&own->given_up);
        TRY(keel_semaphore_signal(own->semaphore, i));
        if (i % 16 == 0) gives_up(own, before);
    }
    for (int i = 0; i < 3; i++) thread_join(threads[i]);
}
