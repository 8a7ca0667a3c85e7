// SPDX-License-Identifier: Apache-2.0
// Cancelling submissions: those that wait, those that run, and those that are over.
#include "suite/suite.h"

#define CALLS .needs = KEEL_CAP_HOST_CALLS

static keel_cancel_t cancel(keel_point_t point)
{
    keel_cancel_t was = KEEL_CANCEL_ENDED;
    TRY(keel_queue_cancel(point, &was));
    return was;
}

// It must not be too late; but a device that may be lost has ended it, perhaps. Of what waits,
// devices that wait by themselves say that it runs.
static void cancel_in_time(keel_point_t point)
{
    keel_cancel_t was = cancel(point);
    if (!faulted()) CHECK_NE(was, KEEL_CANCEL_ENDED);
}

// What depends on it fails with it, other work does not.
TEST(cancel, before_it_began)
{
    keel_semaphore_t *gate = new_semaphore(0), *out = new_semaphore(0);
    keel_points_t waits = KEEL_AFTER(keel_point(gate, 1));
    keel_point_t done, next, other;
    TRY(keel_queue_signal(the_queue(), waits, KEEL_SIGNAL(keel_point(out, 1)), &done));
    next = submit_after(KEEL_AFTER(done), keel_op_barrier());
    other = submit_after(waits, keel_op_barrier());
    cancel_in_time(done);
    reach_failure_saying(done, KEEL_CANCELLED, "was cancelled");
    reach_failure(next, KEEL_CANCELLED);
    reach_failure(keel_point(out, 1), KEEL_CANCELLED);
    TRY(keel_semaphore_signal(gate, 1));
    reach(other);
    CHECK_EQ(cancel(done), KEEL_CANCEL_ENDED);
}

TEST(cancel, too_late)
{
    keel_point_t done = submit(keel_op_barrier());
    reach(done);
    CHECK_EQ(cancel(done), KEEL_CANCEL_ENDED);
    TRY(keel_queue_cancel(done, NULL));
    reach(done);
}

TEST(cancel, of_one_that_waits_for_another_queue)
{
    keel_queue_t *queue = new_queue(0);
    keel_point_t gate = keel_point(new_semaphore(0), 1), first, second;
    TRY(keel_queue_run(queue, KEEL_AFTER(gate), keel_op_barrier(), &first));
    TRY(keel_queue_run(the_queue(), KEEL_AFTER(first), keel_op_barrier(), &second));
    cancel_in_time(second);
    reach_failure(second, KEEL_CANCELLED);
    TRY(keel_semaphore_signal(gate.semaphore, 1));
    reach(first);
}

// Also of those that are cancelled while others are on their way out.
TEST(cancel, each_for_its_own_reason)
{
    enum { N = 4 };
    keel_points_t waits = KEEL_AFTER(keel_point(new_semaphore(0), 1));
    keel_point_t done[N], out[N];
    for (int i = 0; i < N; i++) {
        out[i] = keel_point(new_semaphore(0), 1);
        TRY(keel_queue_signal(the_queue(), waits, KEEL_SIGNAL(out[i]), &done[i]));
    }
    for (int i = 0; i < N; i++) cancel_in_time(done[i]);
    for (int i = 0; i < N; i++) {
        char text[64];
        snprintf(text, sizeof text, "submission %llu ", (unsigned long long)done[i].value);
        reach_failure_saying(out[i], KEEL_CANCELLED, text);
    }
}

typedef struct calls_t {
    _Atomic(keel_host_call_t *) deferred;
    _Atomic int begun, later, abandoned, code;
} calls_t;

static keel_status_t call_defer(void *user, keel_host_call_t *call)
{
    calls_t *calls = user;
    keel_call_defer(call);
    atomic_store(&calls->deferred, call);
    atomic_fetch_add(&calls->begun, 1);
    return NULL;
}

static keel_status_t call_later(void *user, keel_host_call_t *call)
{
    atomic_fetch_add(&((calls_t *)user)->later, 1);
    return NULL;
}

static void call_abandoned(void *user, keel_status_t cause)
{
    calls_t *calls = user;
    atomic_store(&calls->code, (int)keel_status_code(cause));
    keel_status_release(cause);
    atomic_fetch_add(&calls->abandoned, 1);
}

