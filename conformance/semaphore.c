// SPDX-License-Identifier: Apache-2.0
// Semaphores by themselves: values, signals, failure.
#include "suite/suite.h"

TEST(semaphore, starts_at_zero)
{
    keel_semaphore_t *semaphore = NULL;
    TRY(keel_semaphore_create(the_device(), NULL, &semaphore));
    OWN(semaphore);
    CHECK_EQ(value_of(semaphore), 0);
    reach_value(semaphore, 0);
}

TEST(semaphore, starts_where_told)
{
    static const uint64_t values[] = {1, 5, UINT32_MAX, (uint64_t)UINT32_MAX + 1,
                                      UINT64_C(1) << 62};
    for (size_t i = 0; i < COUNT(values); i++) {
        row("%llu", (unsigned long long)values[i]);
        keel_semaphore_t *semaphore = new_semaphore(values[i]);
        CHECK_EQ(value_of(semaphore), values[i]);
        reach_value(semaphore, values[i]);
        FAILS(KEEL_DEADLINE_EXCEEDED,
              keel_wait(KEEL_POINTS(keel_point(semaphore, values[i] + 1)), KEEL_ALL, 0));
    }
}

TEST(semaphore, signal_moves_forward)
{
    keel_semaphore_t *semaphore = new_semaphore(2);
    static const uint64_t steps[] = {3, 4, 100, UINT64_C(1) << 40, (UINT64_C(1) << 63) - 1};
    for (size_t i = 0; i < COUNT(steps); i++) {
        row("%llu", (unsigned long long)steps[i]);
        TRY(keel_semaphore_signal(semaphore, steps[i]));
        CHECK_EQ(value_of(semaphore), steps[i]);
        reach_value(semaphore, steps[i]);
    }
}

TEST(semaphore, signal_backwards_is_refused)
{
    keel_semaphore_t *semaphore = new_semaphore(5);
    FAILS(KEEL_FAILED_PRECONDITION, keel_semaphore_signal(semaphore, 5));
    FAILS(KEEL_FAILED_PRECONDITION, keel_semaphore_signal(semaphore, 4));
    FAILS(KEEL_FAILED_PRECONDITION, keel_semaphore_signal(semaphore, 0));
    CHECK_EQ(value_of(semaphore), 5);
    TRY(keel_semaphore_signal(semaphore, 6));
    CHECK_EQ(value_of(semaphore), 6);
}

TEST(semaphore, failure_is_final)
{
    keel_semaphore_t *semaphore = new_semaphore(3);
    uint64_t value = 0;
    TRY(keel_semaphore_fail(semaphore, KEEL_ERROR(KEEL_ABORTED, "the boiler burst")));
    FAILS_SAYING(KEEL_ABORTED, "the boiler burst", keel_semaphore_value(semaphore, &value));
    CHECK_EQ(value, 3);
    FAILS_SAYING(KEEL_ABORTED, "the boiler burst", keel_semaphore_signal(semaphore, 4));
    FAILS(KEEL_ABORTED, keel_semaphore_value(semaphore, &value));
    CHECK_EQ(value, 3);
}

TEST(semaphore, failure_keeps_every_code)
{
    static const keel_code_t codes[] = {
        KEEL_INVALID_ARGUMENT, KEEL_NOT_FOUND,   KEEL_CANCELLED, KEEL_ABORTED,          KEEL_IO,
        KEEL_INTERNAL,         KEEL_DEVICE_LOST, KEEL_CORRUPT,   KEEL_DEADLINE_EXCEEDED};
    for (size_t i = 0; i < COUNT(codes); i++) {
        row("%s", keel_code_name(codes[i]));
        keel_semaphore_t *semaphore = new_semaphore(0);
        uint64_t value;
        TRY(keel_semaphore_fail(semaphore, KEEL_ERROR(codes[i], "cause %zu", i)));
        FAILS_SAYING(codes[i], "cause", keel_semaphore_value(semaphore, &value));
    }
}

