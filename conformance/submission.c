// SPDX-License-Identifier: Apache-2.0
// Waits and signals between the host and queues: all directions, either order.
#include "suite/suite.h"

TEST(submission, of_nothing)
{
    keel_point_t done;
    TRY(keel_queue_submit(the_queue(), KEEL_NO_WAITS, NULL, 0, KEEL_NO_SIGNALS, &done));
    reach(done);
}

TEST(submission, signals)
{
    keel_semaphore_t *a = new_semaphore(0), *b = new_semaphore(3);
    keel_point_t done;
    TRY(keel_queue_signal(the_queue(), KEEL_NO_WAITS,
                          KEEL_SIGNAL(keel_point(a, 1), keel_point(b, 7)), &done));
    reach_value(a, 1);
    reach_value(b, 7);
    reach(done);
    CHECK_EQ(value_of(a), 1);
    CHECK_EQ(value_of(b), 7);
}

TEST(submission, point_comes_after_its_signals, .needs = KEEL_CAP_EXECUTES)
{
    enum { TURNS = 200 };
    keel_semaphore_t *a = new_semaphore(0), *b = new_semaphore(0);
    keel_buffer_t *buffer = new_buffer(64);
    for (uint32_t i = 1; i <= TURNS; i++) {
        keel_op_t op = keel_op_fill(keel_whole(buffer), i, 4);
        keel_point_t done;
        TRY(keel_queue_submit(the_queue(), KEEL_NO_WAITS, &op, 1,
                              KEEL_SIGNAL(keel_point(a, i), keel_point(b, i)), &done));
        keel_wait_options_t spin = {.spin_ns = i % 2 ? 1000000 : 0};
        TRY(keel_wait_with(KEEL_POINTS(done), KEEL_ALL, KEEL_FOREVER, &spin));
        CHECK_EQ(value_of(a), i);
        CHECK_EQ(value_of(b), i);
    }
}

// Polls what comes next on some queues for a while, as the waits of another thread would.
static void look_on(void *user)
{
    keel_queue_t **queues = user;
    for (uint32_t i = 0; i < 3000; i++) {
        uint64_t value = 0;
        keel_semaphore_t *timeline = keel_queue_timeline(queues[i % 3]);
        keel_status_release(keel_semaphore_value(timeline, &value));
        keel_point_t next = keel_point(timeline, value + 1);
        keel_status_release(keel_wait(KEEL_POINTS(next), KEEL_ALL, 0)); // there may be none yet
    }
}

TEST(submission, whoever_is_reached_has_its_waits_reached, .needs = KEEL_CAP_EXECUTES)
{
    enum { TURNS = 150, LINKS = 12 };
    keel_queue_t **queues = scratch(3 * sizeof *queues);
    for (int i = 0; i < 3; i++) queues[i] = i ? new_queue(0) : the_queue();
    thread_t *thread = thread_start(look_on, queues);
    keel_semaphore_t *signalled = new_semaphore(0);
    keel_buffer_t *buffer = new_buffer(64);
    uint64_t value = 0;
    for (uint32_t turn = 0; turn < TURNS; turn++) {
        keel_point_t done[LINKS];
        for (uint32_t i = 0; i < LINKS; i++) {
            keel_op_t op = i % 3 ? keel_op_fill(keel_whole(buffer), i, 4) : keel_op_barrier();
            keel_points_t waits = i ? KEEL_AFTER(done[i - 1]) : KEEL_NO_WAITS;
            TRY(keel_queue_submit(queues[(turn + i / 2) % 3], waits, &op, 1,
                                  KEEL_SIGNAL(keel_point(signalled, ++value)), &done[i]));
        }
        keel_wait_options_t spin = {.spin_ns = turn % 2 ? 1000000 : 0};
        keel_point_t last = keel_point(signalled, value);
        TRY(keel_wait_with(KEEL_POINTS(turn % 3 ? last : done[LINKS - 1]), KEEL_ALL, KEEL_FOREVER,
                           &spin));
        // Of the last one its signal may be there and its point not yet.
        TRY(keel_wait(keel_points(done, LINKS - 1), KEEL_ALL, 0));
        CHECK_EQ(value_of(signalled), value);
        reach(done[LINKS - 1]);
    }
    thread_join(thread);
}

// The eight orders: who waits, who signals, who comes first.

static void signal_soon(void *user)
{
    test_asleep();
    TRY(keel_semaphore_signal(user, 1));
}

static void submit_soon(void *user)
{
    test_asleep();
    TRY(keel_queue_signal(the_queue(), KEEL_NO_WAITS, KEEL_SIGNAL(keel_point(user, 1)), NULL));
}

