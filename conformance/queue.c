// SPDX-License-Identifier: Apache-2.0
// Queues: making them, submitting to them, what is refused.
#include "suite/suite.h"

static keel_status_t make_queue(keel_queue_options_t options)
{
    keel_queue_t *queue = NULL;
    keel_status_t status = keel_queue_create(the_device(), &options, &queue);
    keel_queue_release(queue);
    return status;
}

TEST(queue, create)
{
    keel_queue_t *queue = NULL;
    TRY(keel_queue_create(the_device(), NULL, &queue));
    OWN(queue);
    CHECK(queue != the_queue());
    CHECK(keel_queue_info(queue)->device == the_device());
    CHECK(keel_queue_timeline(queue));
    CHECK(keel_queue_timeline(queue) != keel_queue_timeline(the_queue()));
    CHECK_EQ(value_of(keel_queue_timeline(queue)), 0);
    keel_point_t done;
    TRY(keel_queue_run(queue, KEEL_NO_WAITS, keel_op_barrier(), &done));
    reach(done);
}

TEST(queue, info)
{
    keel_queue_options_t options = {.priority = the_caps()->max_priority, .name = "urgent"};
    keel_queue_t *queue = NULL;
    TRY(keel_queue_create(the_device(), &options, &queue));
    OWN(queue);
    const keel_queue_info_t *info = keel_queue_info(queue);
    CHECK(info->device == the_device());
    CHECK_EQ(info->family, KEEL_QUEUE_COMPUTE);
    CHECK_EQ(info->priority, the_caps()->max_priority);
    CHECK_EQ(info->node, 0);
    CHECK_STR(info->name, "urgent");
    CHECK(keel_queue_info(queue) == info);
    CHECK_STR(keel_queue_info(the_queue())->name, "queue 0");
}

TEST(queue, info_of_a_transfer_queue, .also = NEED_TRANSFER_QUEUES)
{
    keel_queue_options_t options = {.family = KEEL_QUEUE_TRANSFER};
    keel_queue_t *queue = NULL;
    TRY(keel_queue_create(the_device(), &options, &queue));
    OWN(queue);
    CHECK_EQ(keel_queue_info(queue)->family, KEEL_QUEUE_TRANSFER);
    CHECK(keel_queue_info(queue)->name[0]); // its number
}

TEST(queue, create_bad_arguments)
{
    const keel_caps_t *caps = the_caps();
    keel_queue_t *queue = NULL;
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "device", keel_queue_create(NULL, NULL, &queue));
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "queue", keel_queue_create(the_device(), NULL, NULL));
    FAILS_SAYING(KEEL_OUT_OF_RANGE, "priority",
                 make_queue((keel_queue_options_t){.priority = caps->max_priority + 1}));
    FAILS_SAYING(KEEL_OUT_OF_RANGE, "priority",
                 make_queue((keel_queue_options_t){.priority = caps->min_priority - 1}));
    FAILS_SAYING(KEEL_OUT_OF_RANGE, "node",
                 make_queue((keel_queue_options_t){.node = caps->nodes}));
    FAILS_SAYING(KEEL_UNSUPPORTED, "family",
                 make_queue((keel_queue_options_t){.family = (keel_queue_family_t)9}));
    CHECK(queue == NULL);
}

TEST(queue, every_priority)
{
    for (int32_t priority = the_caps()->min_priority; priority <= the_caps()->max_priority;
         priority++) {
        row("priority %d", priority);
        keel_point_t done;
        TRY(keel_queue_run(new_queue(priority), KEEL_NO_WAITS, keel_op_barrier(), &done));
        reach(done);
    }
}

TEST(queue, many_queues)
{
    keel_point_t done[40];
    for (size_t i = 0; i < COUNT(done); i++) {
        TRY(keel_queue_run(new_queue(0), KEEL_NO_WAITS, keel_op_barrier(), &done[i]));
    }
    TRY(keel_wait(keel_points(done, COUNT(done)), KEEL_ALL, patience()));
}

static keel_queue_t *new_transfer_queue(void)
{
    keel_queue_options_t options = {.family = KEEL_QUEUE_TRANSFER, .name = "mover"};
    keel_queue_t *queue = NULL;
    TRY(keel_queue_create(the_device(), &options, &queue));
    OWN(queue);
    return queue;
}

TEST(queue, transfer_family, .needs = KEEL_CAP_EXECUTES, .also = NEED_TRANSFER_QUEUES)
{
    keel_queue_t *queue = new_transfer_queue();
    keel_buffer_t *x = new_buffer(64), *y = new_buffer(64);
    keel_op_t ops[] = {
        keel_op_fill(keel_whole(x), 3, 1),
        keel_op_barrier(),
        keel_op_copy(keel_whole(x), keel_whole(y)),
    };
    keel_point_t done;
    TRY(keel_queue_submit(queue, KEEL_NO_WAITS, ops, 3, KEEL_NO_SIGNALS, &done));
    reach(done);
    check_filled(y, 0, 64, 3);
}

