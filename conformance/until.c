// SPDX-License-Identifier: Apache-2.0
// What a wait waits for: the end of a point, however it came, and all points up to one.
#include "suite/suite.h"

#define RUNS .needs = KEEL_CAP_EXECUTES | KEEL_CAP_KERNEL_STATUS

static keel_semaphore_t *failed_semaphore(void)
{
    keel_semaphore_t *semaphore = new_semaphore(0);
    TRY(keel_semaphore_fail(semaphore, KEEL_ERROR(KEEL_CORRUPT, "torn")));
    return semaphore;
}

static keel_point_t after_on(keel_queue_t *queue, keel_point_t wait)
{
    keel_point_t done;
    TRY(keel_queue_run(queue, KEEL_AFTER(wait), keel_op_barrier(), &done));
    return done;
}

// All up to the queue's newest, however they end.
static keel_point_t all_of(keel_queue_t *queue)
{
    return keel_ended(keel_up_to(keel_queue_newest(queue)));
}

static void check_ended(keel_semaphore_t *semaphore)
{
    keel_point_t one = keel_point(semaphore, 1), two = keel_point(semaphore, 2);
    FAILS(KEEL_DEADLINE_EXCEEDED, keel_wait(KEEL_POINTS(keel_ended(one)), KEEL_ALL, 0));
    TRY(keel_semaphore_signal(semaphore, 1));
    reach(keel_ended(one));
    FAILS(KEEL_DEADLINE_EXCEEDED, keel_wait(KEEL_POINTS(keel_ended(two)), KEEL_ALL, 0));
    TRY(keel_semaphore_fail(semaphore, KEEL_ERROR(KEEL_IO, "cut")));
    reach(keel_ended(two));
    reach(keel_ended(keel_up_to(two)));
    reach_failure(two, KEEL_IO);
    reach_failure(keel_up_to(two), KEEL_IO); // on a semaphore it changes nothing
}

TEST(until, ended_of_a_semaphore)
{
    check_ended(new_semaphore(0));
}

TEST(until, ended_of_a_shared_semaphore, .needs = KEEL_CAP_SHARED_SEMAPHORE)
{
    keel_semaphore_options_t options = {.shared = true};
    keel_semaphore_t *semaphore = NULL;
    TRY(keel_semaphore_create(the_device(), &options, &semaphore));
    OWN(semaphore);
    check_ended(semaphore);
}

TEST(until, ended_among_others)
{
    keel_semaphore_t *good = new_semaphore(0), *bad = failed_semaphore();
    keel_point_t points[] = {keel_point(good, 1), keel_ended(keel_point(bad, 1))};
    size_t index = 99;
    keel_wait_options_t options = {.index = &index};
    FAILS(KEEL_DEADLINE_EXCEEDED, keel_wait_with(keel_points(points, 2), KEEL_ALL, 0, &options));
    TRY(keel_wait_with(keel_points(points, 2), KEEL_ANY, 0, &options));
    CHECK_EQ(index, 1);
    TRY(keel_semaphore_signal(good, 1));
    TRY(keel_wait(keel_points(points, 2), KEEL_ALL, patience()));
    points[0] = keel_point(bad, 2); // one that asks for more than an end is not spared
    FAILS(KEEL_CORRUPT, keel_wait_with(keel_points(points, 2), KEEL_ALL, 0, &options));
    CHECK_EQ(index, 0);
}

typedef struct sleeper_t {
    keel_point_t point;
    gate_t *begun;
} sleeper_t;

static void sleep_until(void *user)
{
    sleeper_t *sleeper = user;
    gate_open(sleeper->begun);
    reach(sleeper->point);
}