static void call_complete(void *user)
{
    keel_host_call_t *call = atomic_exchange(&((calls_t *)user)->deferred, NULL);
    if (call) keel_call_complete(call, NULL);
}

// It begins no more operations, and fails when what it has begun is over.
TEST(cancel, while_it_runs, CALLS)
{
    calls_t *calls = scratch(sizeof *calls);
    own_cleanup(call_complete, calls);
    keel_op_t later = keel_op_host_call(call_later, calls);
    later.as.call.abandoned = call_abandoned;
    keel_point_t done =
        SUBMIT(KEEL_NO_WAITS, keel_op_host_call(call_defer, calls), keel_op_barrier(), later);
    while (!atomic_load(&calls->begun)) {
        if (ended(done)) reach(done); // it failed before the call
        sleep_ms(1);
    }
    cancel_in_time(done);
    CHECK(pending(done));
    call_complete(calls);
    reach_failure_saying(done, KEEL_CANCELLED, "was cancelled");
    CHECK_EQ(atomic_load(&calls->later), 0);
    CHECK_EQ(atomic_load(&calls->abandoned), 1);
    if (!faulted() && !starved()) CHECK_EQ(atomic_load(&calls->code), KEEL_CANCELLED);
}

static uint64_t waiting(keel_pool_t *pool)
{
    keel_pool_stats_t stats;
    keel_pool_stats(pool, &stats);
    return stats.waiting;
}

// An alloca that waits for room is given up, and takes nothing from others.
TEST(cancel, of_an_alloca_that_waits, .needs = KEEL_CAP_QUEUE_ALLOCA)
{
    keel_pool_t *pool = new_pool(4096, 0);
    keel_buffer_t *held = new_reserved(pool, 4096), *x = new_reserved(pool, 4096);
    keel_buffer_t *y = new_reserved(pool, 4096);
    reach(submit(keel_op_alloca(held)));
    keel_point_t first = submit(keel_op_alloca(x)), second = submit(keel_op_alloca(y));
    while (waiting(pool) < 2) {
        if (ended(first)) reach(first); // it failed
        if (ended(second)) reach(second);
        sleep_ms(1);
    }
    cancel_in_time(first);
    reach_failure_saying(first, KEEL_CANCELLED, "was cancelled");
    if (!faulted()) CHECK_EQ(waiting(pool), 1);
    reach(submit(keel_op_dealloca(held)));
    reach(second);
}

TEST(cancel, bad_arguments)
{
    keel_semaphore_t *semaphore = new_semaphore(0), *timeline = keel_queue_timeline(the_queue());
    keel_point_t done = submit(keel_op_barrier());
    reach(done);
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "point.semaphore",
                 keel_queue_cancel(keel_point(NULL, 1), NULL));
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "timeline",
                 keel_queue_cancel(keel_point(semaphore, 1), NULL));
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "no submission 0",
                 keel_queue_cancel(keel_point(timeline, 0), NULL));
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "no submission",
                 keel_queue_cancel(keel_point(timeline, done.value + 1), NULL));
}

static void signal_all(void *user)
{
    for (uint64_t i = 1; i <= 100; i++) TRY(keel_semaphore_signal(user, i));
}

// Each ends, well or cancelled, and as the call has said.
TEST(cancel, races_with_the_start)
{
    enum { N = 100 };
    keel_semaphore_t *gate = new_semaphore(0);
    keel_point_t done[N];
    keel_cancel_t was[N];
    for (uint64_t i = 0; i < N; i++)
        done[i] = submit_after(KEEL_AFTER(keel_point(gate, i + 1)), keel_op_barrier());
    thread_t *thread = thread_start(signal_all, gate);
    for (int i = N - 1; i >= 0; i--) was[i] = cancel(done[i]);
    thread_join(thread);
    for (int i = 0; i < N; i++) {
        keel_status_t status = keel_wait(KEEL_POINTS(done[i]), KEEL_ALL, patience());
        keel_code_t code = keel_status_code(status);
        keel_status_release(status);
        if (faulted()) continue;
        if (was[i] == KEEL_CANCEL_WAITING) CHECK_EQ(code, KEEL_CANCELLED);
        if (was[i] == KEEL_CANCEL_ENDED) CHECK_EQ(code, KEEL_OK);
        CHECK(code == KEEL_OK || code == KEEL_CANCELLED);
    }
}
