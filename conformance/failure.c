// SPDX-License-Identifier: Apache-2.0
// Failures: what they say, how far they reach, what they leave alone.
#include "suite/suite.h"

#define RUNS .needs = KEEL_CAP_EXECUTES | KEEL_CAP_KERNEL_STATUS

static keel_op_t failing(uint32_t number)
{
    return op_kernel("fail", 1, (uint32_t[]){number, 0}, 8, KEEL_BIND(new_buffer(4)));
}

// A semaphore on which value 1 has failed.
static keel_semaphore_t *failed_semaphore(const char *why)
{
    keel_semaphore_t *semaphore = new_semaphore(0);
    TRY(keel_semaphore_fail(semaphore, KEEL_ERROR(KEEL_CORRUPT, "%s", why)));
    return semaphore;
}

TEST(failure, of_a_kernel, RUNS)
{
    keel_point_t point = submit(failing(1234));
    reach_failure_saying(point, KEEL_ABORTED, "1234");
    reach_failure_saying(point, KEEL_ABORTED, "'fail'");
}

TEST(failure, of_one_group_among_many, RUNS)
{
    keel_buffer_t *word = new_buffer(4);
    static const uint32_t groups[] = {0, 1, 499, 999};
    for (size_t i = 0; i < COUNT(groups); i++) {
        row("group %u", groups[i]);
        uint32_t constants[] = {7, groups[i]};
        reach_failure(submit(op_kernel("fail", 1000, constants, 8, KEEL_BIND(word))), KEEL_ABORTED);
    }
    uint32_t beyond[] = {7, 1000}, zero[] = {0, 500};
    reach(submit(op_kernel("fail", 1000, beyond, 8, KEEL_BIND(word))));
    reach(submit(op_kernel("fail", 1000, zero, 8, KEEL_BIND(word))));
}

// The path: queue, submission, command.
TEST(failure, path_of_a_submission, RUNS)
{
    keel_queue_options_t options = {.name = "engine"};
    keel_queue_t *queue = NULL;
    TRY(keel_queue_create(the_device(), &options, &queue));
    OWN(queue);
    keel_op_t ops[] = {keel_op_barrier(),
                       keel_op_group_begin("layer 3"),
                       keel_op_group_begin("attention"),
                       failing(1),
                       keel_op_group_end(),
                       keel_op_group_end()};
    keel_point_t done;
    TRY(keel_queue_submit(queue, KEEL_NO_WAITS, ops, COUNT(ops), KEEL_NO_SIGNALS, &done));
    keel_status_t status = keel_wait(KEEL_POINTS(done), KEEL_ALL, patience());
    OWN(status);
    CHECK_EQ(keel_status_code(status), KEEL_ABORTED);
    if (starved()) return;
    CHECK_HAS(keel_status_path(status), "engine");
    CHECK_HAS(keel_status_path(status), "layer 3");
    CHECK_HAS(keel_status_path(status), "attention");
    CHECK_HAS(keel_status_path(status), "fail");
}

TEST(failure, path_of_a_recording, RUNS)
{
    keel_recording_options_t options = {.name = "decoder"};
    keel_recording_t *recording = NULL;
    TRY(keel_recording_create(the_device(), &options, &recording));
    OWN(recording);
    keel_op_t ops[] = {keel_op_group_begin("closed"), keel_op_group_end(),
                       keel_op_group_begin("mlp"), failing(1), keel_op_group_end()};
    TRY(keel_recording_add(recording, ops, COUNT(ops)));
    TRY(keel_recording_end(recording));
    keel_point_t done = submit(keel_op_execute(recording, KEEL_NO_BINDINGS));
    keel_status_t status = keel_wait(KEEL_POINTS(done), KEEL_ALL, patience());
    OWN(status);
    CHECK_EQ(keel_status_code(status), KEEL_ABORTED);
    if (starved()) return;
    CHECK_HAS(keel_status_path(status), "decoder");
    CHECK_HAS(keel_status_path(status), "mlp");
    CHECK(strstr(keel_status_path(status), "closed") == NULL);
}