TEST(submission, host_signal_then_host_wait)
{
    keel_semaphore_t *s = new_semaphore(0);
    TRY(keel_semaphore_signal(s, 1));
    reach_value(s, 1);
}

TEST(submission, host_wait_then_host_signal)
{
    keel_semaphore_t *s = new_semaphore(0);
    thread_t *thread = thread_start(signal_soon, s);
    reach_value(s, 1);
    thread_join(thread);
}

TEST(submission, queue_signal_then_host_wait)
{
    keel_semaphore_t *s = new_semaphore(0);
    TRY(keel_queue_signal(the_queue(), KEEL_NO_WAITS, KEEL_SIGNAL(keel_point(s, 1)), NULL));
    TRY(keel_device_wait_idle(the_device(), patience()));
    CHECK_EQ(value_of(s), 1);
    TRY(keel_wait(KEEL_POINTS(keel_point(s, 1)), KEEL_ALL, 0));
}

TEST(submission, host_wait_then_queue_signal)
{
    keel_semaphore_t *s = new_semaphore(0);
    the_queue();
    thread_t *thread = thread_start(submit_soon, s);
    reach_value(s, 1);
    thread_join(thread);
}

TEST(submission, host_signal_then_queue_wait)
{
    keel_semaphore_t *s = new_semaphore(0);
    TRY(keel_semaphore_signal(s, 1));
    reach(submit_after(KEEL_AFTER(keel_point(s, 1)), keel_op_barrier()));
}

TEST(submission, queue_wait_then_host_signal)
{
    keel_semaphore_t *s = new_semaphore(0);
    keel_point_t done = submit_after(KEEL_AFTER(keel_point(s, 1)), keel_op_barrier());
    CHECK(pending(done));
    TRY(keel_semaphore_signal(s, 1));
    reach(done);
}

TEST(submission, queue_signal_then_queue_wait)
{
    keel_semaphore_t *s = new_semaphore(0);
    keel_queue_t *other = new_queue(0);
    keel_point_t done;
    TRY(keel_queue_signal(other, KEEL_NO_WAITS, KEEL_SIGNAL(keel_point(s, 1)), NULL));
    TRY(keel_queue_wait_idle(other, patience()));
    TRY(keel_queue_signal(the_queue(), KEEL_AFTER(keel_point(s, 1)), KEEL_NO_SIGNALS, &done));
    reach(done);
}

TEST(submission, queue_wait_then_queue_signal)
{
    keel_semaphore_t *s = new_semaphore(0);
    keel_queue_t *other = new_queue(0);
    keel_point_t done;
    TRY(keel_queue_signal(the_queue(), KEEL_AFTER(keel_point(s, 1)), KEEL_NO_SIGNALS, &done));
    CHECK(pending(done));
    TRY(keel_queue_signal(other, KEEL_NO_WAITS, KEEL_SIGNAL(keel_point(s, 1)), NULL));
    reach(done);
}

// Nothing of a submission happens before its waits are satisfied.
TEST(submission, does_not_start_early, .needs = KEEL_CAP_EXECUTES)
{
    keel_semaphore_t *a = new_semaphore(0), *b = new_semaphore(0), *out = new_semaphore(0);
    keel_buffer_t *x = new_buffer(64);
    keel_op_t op = keel_op_fill(keel_whole(x), 1, 1);
    TRY(keel_queue_submit(the_queue(), KEEL_AFTER(keel_point(a, 1), keel_point(b, 1)), &op, 1,
                          KEEL_SIGNAL(keel_point(out, 1)), NULL));
    TRY(keel_semaphore_signal(a, 1));
    keel_op_t beside = keel_op_fill(keel_whole(new_buffer(64)), 1, 1);
    reach(submit_after(KEEL_AFTER(keel_point(a, 1)), beside)); // by when the other might have begun
    check_filled(x, 0, 64, 0);
    CHECK_EQ(value_of(out), 0);
    TRY(keel_semaphore_signal(b, 1));
    reach_value(out, 1);
    check_filled(x, 0, 64, 1);
}

// A signal releases the writes of its operations to the host.
TEST(submission, signal_releases_writes, .needs = KEEL_CAP_EXECUTES)
{
    keel_buffer_t *x = new_buffer(1 << 16);
    for (uint8_t i = 1; i < 50; i++) {
        row("round %u", i);
        reach(submit(keel_op_fill(keel_whole(x), i, 1)));
        check_filled(x, 0, 1 << 16, i);
    }
}