TEST(semaphore, first_failure_stays)
{
    keel_semaphore_t *semaphore = new_semaphore(0);
    uint64_t value;
    TRY(keel_semaphore_fail(semaphore, KEEL_ERROR(KEEL_IO, "the first")));
    TRY(keel_semaphore_fail(semaphore, KEEL_ERROR(KEEL_ABORTED, "the second")));
    FAILS_SAYING(KEEL_IO, "the first", keel_semaphore_value(semaphore, &value));
}

TEST(semaphore, reached_points_stay_reached)
{
    keel_semaphore_t *semaphore = new_semaphore(0);
    TRY(keel_semaphore_signal(semaphore, 4));
    TRY(keel_semaphore_fail(semaphore, KEEL_ERROR(KEEL_ABORTED, "too late")));
    reach_value(semaphore, 4);
    reach_value(semaphore, 1);
    reach_failure(keel_point(semaphore, 5), KEEL_ABORTED);
}

TEST(semaphore, device_sees_reached_points_of_a_failed_one)
{
    keel_semaphore_t *semaphore = new_semaphore(4);
    TRY(keel_semaphore_fail(semaphore, KEEL_ERROR(KEEL_ABORTED, "too late")));
    reach(submit_after(KEEL_AFTER(keel_point(semaphore, 4)), keel_op_barrier()));
    reach_failure(submit_after(KEEL_AFTER(keel_point(semaphore, 5)), keel_op_barrier()),
                  KEEL_ABORTED);
}

// A queue's signal that comes to a larger value fails the semaphore.
TEST(semaphore, unordered_signals)
{
    keel_semaphore_t *gate = new_semaphore(0), *semaphore = new_semaphore(0);
    keel_point_t done;
    uint64_t value = 0;
    TRY(keel_queue_signal(the_queue(), KEEL_AFTER(keel_point(gate, 1)),
                          KEEL_SIGNAL(keel_point(semaphore, 5)), &done));
    TRY(keel_semaphore_signal(semaphore, 10));
    TRY(keel_semaphore_signal(gate, 1));
    reach_failure_saying(done, KEEL_FAILED_PRECONDITION, "to 5: it has reached 10");
    FAILS(KEEL_FAILED_PRECONDITION, keel_semaphore_value(semaphore, &value));
    CHECK_EQ(value, 10);
    reach_value(semaphore, 10);
    reach_failure(keel_point(semaphore, 11), KEEL_FAILED_PRECONDITION);
}

// The error says whose signal it was, and the submission fails: what came before in its list
// stands, what comes after fails.
TEST(semaphore, unordered_signal_is_blamed)
{
    keel_queue_options_t options = {.name = "engine"};
    keel_queue_t *queue = NULL;
    TRY(keel_queue_create(the_device(), &options, &queue));
    OWN(queue);
    keel_semaphore_t *before = new_semaphore(0), *full = new_semaphore(7),
                     *after = new_semaphore(0);
    keel_point_t signals[] = {keel_point(before, 1), keel_point(full, 7), keel_point(after, 1)};
    keel_point_t done;
    TRY(keel_queue_signal(queue, KEEL_NO_WAITS, keel_points(signals, 3), &done));
    reach_failure(done, KEEL_FAILED_PRECONDITION);
    reach_value(before, 1);
    reach_value(full, 7);
    reach_failure(keel_point(after, 1), KEEL_FAILED_PRECONDITION);
    keel_point_t points[] = {done, keel_point(full, 8), keel_point(after, 1)};
    for (size_t i = 0; i < COUNT(points); i++) {
        row("point %zu", i);
        keel_status_t status = keel_wait(KEEL_POINTS(points[i]), KEEL_ALL, patience());
        OWN(status);
        if (!starved() && !faulted())
            CHECK_HAS(keel_status_path(status), "queue 'engine', submission 1 > signals[1]");
    }
    // A signal on a semaphore that failed before does not fail the submission.
    TRY(keel_queue_signal(queue, KEEL_NO_WAITS, KEEL_SIGNAL(keel_point(full, 9)), &done));
    reach(done);
}