TEST(failure, reaches_all_signals, RUNS)
{
    keel_semaphore_t *a = new_semaphore(0), *b = new_semaphore(5);
    keel_op_t op = failing(3);
    keel_point_t done;
    TRY(keel_queue_submit(the_queue(), KEEL_NO_WAITS, &op, 1,
                          KEEL_SIGNAL(keel_point(a, 1), keel_point(b, 9)), &done));
    reach_failure(done, KEEL_ABORTED);
    reach_failure(keel_point(a, 1), KEEL_ABORTED);
    reach_failure(keel_point(b, 9), KEEL_ABORTED);
    reach_value(b, 5);
    uint64_t value = 0;
    FAILS_SAYING(KEEL_ABORTED, "3", keel_semaphore_value(b, &value));
    CHECK_EQ(value, 5);
}

// Down a chain over queues and semaphores the first cause is kept, path and all.
TEST(failure, chain_keeps_the_cause, RUNS)
{
    keel_queue_t *queues[4];
    for (int i = 0; i < 4; i++) queues[i] = new_queue(0);
    keel_op_t op = failing(4321);
    keel_semaphore_t *first = new_semaphore(0);
    TRY(keel_queue_submit(the_queue(), KEEL_NO_WAITS, &op, 1, KEEL_SIGNAL(keel_point(first, 1)),
                          NULL));
    keel_point_t last = keel_point(first, 1);
    for (int i = 0; i < 12; i++) {
        keel_semaphore_t *next = new_semaphore(0);
        keel_point_t done;
        TRY(keel_queue_signal(queues[i % 4], KEEL_AFTER(last), KEEL_SIGNAL(keel_point(next, 1)),
                              &done));
        last = i % 2 ? done : keel_point(next, 1);
    }
    reach_failure_saying(last, KEEL_ABORTED, "4321");
    keel_status_t status = keel_wait(KEEL_POINTS(last), KEEL_ALL, 0);
    OWN(status);
    bool found = starved();
    for (keel_status_t s = status; s && !found; s = keel_status_cause(s)) {
        found = strstr(keel_status_path(s), "dispatch") != NULL;
    }
    CHECK(found);
}

TEST(failure, from_the_host)
{
    keel_semaphore_t *gate = new_semaphore(0), *out = new_semaphore(0);
    keel_point_t done;
    TRY(keel_queue_signal(the_queue(), KEEL_AFTER(keel_point(gate, 1)),
                          KEEL_SIGNAL(keel_point(out, 1)), &done));
    TRY(keel_semaphore_fail(gate, KEEL_ERROR(KEEL_IO, "the cable is cut")));
    reach_failure_saying(done, KEEL_IO, "the cable is cut");
    reach_failure_saying(keel_point(out, 1), KEEL_IO, "the cable is cut");
}

TEST(failure, submitted_after_the_failure)
{
    keel_semaphore_t *bad = failed_semaphore("long ago");
    reach_failure_saying(submit_after(KEEL_AFTER(keel_point(bad, 1)), keel_op_barrier()),
                         KEEL_CORRUPT, "long ago");
}

// One of its waits fails: the submission fails at once, however long the others take.
TEST(failure, does_not_wait_for_the_rest)
{
    keel_semaphore_t *never = new_semaphore(0), *bad = new_semaphore(0);
    keel_point_t done =
        submit_after(KEEL_AFTER(keel_point(never, 1), keel_point(bad, 1)), keel_op_barrier());
    TRY(keel_semaphore_fail(bad, KEEL_ERROR(KEEL_CORRUPT, "at once")));
    reach_failure_saying(done, KEEL_CORRUPT, "at once");
    reach_failure(
        submit_after(KEEL_AFTER(keel_point(never, 1), keel_point(bad, 1)), keel_op_barrier()),
        KEEL_CORRUPT);
    TRY(keel_semaphore_signal(never, 1)); // later, and no longer of interest
}