// Work of one queue seen by that of another, through a point.
TEST(submission, across_queues, .needs = KEEL_CAP_EXECUTES)
{
    keel_queue_t *other = new_queue(0);
    keel_buffer_t *x = new_buffer(4096), *y = new_buffer(4096);
    keel_point_t done = keel_point(keel_queue_timeline(other), 0), copied;
    for (uint8_t i = 1; i < 40; i++) {
        row("round %u", i);
        keel_point_t filled;
        TRY(keel_queue_fill(the_queue(), KEEL_AFTER(done), keel_whole(x), i, 1, &filled));
        TRY(keel_queue_copy(other, KEEL_AFTER(filled), keel_whole(x), keel_whole(y), &copied));
        done = copied;
    }
    reach(done);
    check_filled(y, 0, 4096, 39);
}

TEST(submission, fan_out_before_the_signal)
{
    keel_semaphore_t *s = new_semaphore(0);
    keel_point_t done[6];
    for (uint64_t i = 0; i < 6; i++) {
        TRY(keel_queue_signal(new_queue(0), KEEL_AFTER(keel_point(s, i + 1)), KEEL_NO_SIGNALS,
                              &done[i]));
    }
    for (uint64_t i = 0; i < 6; i++) {
        CHECK(pending(done[i]));
        TRY(keel_semaphore_signal(s, i + 1));
        reach(done[i]);
    }
}

TEST(submission, fan_in)
{
    keel_point_t parts[8];
    for (size_t i = 0; i < COUNT(parts); i++) {
        TRY(keel_queue_signal(new_queue(0), KEEL_NO_WAITS, KEEL_NO_SIGNALS, &parts[i]));
    }
    keel_point_t done;
    TRY(keel_queue_signal(the_queue(), keel_points(parts, COUNT(parts)), KEEL_NO_SIGNALS, &done));
    reach(done);
    for (size_t i = 0; i < COUNT(parts); i++) CHECK(ended(parts[i]));
}

// One batch signals; a second waits for it and signals a third; the host sees all in order.
TEST(submission, intermediate_semaphore, .needs = KEEL_CAP_EXECUTES)
{
    keel_semaphore_t *s = new_semaphore(0);
    keel_buffer_t *x = new_buffer(16);
    keel_entry_t scale = kernel("scale");
    for (uint32_t i = 3; i >= 1; i--) {
        uint32_t constants[] = {10, i};
        keel_op_t op = keel_op_dispatch(scale, keel_groups(1, 1, 1), constants, 8, KEEL_BIND(x));
        TRY(keel_queue_submit(the_queue(), KEEL_AFTER(keel_point(s, i)), &op, 1,
                              KEEL_SIGNAL(keel_point(s, i + 1)), NULL));
    }
    TRY(keel_semaphore_signal(s, 1));
    reach_value(s, 4);
    CHECK_EQ(buffer_u32(x, 0), 123);
}

TEST(submission, two_wait_for_one_of_two)
{
    keel_semaphore_t *a = new_semaphore(0), *b = new_semaphore(0), *gate = new_semaphore(0);
    keel_point_t never, first, second;
    TRY(keel_queue_signal(the_queue(), KEEL_NO_WAITS, KEEL_SIGNAL(keel_point(a, 1)), NULL));
    TRY(keel_queue_signal(the_queue(), KEEL_AFTER(keel_point(gate, 1)),
                          KEEL_SIGNAL(keel_point(b, 1)), &never));
    first = submit_after(KEEL_AFTER(keel_point(a, 1)), keel_op_barrier());
    second = submit_after(KEEL_AFTER(keel_point(a, 1)), keel_op_barrier());
    reach(first);
    reach(second);
    CHECK(pending(never));
    CHECK_EQ(value_of(b), 0);
    TRY(keel_semaphore_signal(gate, 1));
    reach(never);
}

TEST(submission, two_wait_for_different_values)
{
    keel_semaphore_t *s = new_semaphore(0);
    keel_point_t late = submit_after(KEEL_AFTER(keel_point(s, 2)), keel_op_barrier());
    keel_point_t early = submit_after(KEEL_AFTER(keel_point(s, 1)), keel_op_barrier());
    TRY(keel_semaphore_signal(s, 1));
    reach(early);
    CHECK(pending(late));
    TRY(keel_semaphore_signal(s, 2));
    reach(late);
}

TEST(submission, waits_for_queue_and_host)
{
    keel_semaphore_t *host = new_semaphore(0);
    keel_point_t first = submit(keel_op_barrier());
    keel_point_t done = submit_after(KEEL_AFTER(first, keel_point(host, 1)), keel_op_barrier());
    reach(first);
    CHECK(pending(done));
    TRY(keel_semaphore_signal(host, 1));
    reach(done);
}