// A thread that sleeps, and a completion queue.
TEST(until, ended_wakes)
{
    keel_semaphore_t *semaphore = new_semaphore(0);
    sleeper_t *sleeper = scratch(sizeof *sleeper);
    *sleeper = (sleeper_t){keel_ended(keel_point(semaphore, 1)), new_gate()};
    keel_completion_t *ends = NULL;
    void *user = NULL;
    keel_status_t status = NULL;
    TRY(keel_completion_create(&ends));
    OWN(ends);
    TRY(keel_completion_add(ends, keel_points(&sleeper->point, 1), KEEL_ALL, sleeper));
    FAILS(KEEL_DEADLINE_EXCEEDED, keel_completion_next(ends, 0, &user, &status));
    thread_t *thread = thread_start(sleep_until, sleeper);
    gate_wait(sleeper->begun);
    TRY(keel_semaphore_fail(semaphore, KEEL_ERROR(KEEL_IO, "cut")));
    thread_join(thread);
    TRY(keel_completion_next(ends, patience(), &user, &status));
    CHECK(user == sleeper);
    TRY(status);
}

// What follows work that fails: on its queue, on another, by a semaphore that it would have
// signalled; submitted before the failure and after it.
TEST(until, ended_submissions)
{
    keel_queue_t *queues[] = {the_queue(), new_queue(0)};
    for (int i = 0; i < 4; i++) {
        row("%s, on queue %d", i < 2 ? "before" : "after", i % 2);
        keel_semaphore_t *gate = new_semaphore(0), *out = new_semaphore(0);
        keel_point_t bad, next[3], signalled = keel_point(out, 1);
        TRY(keel_queue_signal(the_queue(), KEEL_AFTER(keel_point(gate, 1)), KEEL_SIGNAL(signalled),
                              &bad));
        if (i >= 2) TRY(keel_semaphore_fail(gate, KEEL_ERROR(KEEL_IO, "cut")));
        next[0] = after_on(queues[i % 2], keel_ended(bad));
        next[1] = after_on(queues[i % 2], keel_ended(signalled));
        next[2] = after_on(queues[i % 2], bad);
        if (i < 2) CHECK(pending(next[0]) && pending(next[1]) && pending(next[2]));
        if (i < 2) TRY(keel_semaphore_fail(gate, KEEL_ERROR(KEEL_IO, "cut")));
        reach(next[0]);
        reach(next[1]);
        reach_failure(next[2], KEEL_IO);
        reach_failure(bad, KEEL_IO);
    }
}

// The same where the device ran into it by itself.
TEST(until, ended_runs_behind_a_kernel_that_fails, RUNS)
{
    keel_queue_t *queues[] = {the_queue(), new_queue(0)};
    for (int i = 0; i < 2; i++) {
        row("queue %d", i);
        keel_buffer_t *x = new_buffer(64);
        keel_point_t done,
            failed = submit(op_kernel("fail", 1, (uint32_t[]){7, 0}, 8, KEEL_BIND(new_buffer(4))));
        TRY(keel_queue_fill(queues[i], KEEL_AFTER(keel_ended(failed)), keel_whole(x), 3, 1, &done));
        reach(done);
        check_filled(x, 0, 64, 3);
        reach_failure(failed, KEEL_ABORTED);
    }
}

TEST(until, up_to_needs_all)
{
    keel_semaphore_t *gate = new_semaphore(0);
    keel_point_t first = submit_after(KEEL_AFTER(keel_point(gate, 1)), keel_op_barrier());
    keel_point_t second = submit(keel_op_barrier());
    keel_point_t behind = after_on(new_queue(0), keel_up_to(second));
    reach(second);
    CHECK(pending(first));
    CHECK(pending(keel_up_to(second)));
    CHECK(pending(keel_ended(keel_up_to(second))));
    CHECK(pending(behind));
    TRY(keel_semaphore_signal(gate, 1));
    reach(behind);
    reach(keel_up_to(second));
    reach(first);
}