TEST(failure, two_causes_the_first_stays)
{
    keel_semaphore_t *a = new_semaphore(0), *b = new_semaphore(0);
    keel_point_t done =
        submit_after(KEEL_AFTER(keel_point(a, 1), keel_point(b, 1)), keel_op_barrier());
    TRY(keel_semaphore_fail(b, KEEL_ERROR(KEEL_IO, "b was first")));
    reach_failure_saying(done, KEEL_IO, "b was first");
    TRY(keel_semaphore_fail(a, KEEL_ERROR(KEEL_CORRUPT, "a was second")));
    reach_failure_saying(done, KEEL_IO, "b was first");
}

TEST(failure, downstream_does_not_run, RUNS)
{
    keel_buffer_t *x = new_buffer(64);
    keel_point_t failed = submit(failing(1));
    keel_point_t a = submit_after(KEEL_AFTER(failed), keel_op_fill(keel_whole(x), 1, 1));
    keel_point_t b = submit_after(KEEL_AFTER(a), keel_op_fill(keel_whole(x), 2, 1));
    reach_failure(b, KEEL_ABORTED);
    TRY(keel_device_wait_idle(the_device(), patience()));
    check_filled(x, 0, 64, 0);
}

TEST(failure, leaves_others_alone, RUNS)
{
    keel_buffer_t *x = new_buffer(64);
    keel_point_t before = submit(keel_op_fill(keel_span(x, 0, 32), 1, 1));
    keel_point_t failed = submit(failing(1));
    keel_point_t after = submit(keel_op_fill(keel_span(x, 32, 32), 1, 1));
    reach(before);
    reach_failure(failed, KEEL_ABORTED);
    reach(after);
    check_filled(x, 0, 64, 1);
}

TEST(failure, stops_behind_the_barrier, RUNS)
{
    keel_buffer_t *x = new_buffer(64);
    reach_failure(SUBMIT(KEEL_NO_WAITS, keel_op_fill(keel_span(x, 0, 32), 1, 1), keel_op_barrier(),
                         failing(1), keel_op_barrier(), keel_op_fill(keel_span(x, 32, 32), 1, 1)),
                  KEEL_ABORTED);
    check_filled(x, 0, 32, 1);
    check_filled(x, 32, 32, 0);
}

TEST(failure, of_a_reused_recording, RUNS)
{
    keel_buffer_t *number = new_buffer(4), *out = new_buffer(4);
    uint32_t two = 2;
    keel_recording_t *recording =
        RECORD(0, op_kernel("expect", 1, &two, 4, KEEL_BIND(number)), keel_op_barrier(),
               op_kernel("tally", 1, NULL, 0, KEEL_BIND(out)));
    for (uint32_t i = 0; i < 6; i++) {
        row("round %u", i);
        buffer_put(number, 0, &(uint32_t){i % 3}, 4);
        keel_point_t done = submit(keel_op_execute(recording, KEEL_NO_BINDINGS));
        if (i % 3 == 2) {
            reach(done);
        } else {
            reach_failure(done, KEEL_ABORTED);
        }
    }
    CHECK_EQ(buffer_u32(out, 0), 2);
}

// It fails only when nothing of it can touch memory any more.
TEST(failure, comes_after_the_rest_has_ended, RUNS)
{
    keel_buffer_t *word = new_buffer(4), *other = new_buffer(4);
    uint32_t us = 3000;
    keel_op_t slow = op_kernel("slow", 8, &us, 4, KEEL_BIND(word));
    keel_op_t beside = op_kernel("slow", 8, &us, 4, KEEL_BIND(other));
    for (int i = 0; i < 5; i++) {
        row("round %d", i);
        keel_op_t ops[] = {slow, failing(1), slow};
        reach_failure(submit_all(KEEL_NO_WAITS, ops, 3), KEEL_ABORTED);
        uint32_t count = buffer_u32(word, 0);
        reach(submit(beside)); // by when the rest would have ended as well
        CHECK_EQ(buffer_u32(word, 0), count);
    }
}