// The same where the device has been given the work already, and has promised the signal. False if
// it was over too soon.
static bool signal_is_overtaken(uint32_t us)
{
    keel_semaphore_t *semaphore = new_semaphore(0);
    keel_buffer_t *words = new_buffer(16);
    uint32_t k[] = {0, 2, us};
    uint64_t value = 0;
    keel_point_t done;
    reach(submit(keel_op_fill(keel_whole(words), 0, 4)));
    keel_op_t op = op_kernel("await", 1, k, sizeof k, KEEL_BIND(words));
    TRY(keel_queue_submit(the_queue(), KEEL_NO_WAITS, &op, 1, KEEL_SIGNAL(keel_point(semaphore, 3)),
                          &done));
    TRY(keel_semaphore_signal(semaphore, 5));
    bool overtaken = pending(done);
    reach(keel_ended(done));
    if (!overtaken || faulted()) return overtaken;
    reach_failure(done, KEEL_FAILED_PRECONDITION);
    FAILS_SAYING(KEEL_FAILED_PRECONDITION, "to 3: it has reached 5",
                 keel_semaphore_value(semaphore, &value));
    CHECK_EQ(value, 5);
    return true;
}

TEST(semaphore, overtaken_signals, .needs = KEEL_CAP_EXECUTES, .also = NEED_OVERLAP | NEED_WORKERS)
{
    uint32_t us = 20000;
    while (!signal_is_overtaken(us) && us < 5000000) us *= 4;
    CHECK_LE(us, 5000000);
}

TEST(semaphore, host_cannot_signal_a_timeline)
{
    reach(submit(keel_op_barrier()));
    keel_semaphore_t *timeline = keel_queue_timeline(the_queue());
    FAILS(KEEL_FAILED_PRECONDITION, keel_semaphore_signal(timeline, 100));
    reach(submit(keel_op_barrier()));
    CHECK_EQ(value_of(timeline), 2);
}

TEST(semaphore, queue_cannot_signal_a_timeline)
{
    keel_queue_t *other = new_queue(0);
    keel_semaphore_t *timelines[] = {keel_queue_timeline(the_queue()), keel_queue_timeline(other)};
    for (int i = 0; i < 2; i++) {
        row("timeline %d", i);
        FAILS_SAYING(KEEL_INVALID_ARGUMENT, "signals[0]",
                     keel_queue_signal(the_queue(), KEEL_NO_WAITS,
                                       KEEL_SIGNAL(keel_point(timelines[i], 100)), NULL));
    }
    CHECK_EQ(value_of(timelines[0]), 0);
}

TEST(semaphore, bad_arguments)
{
    keel_semaphore_t *semaphore = NULL;
    uint64_t value;
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "device", keel_semaphore_create(NULL, NULL, &semaphore));
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "semaphore",
                 keel_semaphore_create(the_device(), NULL, NULL));
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "semaphore", keel_semaphore_value(NULL, &value));
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "value", keel_semaphore_value(new_semaphore(0), NULL));
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "semaphore", keel_semaphore_signal(NULL, 1));
    CHECK(semaphore == NULL);
}

TEST(semaphore, retain_and_release)
{
    keel_semaphore_t *semaphore = new_semaphore(0);
    CHECK(keel_semaphore_retain(semaphore) == semaphore);
    keel_semaphore_release(semaphore);
    TRY(keel_semaphore_signal(semaphore, 1));
    keel_semaphore_release(NULL);
}

// What cannot be failed so; the cause is taken all the same.
TEST(semaphore, fail_bad_arguments)
{
    keel_semaphore_t *semaphore = new_semaphore(0), *timeline = keel_queue_timeline(the_queue());
    keel_live_t before, after;
    keel_live_objects(&before);
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "semaphore",
                 keel_semaphore_fail(NULL, KEEL_ERROR(KEEL_ABORTED, "no semaphore to fail")));
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "cause", keel_semaphore_fail(semaphore, NULL));
    FAILS_SAYING(KEEL_FAILED_PRECONDITION, "timeline",
                 keel_semaphore_fail(timeline, KEEL_ERROR(KEEL_ABORTED, "not by you")));
    keel_live_objects(&after);
    CHECK_EQ(after.statuses, before.statuses);
    TRY(keel_semaphore_signal(semaphore, 1)); // nothing has failed
    reach(submit(keel_op_barrier()));
}