TEST(queue, transfer_family_refuses_kernels, .needs = KEEL_CAP_EXECUTES,
     .also = NEED_TRANSFER_QUEUES)
{
    keel_queue_t *queue = new_transfer_queue();
    keel_recording_t *recording = RECORD(0, keel_op_barrier());
    FAILS_SAYING(KEEL_UNSUPPORTED, "dispatch",
                 keel_queue_run(queue, KEEL_NO_WAITS,
                                keel_op_dispatch(kernel("empty"), keel_groups(1, 1, 1), NULL, 0,
                                                 KEEL_NO_BINDINGS),
                                NULL));
    FAILS_SAYING(KEEL_UNSUPPORTED, "execute",
                 keel_queue_execute(queue, KEEL_NO_WAITS, recording, KEEL_NO_BINDINGS, NULL));
}

TEST(queue, points_count_submissions)
{
    keel_queue_t *queue = new_queue(0);
    for (uint64_t i = 1; i <= 5; i++) {
        keel_point_t done = keel_point(NULL, 0);
        TRY(keel_queue_signal(queue, KEEL_NO_WAITS, KEEL_NO_SIGNALS, &done));
        CHECK(done.semaphore == keel_queue_timeline(queue));
        CHECK_EQ(done.value, i);
        reach(done);
        CHECK_EQ(value_of(done.semaphore), i);
    }
}

TEST(queue, done_may_be_null)
{
    TRY(keel_queue_signal(the_queue(), KEEL_NO_WAITS, KEEL_NO_SIGNALS, NULL));
    TRY(keel_queue_wait_idle(the_queue(), patience()));
    CHECK_EQ(value_of(keel_queue_timeline(the_queue())), 1);
}

// Not FIFO: what comes later and waits for nothing ends first.
TEST(queue, points_end_out_of_order)
{
    keel_semaphore_t *gate = new_semaphore(0), *timeline = keel_queue_timeline(the_queue());
    keel_point_t first = submit_after(KEEL_AFTER(keel_point(gate, 1)), keel_op_barrier());
    keel_point_t second = submit(keel_op_barrier());
    keel_point_t third = submit(keel_op_barrier());
    reach(second);
    reach(third);
    CHECK(pending(first));
    CHECK_EQ(value_of(timeline), 0);
    TRY(keel_semaphore_signal(gate, 1));
    reach(first);
    CHECK_EQ(value_of(timeline), 3);
}

// keel_semaphore_value of a timeline tells up to where all have ended.
TEST(queue, value_grows_with_the_oldest)
{
    keel_semaphore_t *gate = new_semaphore(0), *timeline = keel_queue_timeline(the_queue());
    keel_point_t done[6];
    for (uint64_t i = 0; i < 6; i++) {
        done[i] = submit_after(KEEL_AFTER(keel_point(gate, 6 - i)), keel_op_barrier());
    }
    TRY(keel_semaphore_signal(gate, 4));
    for (int i = 2; i < 6; i++) reach(done[i]);
    CHECK_EQ(value_of(timeline), 0);
    TRY(keel_semaphore_signal(gate, 5));
    reach(done[1]);
    CHECK_EQ(value_of(timeline), 0);
    TRY(keel_semaphore_signal(gate, 6));
    reach(done[0]);
    CHECK_EQ(value_of(timeline), 6);
}

TEST(queue, a_failed_submission_fails_its_point_alone)
{
    keel_semaphore_t *bad = new_semaphore(0), *timeline = keel_queue_timeline(the_queue());
    keel_point_t first = submit(keel_op_barrier());
    keel_point_t second = submit_after(KEEL_AFTER(keel_point(bad, 1)), keel_op_barrier());
    keel_point_t third = submit(keel_op_barrier());
    TRY(keel_semaphore_fail(bad, KEEL_ERROR(KEEL_IO, "the second only")));
    reach(first);
    reach_failure_saying(second, KEEL_IO, "the second only");
    reach(third);
    keel_point_t fourth = submit(keel_op_barrier());
    reach(fourth);
    reach_failure(second, KEEL_IO);
    uint64_t value = 0;
    keel_status_release(keel_semaphore_value(timeline, &value));
    CHECK_EQ(value, 4);
}

TEST(queue, waits_and_signals_are_copied)
{
    keel_semaphore_t *gate = new_semaphore(0), *out = new_semaphore(0);
    keel_point_t wait = keel_point(gate, 1), signal = keel_point(out, 1), done;
    TRY(keel_queue_signal(the_queue(), keel_points(&wait, 1), keel_points(&signal, 1), &done));
    wait = signal = keel_point(NULL, 0);
    TRY(keel_semaphore_signal(gate, 1));
    reach_value(out, 1);
    reach(done);
}