TEST(failure, many_among_many, RUNS)
{
    enum { N = 400 };
    keel_op_t bad = failing(1), good = keel_op_barrier();
    keel_point_t done[N];
    for (int i = 0; i < N; i++) done[i] = submit(i % 3 == 1 ? bad : good);
    for (int i = 0; i < N; i++) {
        row("submission %d", i);
        if (i % 3 == 1) {
            reach_failure(done[i], KEEL_ABORTED);
        } else {
            reach(done[i]);
        }
    }
    // And long after they have ended.
    for (int i = N - 1; i >= 0; i--) {
        row("submission %d again", i);
        if (i % 3 == 1) {
            reach_failure(done[i], KEEL_ABORTED);
        } else {
            reach(done[i]);
        }
    }
}

TEST(failure, fan_out)
{
    keel_semaphore_t *gate = new_semaphore(0);
    keel_point_t done[50];
    for (size_t i = 0; i < COUNT(done); i++) {
        done[i] = submit_after(KEEL_AFTER(keel_point(gate, 1 + i % 5)), keel_op_barrier());
    }
    TRY(keel_semaphore_signal(gate, 2));
    TRY(keel_semaphore_fail(gate, KEEL_ERROR(KEEL_IO, "for all the rest")));
    for (size_t i = 0; i < COUNT(done); i++) {
        row("submission %zu", i);
        if (i % 5 < 2) {
            reach(done[i]);
        } else {
            reach_failure_saying(done[i], KEEL_IO, "for all the rest");
        }
    }
}

// A cause is valid as long as a reference is held.
TEST(failure, cause_outlives_everything, RUNS)
{
    keel_point_t done = submit(failing(77));
    keel_status_t status = keel_wait(KEEL_POINTS(done), KEEL_ALL, patience());
    OWN(status);
    CHECK_EQ(keel_status_code(status), KEEL_ABORTED);
    drop(kernels());
    drop(the_device());
    char text[1000];
    keel_status_format(status, text, sizeof text);
    if (!starved()) CHECK_HAS(text, "77");
}

TEST(failure, long_chain, .heavy = true)
{
    keel_semaphore_t *gate = new_semaphore(0);
    keel_point_t last = keel_point(gate, 1);
    for (size_t i = 0; i < few(20000); i++) {
        last = submit_after(KEEL_AFTER(last), keel_op_barrier());
    }
    TRY(keel_semaphore_fail(gate, KEEL_ERROR(KEEL_IO, "far away")));
    reach_failure_saying(last, KEEL_IO, "far away");
}

TEST(failure, queue_works_on, RUNS)
{
    keel_buffer_t *x = new_buffer(16);
    for (int i = 0; i < 20; i++) {
        reach_failure(submit(failing(1)), KEEL_ABORTED);
        reach(submit(keel_op_fill(keel_whole(x), (uint32_t)i, 1)));
        check_filled(x, 0, 16, (uint8_t)i);
    }
}

// However many fail after it: the cause may be forgotten, the failure is not.
TEST(failure, is_never_forgotten, .heavy = true)
{
    enum { KEPT = 16384 + 16384 / 2 }; // causes, at most
    keel_point_t bad = keel_point(failed_semaphore("long ago"), 1);
    size_t count = few(KEPT + 100);
    keel_point_t *failed = scratch(count * sizeof *failed), *good = scratch(count * sizeof *good);
    for (size_t i = 0; i < count; i++) {
        failed[i] = submit_after(KEEL_AFTER(bad), keel_op_barrier());
        good[i] = submit(keel_op_barrier());
    }
    reach(keel_ended(keel_up_to(keel_queue_newest(the_queue()))));
    reach_failure_saying(failed[count - 1], KEEL_CORRUPT, "long ago");
    for (size_t i = 0; i < count; i += 97) {
        row("submission %zu", i);
        keel_status_t status = keel_wait(KEEL_POINTS(failed[i]), KEEL_ALL, patience());
        OWN(status);
        CHECK(status != NULL);
        reach(good[i]);
    }
    if (count > KEPT) reach_failure_saying(failed[0], KEEL_ABORTED, "no longer kept");
    reach_failure_saying(keel_up_to(good[0]), KEEL_CORRUPT, "long ago");
}