// It fails with the earliest of its submissions, whichever was the first to fail, when all have
// ended; and those that came before are spared.
TEST(until, up_to_fails_with_the_earliest)
{
    keel_semaphore_t *gates[3];
    keel_point_t done[4], behind[4];
    keel_queue_t *other = new_queue(0);
    done[0] = submit(keel_op_barrier());
    for (int i = 0; i < 3; i++) {
        gates[i] = new_semaphore(0);
        done[i + 1] = submit_after(KEEL_AFTER(keel_point(gates[i], 1)), keel_op_barrier());
    }
    for (int i = 0; i < 4; i++) behind[i] = after_on(other, keel_up_to(done[i]));
    keel_point_t cleanup = after_on(other, keel_ended(keel_up_to(done[3])));
    TRY(keel_semaphore_fail(gates[2], KEEL_ERROR(KEEL_IO, "the third")));
    reach_failure(done[3], KEEL_IO);
    CHECK(pending(keel_up_to(done[3])));
    TRY(keel_semaphore_fail(gates[1], KEEL_ERROR(KEEL_CORRUPT, "the second")));
    CHECK(pending(behind[3]) && pending(cleanup));
    TRY(keel_semaphore_signal(gates[0], 1));
    for (int i = 0; i < 2; i++) {
        reach(keel_up_to(done[i]));
        reach(behind[i]);
    }
    for (int i = 2; i < 4; i++) {
        reach_failure_saying(keel_up_to(done[i]), KEEL_CORRUPT, "the second");
        reach_failure_saying(behind[i], KEEL_CORRUPT, "the second");
    }
    reach(cleanup);
    // A failure stays one for all that comes.
    keel_point_t late = submit(keel_op_barrier());
    reach(late);
    reach_failure_saying(keel_up_to(late), KEEL_CORRUPT, "the second");
    reach(keel_ended(keel_up_to(late)));
}

TEST(until, newest)
{
    keel_queue_t *queue = new_queue(0);
    keel_point_t none = keel_queue_newest(queue), done;
    CHECK(none.semaphore == keel_queue_timeline(queue));
    CHECK_EQ(none.value, 0);
    reach(none);
    reach(keel_up_to(none));
    reach(after_on(the_queue(), keel_up_to(none)));
    for (uint64_t i = 1; i <= 3; i++) {
        TRY(keel_queue_run(queue, KEEL_NO_WAITS, keel_op_barrier(), &done));
        CHECK_EQ(keel_queue_newest(queue).value, i);
        CHECK_EQ(done.value, i);
        CHECK_EQ(done.until, 0);
    }
    reach(keel_up_to(keel_queue_newest(queue)));
    CHECK_EQ(value_of(keel_queue_timeline(queue)), 3);
}

// All that did not fail has counted; without memory some may fail, which is no matter here.
static void check_counted(uint32_t counted, const keel_point_t *points, uint32_t count)
{
    uint32_t failed = 0;
    for (uint32_t i = 0; i < count && starved(); i++) {
        keel_status_t status = keel_wait(KEEL_POINTS(points[i]), KEEL_ALL, patience());
        failed += status != NULL;
        keel_status_release(status);
    }
    CHECK_LE(counted, count);
    CHECK_GE(counted + failed, count);
}

// What was written by many submissions of one queue, which end in any order, is there for one of
// another that waits for all of them.
TEST(until, up_to_orders_writes, .needs = KEEL_CAP_EXECUTES)
{
    enum { N = 24 };
    keel_queue_t *other = new_queue(0);
    for (uint32_t round = 0; round < 8; round++) {
        row("round %u", round);
        keel_buffer_t *words = new_buffer(4), *copy = new_buffer(4);
        keel_point_t points[N], done;
        for (uint32_t i = 0; i < N; i++) {
            uint32_t us = (i * 7 + round) % 5 * 40;
            points[i] = submit(op_kernel("slow", 1, &us, 4, KEEL_BIND(words)));
        }
        keel_point_t all =
            round % 2 ? all_of(the_queue()) : keel_up_to(keel_queue_newest(the_queue()));
        TRY(keel_queue_copy(other, KEEL_AFTER(all), keel_whole(words), keel_whole(copy), &done));
        reach(done);
        if (!faulted()) check_counted(buffer_u32(copy, 0), points, N);
    }
}