TEST(submission, signals_queue_and_host)
{
    keel_semaphore_t *s = new_semaphore(0), *gate = new_semaphore(0);
    keel_point_t done = submit_after(KEEL_AFTER(keel_point(s, 1)), keel_op_barrier());
    TRY(keel_queue_signal(the_queue(), KEEL_AFTER(keel_point(gate, 1)),
                          KEEL_SIGNAL(keel_point(s, 1)), NULL));
    TRY(keel_semaphore_signal(gate, 1));
    reach_value(s, 1);
    reach(done);
}

TEST(submission, waits_for_a_smaller_value)
{
    keel_semaphore_t *after = new_semaphore(5), *before = new_semaphore(0);
    reach(submit_after(KEEL_AFTER(keel_point(after, 2)), keel_op_barrier()));
    keel_point_t done = submit_after(KEEL_AFTER(keel_point(before, 2)), keel_op_barrier());
    TRY(keel_semaphore_signal(before, 5));
    reach(done);
}

TEST(submission, wait_any_device_or_host)
{
    keel_semaphore_t *host = new_semaphore(0), *gate = new_semaphore(0);
    keel_point_t done = submit_after(KEEL_AFTER(keel_point(gate, 1)), keel_op_barrier());
    keel_point_t points[] = {keel_point(host, 1), done};
    FAILS(KEEL_DEADLINE_EXCEEDED, keel_wait(keel_points(points, 2), KEEL_ANY, 0));
    TRY(keel_semaphore_signal(host, 1));
    TRY(keel_wait(keel_points(points, 2), KEEL_ANY, 0));
    FAILS(KEEL_DEADLINE_EXCEEDED, keel_wait(keel_points(points, 2), KEEL_ALL, 0));
    TRY(keel_semaphore_signal(gate, 1));
    TRY(keel_wait(keel_points(points, 2), KEEL_ALL, patience()));
}

// A long chain over many queues, submitted backwards.
TEST(submission, long_chain_backwards, .needs = KEEL_CAP_EXECUTES)
{
    enum { N = 300, QUEUES = 4 };
    keel_queue_t *queues[QUEUES];
    for (int i = 0; i < QUEUES; i++) queues[i] = new_queue(0);
    keel_semaphore_t *s = new_semaphore(0);
    keel_buffer_t *x = new_buffer(16);
    keel_entry_t scale = kernel("scale");
    uint32_t expected = 0;
    for (uint32_t i = N; i >= 1; i--) {
        uint32_t constants[] = {3, i};
        keel_op_t op = keel_op_dispatch(scale, keel_groups(1, 1, 1), constants, 8, KEEL_BIND(x));
        TRY(keel_queue_submit(queues[i % QUEUES], KEEL_AFTER(keel_point(s, i)), &op, 1,
                              KEEL_SIGNAL(keel_point(s, i + 1)), NULL));
    }
    for (uint32_t i = 1; i <= N; i++) expected = expected * 3 + i;
    TRY(keel_semaphore_signal(s, 1));
    reach_value(s, N + 1);
    CHECK_EQ(buffer_u32(x, 0), expected);
}

// A barrier in a submission orders what is before and after it.
TEST(submission, barrier_orders, .needs = KEEL_CAP_EXECUTES)
{
    keel_buffer_t *x = new_buffer(16), *y = new_buffer(16);
    for (uint8_t i = 1; i < 100; i++) {
        row("round %u", i);
        reach(SUBMIT(KEEL_NO_WAITS, keel_op_fill(keel_whole(x), i, 1), keel_op_barrier(),
                     keel_op_copy(keel_whole(x), keel_whole(y)), keel_op_barrier(),
                     keel_op_fill(keel_whole(x), 0, 1)));
        check_filled(y, 0, 16, i);
        check_filled(x, 0, 16, 0);
    }
}

TEST(submission, many_operations, .needs = KEEL_CAP_EXECUTES)
{
    enum { N = 2000 };
    keel_buffer_t *x = new_buffer(N);
    keel_op_t *ops = scratch(N * sizeof *ops);
    uint8_t *expected = scratch(N);
    for (uint32_t i = 0; i < N; i++) {
        expected[i] = (uint8_t)(i * 7);
        ops[i] = keel_op_fill(keel_span(x, i, 1), expected[i], 1);
    }
    reach(submit_all(KEEL_NO_WAITS, ops, N));
    check_bytes(x, 0, expected, N);
}