// No semaphore comes to 2^63, so who waits for it would wait for ever.
TEST(semaphore, values_that_cannot_come)
{
    static const uint64_t values[] = {UINT64_C(1) << 63, (UINT64_C(1) << 63) + 5, UINT64_MAX};
    keel_semaphore_t *semaphore = new_semaphore(1);
    keel_completion_t *ends = NULL;
    TRY(keel_completion_create(&ends));
    OWN(ends);
    for (size_t i = 0; i < COUNT(values); i++) {
        char value[40];
        keel_point_t points[] = {keel_point(semaphore, 1), keel_point(semaphore, values[i])};
        snprintf(value, sizeof value, "[1].value is %llu", (unsigned long long)values[i]);
        row("%s", value);
        FAILS_SAYING(KEEL_INVALID_ARGUMENT, value, keel_wait(keel_points(points, 2), KEEL_ALL, 0));
        FAILS_SAYING(KEEL_INVALID_ARGUMENT, value, keel_wait(keel_points(points, 2), KEEL_ANY, 0));
        FAILS_SAYING(KEEL_INVALID_ARGUMENT, value,
                     keel_completion_add(ends, keel_points(points, 2), KEEL_ALL, NULL));
        FAILS_SAYING(KEEL_INVALID_ARGUMENT, value,
                     keel_queue_signal(the_queue(), keel_points(points, 2), KEEL_NO_SIGNALS, NULL));
        FAILS_SAYING(KEEL_INVALID_ARGUMENT, value,
                     keel_queue_signal(the_queue(), KEEL_NO_WAITS, keel_points(points, 2), NULL));
    }
    keel_point_t most = keel_point(semaphore, (UINT64_C(1) << 63) - 1);
    FAILS(KEEL_DEADLINE_EXCEEDED, keel_wait(KEEL_POINTS(most), KEEL_ALL, 0));
}

static void signal_in_turn(void *user)
{
    keel_semaphore_t **pair = user;
    for (uint64_t i = 1; i <= 500; i++) {
        reach_value(pair[0], i);
        TRY(keel_semaphore_signal(pair[1], i));
    }
}

TEST(semaphore, ping_pong)
{
    keel_semaphore_t *pair[] = {new_semaphore(0), new_semaphore(0)};
    thread_t *thread = thread_start(signal_in_turn, pair);
    for (uint64_t i = 1; i <= 500; i++) {
        TRY(keel_semaphore_signal(pair[0], i));
        reach_value(pair[1], i);
    }
    thread_join(thread);
}

typedef struct race_t {
    keel_semaphore_t *semaphore;
    gate_t *start;
    atomic_uint wins;
} race_t;

static void race_to_signal(void *user)
{
    race_t *race = user;
    gate_wait(race->start);
    keel_status_t status = keel_semaphore_signal(race->semaphore, 1);
    if (!status) {
        atomic_fetch_add(&race->wins, 1);
    } else {
        FAILS(KEEL_FAILED_PRECONDITION, status);
    }
}

// Of many that signal the same value at once exactly one moves the semaphore.
TEST(semaphore, one_signaller_wins)
{
    for (size_t round = 0; round < few(32); round++) {
        race_t *race = scratch(sizeof *race);
        thread_t *threads[4];
        race->semaphore = new_semaphore(0);
        race->start = new_gate();
        for (int i = 0; i < 4; i++) threads[i] = thread_start(race_to_signal, race);
        gate_open(race->start);
        for (int i = 0; i < 4; i++) thread_join(threads[i]);
        CHECK_EQ(atomic_load(&race->wins), 1);
        CHECK_EQ(value_of(race->semaphore), 1);
    }
}