TEST(queue, many_waits_and_signals)
{
    enum { N = 200 };
    keel_semaphore_t *gate = new_semaphore(0);
    keel_point_t waits[N], signals[N], done;
    for (uint64_t i = 0; i < N; i++) {
        waits[i] = keel_point(gate, i + 1);
        signals[i] = keel_point(new_semaphore(0), i + 1);
    }
    TRY(keel_queue_signal(the_queue(), keel_points(waits, N), keel_points(signals, N), &done));
    TRY(keel_semaphore_signal(gate, N - 1));
    CHECK(pending(done));
    TRY(keel_semaphore_signal(gate, N));
    TRY(keel_wait(keel_points(signals, N), KEEL_ALL, patience()));
    reach(done);
}

TEST(queue, duplicate_waits)
{
    keel_semaphore_t *gate = new_semaphore(0);
    keel_point_t point = keel_point(gate, 1);
    keel_point_t done = submit_after(KEEL_AFTER(point, point, point), keel_op_barrier());
    TRY(keel_semaphore_signal(gate, 1));
    reach(done);
}

TEST(queue, wait_for_itself_is_wait_for_the_past)
{
    keel_point_t first = submit(keel_op_barrier());
    reach(submit_after(KEEL_AFTER(first), keel_op_barrier()));
}

TEST(queue, submit_bad_arguments)
{
    keel_queue_t *q = the_queue();
    keel_op_t barrier = keel_op_barrier(), unknown = {.kind = (keel_op_kind_t)99};
    keel_point_t nowhere = keel_point(NULL, 1);
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "queue",
                 keel_queue_submit(NULL, KEEL_NO_WAITS, &barrier, 1, KEEL_NO_SIGNALS, NULL));
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "ops",
                 keel_queue_submit(q, KEEL_NO_WAITS, NULL, 1, KEEL_NO_SIGNALS, NULL));
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "waits",
                 keel_queue_signal(q, keel_points(NULL, 2), KEEL_NO_SIGNALS, NULL));
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "signals",
                 keel_queue_signal(q, KEEL_NO_WAITS, keel_points(NULL, 2), NULL));
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "waits[0]",
                 keel_queue_signal(q, keel_points(&nowhere, 1), KEEL_NO_SIGNALS, NULL));
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "signals[0]",
                 keel_queue_signal(q, KEEL_NO_WAITS, keel_points(&nowhere, 1), NULL));
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "kind", keel_queue_run(q, KEEL_NO_WAITS, unknown, NULL));
}

TEST(queue, submit_refuses_what_belongs_in_recordings)
{
    keel_buffer_t *word = new_buffer(4);
    keel_op_t ops[] = {
        keel_op_event_set(0),
        keel_op_event_wait(0),
        keel_op_if(keel_whole(word)),
        keel_op_else(),
        keel_op_while(keel_whole(word)),
        keel_op_switch(keel_whole(word)),
        keel_op_case(1),
        keel_op_end(),
    };
    for (size_t i = 0; i < COUNT(ops); i++) {
        row("operation kind %d", ops[i].kind);
        FAILS(KEEL_INVALID_ARGUMENT, keel_queue_run(the_queue(), KEEL_NO_WAITS, ops[i], NULL));
    }
}

TEST(queue, submit_refuses_slots)
{
    FAILS(KEEL_INVALID_ARGUMENT,
          keel_queue_fill(the_queue(), KEEL_NO_WAITS, keel_slot(0, 0, 16), 0, 1, NULL));
}

// An error names the operation, and nothing was submitted.
TEST(queue, refused_submission_leaves_no_trace, .needs = KEEL_CAP_EXECUTES)
{
    keel_buffer_t *x = new_buffer(16);
    keel_semaphore_t *out = new_semaphore(0);
    keel_op_t ops[] = {keel_op_fill(keel_whole(x), 1, 1), keel_op_barrier(),
                       keel_op_fill(keel_span(x, 8, 16), 1, 1)};
    keel_point_t done;
    uint64_t before = value_of(keel_queue_timeline(the_queue())); // x may have taken some
    FAILS_SAYING(KEEL_OUT_OF_RANGE, "[2]",
                 keel_queue_submit(the_queue(), KEEL_NO_WAITS, ops, 3,
                                   KEEL_SIGNAL(keel_point(out, 1)), &done));
    reach(submit(keel_op_barrier()));
    CHECK_EQ(value_of(keel_queue_timeline(the_queue())), before + 1);
    CHECK_EQ(value_of(out), 0);
    check_filled(x, 0, 16, 0);
}