// Where some have failed: the rest is there all the same.
TEST(until, next_batch_runs_behind_failures, .needs = KEEL_CAP_EXECUTES)
{
    keel_buffer_t *word = new_buffer(4), *copy = new_buffer(4);
    keel_semaphore_t *bad = failed_semaphore();
    uint32_t us = 50;
    keel_op_t count = op_kernel("slow", 1, &us, 4, KEEL_BIND(word));
    keel_point_t points[20], done; // of those that are to count
    for (uint32_t batch = 1, n = 0; batch <= 5; batch++) {
        row("batch %u", batch);
        keel_point_t behind = all_of(the_queue());
        for (int i = 0; i < 6; i++) {
            keel_point_t waits[] = {behind, keel_point(bad, 1)};
            bool fails = i % 3 == 1;
            keel_point_t point = submit_all(keel_points(waits, fails ? 2 : 1), &count, 1);
            if (!fails) points[n++] = point;
        }
        TRY(keel_queue_copy(the_queue(), KEEL_AFTER(all_of(the_queue())), keel_whole(word),
                            keel_whole(copy), &done));
        reach(done);
        if (!faulted()) check_counted(buffer_u32(copy, 0), points, n);
    }
}

TEST(until, bad_arguments)
{
    keel_semaphore_t *semaphore = new_semaphore(1);
    keel_point_t odd = {.semaphore = semaphore, .value = 1, .until = 8};
    keel_point_t signal = keel_point(semaphore, 2);
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "points[0].until",
                 keel_wait(KEEL_POINTS(odd), KEEL_ALL, 0));
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "0x8", keel_wait(KEEL_POINTS(odd), KEEL_ANY, 0));
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "waits[1].until",
                 keel_queue_signal(the_queue(), KEEL_AFTER(keel_point(semaphore, 1), odd),
                                   KEEL_NO_SIGNALS, NULL));
    keel_point_t signals[] = {keel_ended(signal), keel_up_to(signal)};
    for (size_t i = 0; i < COUNT(signals); i++)
        FAILS_SAYING(
            KEEL_INVALID_ARGUMENT, "signals[0].until",
            keel_queue_signal(the_queue(), KEEL_NO_WAITS, keel_points(&signals[i], 1), NULL));
    reach_value(semaphore, 1);
    CHECK_EQ(value_of(semaphore), 1);
}

// The end of a device ends its points. Work of another device that waits for that goes on; what the
// device itself has not begun does not begin.
TEST(until, ended_by_closing)
{
    keel_device_t *other = open_device("cpu://?threads=1");
    keel_queue_t *queue = keel_queue_retain(the_queue());
    OWN(queue);
    keel_semaphore_t *never = new_semaphore(0);
    keel_point_t bad = submit_after(KEEL_AFTER(keel_point(never, 1)), keel_op_barrier());
    keel_point_t own = submit_after(KEEL_AFTER(keel_ended(bad)), keel_op_barrier());
    keel_point_t all = submit_after(KEEL_AFTER(keel_ended(keel_up_to(own))), keel_op_barrier());
    keel_point_t there[] = {
        after_on(keel_device_queue(other, 0), keel_ended(bad)),
        after_on(keel_device_queue(other, 0), keel_ended(keel_up_to(all))),
        after_on(keel_device_queue(other, 0), keel_ended(keel_point(never, 1)))};
    CHECK(pending(there[0]) && pending(there[1]) && pending(there[2]));
    drop(the_device());
    for (size_t i = 0; i < COUNT(there); i++) reach(there[i]);
    reach(keel_ended(bad));
    reach(keel_ended(keel_point(never, 1)));
    reach_failure(bad, KEEL_CANCELLED);
    reach_failure(own, KEEL_CANCELLED);
    reach_failure(all, KEEL_CANCELLED);
    TRY(keel_queue_wait_idle(queue, patience()));
}