TEST(queue, wait_idle)
{
    keel_queue_t *other = new_queue(0);
    keel_semaphore_t *gate = new_semaphore(0);
    TRY(keel_queue_wait_idle(the_queue(), 0));
    submit_after(KEEL_AFTER(keel_point(gate, 1)), keel_op_barrier());
    FAILS(KEEL_DEADLINE_EXCEEDED, keel_queue_wait_idle(the_queue(), 1000000));
    TRY(keel_queue_wait_idle(other, 0));
    TRY(keel_semaphore_signal(gate, 1));
    TRY(keel_queue_wait_idle(the_queue(), patience()));
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "queue", keel_queue_wait_idle(NULL, 0));
}

TEST(queue, wait_idle_does_not_report_failures)
{
    keel_semaphore_t *gate = new_semaphore(0);
    submit_after(KEEL_AFTER(keel_point(gate, 1)), keel_op_barrier());
    TRY(keel_semaphore_fail(gate, KEEL_ERROR(KEEL_IO, "on purpose")));
    TRY(keel_queue_wait_idle(the_queue(), patience()));
}

static void submit_and_wait(keel_semaphore_t *gate, keel_buffer_t *x, uint64_t value)
{
    keel_point_t done =
        submit_after(KEEL_AFTER(keel_point(gate, value)), keel_op_fill(keel_whole(x), 1, 1));
    keel_point_t after = submit_after(KEEL_AFTER(done), keel_op_barrier());
    TRY(keel_semaphore_signal(gate, value));
    reach(after);
    TRY(keel_queue_wait_idle(the_queue(), patience()));
}

// Once it is warm: neither submitting nor signalling nor waiting asks for memory.
TEST(queue, submitting_allocates_nothing)
{
    keel_semaphore_t *gate = new_semaphore(0);
    keel_buffer_t *x = new_buffer(16);
    uint64_t value = 1;
    for (; value <= 300; value++) submit_and_wait(gate, x, value);
    uint64_t before = allocations();
    for (; value <= 600; value++) submit_and_wait(gate, x, value);
    if (!starved()) CHECK_EQ(allocations() - before, 0); // else an error was made, too
}

// However much is in flight, submitting does not wait for it.
TEST(queue, submit_never_blocks, .heavy = true)
{
    keel_semaphore_t *gate = new_semaphore(0);
    keel_buffer_t *x = new_buffer(few(20000));
    keel_point_t last;
    for (size_t i = 0; i < few(20000); i++)
        last =
            submit_after(KEEL_AFTER(keel_point(gate, 1)), keel_op_fill(keel_span(x, i, 1), 1, 1));
    CHECK(pending(last));
    TRY(keel_semaphore_signal(gate, 1));
    TRY(keel_queue_wait_idle(the_queue(), patience()));
    CHECK(ended(last));
}

TEST(queue, submit_does_not_wait_for_running_work, .needs = KEEL_CAP_HOST_CALLS,
     .also = NEED_WORKERS)
{
    hold_t *hold = new_hold();
    keel_point_t held = submit(op_hold(hold));
    hold_entered(hold, held);
    keel_point_t after = submit_after(KEEL_AFTER(held), keel_op_barrier());
    CHECK(pending(after));
    gate_open(hold->gate);
    reach(after);
}

TEST(queue, released_with_work_in_flight, .needs = KEEL_CAP_EXECUTES)
{
    keel_semaphore_t *gate = new_semaphore(0), *out = new_semaphore(0);
    keel_buffer_t *x = new_buffer(16);
    keel_queue_t *queue = new_queue(0);
    keel_op_t op = keel_op_fill(keel_whole(x), 9, 1);
    TRY(keel_queue_submit(queue, KEEL_AFTER(keel_point(gate, 1)), &op, 1,
                          KEEL_SIGNAL(keel_point(out, 1)), NULL));
    drop(queue);
    TRY(keel_semaphore_signal(gate, 1));
    reach_value(out, 1);
    check_filled(x, 0, 16, 9);
}

TEST(queue, timeline_outlives_the_queue)
{
    keel_queue_t *queue = new_queue(0);
    keel_semaphore_t *gate = new_semaphore(0);
    keel_semaphore_t *timeline = keel_semaphore_retain(keel_queue_timeline(queue));
    OWN(timeline);
    keel_point_t done;
    TRY(keel_queue_signal(queue, KEEL_AFTER(keel_point(gate, 1)), KEEL_NO_SIGNALS, &done));
    drop(queue);
    TRY(keel_semaphore_signal(gate, 1));
    reach(done);
}

TEST(queue, retain_and_release)
{
    keel_queue_t *queue = new_queue(0);
    CHECK(keel_queue_retain(queue) == queue);
    keel_queue_release(queue);
    keel_queue_release(NULL);
    keel_point_t done;
    TRY(keel_queue_signal(queue, KEEL_NO_WAITS, KEEL_NO_SIGNALS, &done));
    reach(done);
}
