// SPDX-License-Identifier: Apache-2.0
// Calls into the application, in queue order.
#include "suite/suite.h"

#include <pthread.h>

#define CALLS .needs = KEEL_CAP_HOST_CALLS

static keel_status_t count_call(void *user, keel_host_call_t *call)
{
    atomic_fetch_add((atomic_int *)user, 1);
    return NULL;
}

static keel_status_t fail_call(void *user, keel_host_call_t *call)
{
    return KEEL_ERROR(KEEL_NOT_FOUND, "the call found no %s", (const char *)user);
}

TEST(hostcall, runs_once, CALLS)
{
    atomic_int *count = scratch(sizeof *count);
    reach(submit(keel_op_host_call(count_call, count)));
    CHECK_EQ(atomic_load(count), 1);
}

TEST(hostcall, waits_for_points, CALLS)
{
    atomic_int *count = scratch(sizeof *count), *others = scratch(sizeof *others);
    keel_semaphore_t *gate = new_semaphore(0);
    keel_point_t done =
        submit_after(KEEL_AFTER(keel_point(gate, 1)), keel_op_host_call(count_call, count));
    reach(submit(keel_op_host_call(count_call, others))); // by when it might have been made
    CHECK_EQ(atomic_load(count), 0);
    TRY(keel_semaphore_signal(gate, 1));
    reach(done);
    CHECK_EQ(atomic_load(count), 1);
}

typedef struct reached_t {
    keel_semaphore_t *semaphore;
    uint64_t value;
} reached_t;

static keel_status_t reached_call(void *user, keel_host_call_t *call)
{
    reached_t *reached = user;
    return keel_semaphore_value(reached->semaphore, &reached->value);
}

// What it waited for is so, for the host as well, when it is called.
TEST(hostcall, finds_what_it_waited_for, .needs = KEEL_CAP_HOST_CALLS | KEEL_CAP_EXECUTES)
{
    keel_buffer_t *x = new_buffer(16);
    reached_t *reached = scratch(sizeof *reached);
    keel_op_t fill = keel_op_fill(keel_whole(x), 1, 4), group = keel_op_group_begin("call");
    keel_op_t ops[] = {group, keel_op_group_end(), keel_op_host_call(reached_call, reached)};
    reached->semaphore = new_semaphore(0);
    for (uint64_t i = 1; i <= few(500); i++) {
        keel_point_t point = keel_point(reached->semaphore, i), done;
        TRY(keel_queue_submit(the_queue(), KEEL_NO_WAITS, &fill, 1, KEEL_SIGNAL(point), NULL));
        TRY(keel_queue_submit(the_queue(), KEEL_AFTER(point), ops, 3, KEEL_NO_SIGNALS, &done));
        reach(done);
        CHECK_EQ(reached->value, i);
    }
}

typedef struct look_t {
    keel_buffer_t *buffer;
    uint8_t expected, then;
} look_t;

static keel_status_t look_call(void *user, keel_host_call_t *call)
{
    look_t *look = user;
    uint8_t bytes[16];
    KEEL_TRY(keel_buffer_read(look->buffer, 0, bytes, 16));
    for (int i = 0; i < 16; i++) {
        if (bytes[i] != look->expected) return KEEL_ERROR(KEEL_INTERNAL, "saw %u", bytes[i]);
    }
    memset(bytes, look->then, 16);
    return keel_buffer_write(look->buffer, 0, bytes, 16);
}

// It sees what came before and is seen by what comes after.
TEST(hostcall, in_order_with_work, .needs = KEEL_CAP_HOST_CALLS | KEEL_CAP_EXECUTES)
{
    keel_buffer_t *x = new_host_buffer(16), *y = new_buffer(16);
    look_t look = {x, 3, 4};
    for (int i = 0; i < 20; i++) {
        row("round %d", i);
        reach(SUBMIT(KEEL_NO_WAITS, keel_op_fill(keel_whole(x), 3, 1), keel_op_barrier(),
                     keel_op_host_call(look_call, &look), keel_op_barrier(),
                     keel_op_copy(keel_whole(x), keel_whole(y))));
        check_filled(y, 0, 16, 4);
    }
}

TEST(hostcall, failure, CALLS)
{
    char what[] = "spoon";
    keel_point_t failed = submit(keel_op_host_call(fail_call, what));
    reach_failure_saying(failed, KEEL_NOT_FOUND, "the call found no spoon");
    reach(submit(keel_op_barrier()));
}

TEST(hostcall, failure_after_a_wait, CALLS)
{
    char what[] = "fork";
    keel_semaphore_t *gate = new_semaphore(0), *out = new_semaphore(0);
    keel_op_t op = keel_op_host_call(fail_call, what);
    TRY(keel_queue_submit(the_queue(), KEEL_AFTER(keel_point(gate, 1)), &op, 1,
                          KEEL_SIGNAL(keel_point(out, 1)), NULL));
    TRY(keel_semaphore_signal(gate, 1));
    reach_failure_saying(keel_point(out, 1), KEEL_NOT_FOUND, "fork");
}

// What comes behind a barrier does not run when what was before it has failed.
TEST(hostcall, failure_stops_its_submission, CALLS)
{
    char what[] = "knife";
    atomic_int *count = scratch(sizeof *count);
    reach_failure(SUBMIT(KEEL_NO_WAITS, keel_op_host_call(fail_call, what), keel_op_barrier(),
                         keel_op_host_call(count_call, count)),
                  KEEL_NOT_FOUND);
    CHECK_EQ(atomic_load(count), 0);
}

typedef struct deferred_t {
    _Atomic(keel_host_call_t *) call;
    gate_t *called;
    bool completed;
} deferred_t;

static keel_status_t defer_call(void *user, keel_host_call_t *call)
{
    deferred_t *deferred = user;
    keel_call_defer(call);
    atomic_store(&deferred->call, call);
    gate_open(deferred->called);
    return NULL;
}

static void complete(deferred_t *deferred, keel_status_t status)
{
    deferred->completed = true;
    keel_call_complete(atomic_load(&deferred->call), status);
}

static void complete_if_left(void *user)
{
    deferred_t *deferred = user;
    if (atomic_load(&deferred->call) && !deferred->completed) complete(deferred, NULL);
}

static deferred_t *new_deferred(void)
{
    deferred_t *deferred = scratch(sizeof *deferred);
    deferred->called = new_gate();
    own_cleanup(complete_if_left, deferred);
    return deferred;
}

static void await_call(deferred_t *deferred, keel_point_t done)
{
    uint64_t start = keel_now_ns();
    while (!gate_wait_ms(deferred->called, 2)) {
        if (ended(done) && !gate_is_open(deferred->called)) {
            reach(done); // it failed before the call
            CHECK(gate_is_open(deferred->called));
        }
        CHECK_LE(keel_now_ns() - start, patience());
    }
}

TEST(hostcall, deferred, CALLS)
{
    deferred_t *deferred = new_deferred();
    keel_point_t done = submit(keel_op_host_call(defer_call, deferred));
    await_call(deferred, done);
    reach(submit(keel_op_barrier())); // by when it might have ended
    CHECK(pending(done));
    complete(deferred, NULL);
    reach(done);
}

TEST(hostcall, deferred_failure, CALLS)
{
    deferred_t *deferred = new_deferred();
    keel_point_t done = submit(keel_op_host_call(defer_call, deferred));
    await_call(deferred, done);
    complete(deferred, KEEL_ERROR(KEEL_IO, "answered late and badly"));
    reach_failure_saying(done, KEEL_IO, "answered late and badly");
}

static keel_status_t answer_at_once(void *user, keel_host_call_t *call)
{
    keel_call_defer(call);
    keel_call_complete(call, NULL);
    return NULL;
}

TEST(hostcall, deferred_and_completed_inside, CALLS)
{
    for (int i = 0; i < 20; i++) reach(submit(keel_op_host_call(answer_at_once, NULL)));
}

// While a call is deferred it holds no worker: other work goes on.
TEST(hostcall, deferred_holds_no_worker, CALLS)
{
    deferred_t *deferred[8];
    keel_point_t done[8];
    for (int i = 0; i < 8; i++) {
        deferred[i] = new_deferred();
        done[i] = submit(keel_op_host_call(defer_call, deferred[i]));
        await_call(deferred[i], done[i]);
    }
    reach(submit(keel_op_barrier()));
    for (int i = 7; i >= 0; i--) {
        CHECK(pending(done[i]));
        complete(deferred[i], NULL);
        reach(done[i]);
    }
}

// Nor does it hold what the work beside it needed, once that is done: the queue takes other work.
TEST(hostcall, deferred_holds_no_room, CALLS)
{
    enum { COUNT = 20 };
    deferred_t *deferred[COUNT];
    keel_point_t done[COUNT];
    keel_buffer_t *buffer = new_buffer(4 * (COUNT + 1));
    for (uint64_t i = 0; i < COUNT; i++) {
        deferred[i] = new_deferred();
        done[i] = SUBMIT(KEEL_NO_WAITS, keel_op_fill(keel_span(buffer, 4 * i, 4), 1, 4),
                         keel_op_host_call(defer_call, deferred[i]));
        await_call(deferred[i], done[i]);
    }
    reach(submit(keel_op_fill(keel_span(buffer, UINT64_C(4) * COUNT, 4), 2, 4)));
    CHECK_EQ(buffer_u32(buffer, COUNT), 2);
    for (int i = 0; i < COUNT; i++) {
        CHECK(pending(done[i]));
        complete(deferred[i], NULL);
        reach(done[i]);
    }
}

static void complete_soon(void *user)
{
    deferred_t *deferred = user;
    gate_wait(deferred->called);
    if (atomic_load(&deferred->call)) complete(deferred, NULL);
}

// The end of the call and its completion meet.
TEST(hostcall, completion_races_with_return, CALLS)
{
    for (size_t i = 0; i < few(160); i++) {
        deferred_t *deferred = new_deferred();
        thread_t *thread = thread_start(complete_soon, deferred);
        keel_point_t done = submit(keel_op_host_call(defer_call, deferred));
        await_call(deferred, done);
        thread_join(thread);
        reach(done);
    }
}

TEST(hostcall, deferred_in_the_middle, .needs = KEEL_CAP_HOST_CALLS | KEEL_CAP_EXECUTES)
{
    deferred_t *deferred = new_deferred();
    keel_buffer_t *x = new_buffer(16);
    keel_point_t done = SUBMIT(KEEL_NO_WAITS, keel_op_fill(keel_whole(x), 1, 1), keel_op_barrier(),
                               keel_op_host_call(defer_call, deferred), keel_op_barrier(),
                               keel_op_fill(keel_whole(x), 2, 1));
    await_call(deferred, done);
    check_filled(x, 0, 16, 1);
    complete(deferred, NULL);
    reach(done);
    check_filled(x, 0, 16, 2);
}

static keel_op_t detached(keel_host_fn fn, void *user)
{
    keel_op_t op = keel_op_host_call(fn, user);
    op.as.call.detached = true;
    return op;
}

// Its operation ends when it is called: what it waits for may be the operation itself.
typedef struct reach_t {
    keel_point_t point;
    gate_t *submitted, *called;
} reach_t;

static keel_status_t reach_call(void *user, keel_host_call_t *call)
{
    reach_t *target = user;
    gate_wait(target->submitted);
    keel_status_t status = keel_wait(KEEL_POINTS(target->point), KEEL_ALL, patience());
    gate_open(target->called);
    return status;
}

TEST(hostcall, detached, CALLS, .also = NEED_WORKERS)
{
    reach_t *target = scratch(sizeof *target);
    target->submitted = new_gate();
    target->called = new_gate();
    target->point = submit(detached(reach_call, target));
    gate_open(target->submitted);
    reach(target->point);
    CHECK(gate_wait_ms(target->called, (unsigned)(patience() / 1000000)) || starved());
}

static char logged[200];

static void keep_log(void *user, keel_log_level_t level, const char *text)
{
    if (!strstr(text, "spoon")) return;
    snprintf(logged, sizeof logged, "%s", text);
    gate_open(user);
}

// An error it returns is only logged.
TEST(hostcall, detached_failure_is_logged, CALLS)
{
    char what[] = "spoon";
    gate_t *told = new_gate();
    keel_log_set(keep_log, told, KEEL_LOG_ERROR);
    reach(submit(detached(fail_call, what)));
    TRY(keel_device_wait_idle(the_device(), patience()));
    bool heard = gate_wait_ms(told, (unsigned)(patience() / 1000000)) || starved();
    drop(the_device());
    keel_log_set(NULL, NULL, KEEL_LOG_ERROR);
    CHECK(heard);
}

TEST(hostcall, many, CALLS)
{
    enum { N = 500 };
    atomic_int *count = scratch(sizeof *count);
    keel_point_t done[N];
    for (int i = 0; i < N; i++) done[i] = submit(keel_op_host_call(count_call, count));
    TRY(keel_wait(keel_points(done, N), KEEL_ALL, patience()));
    CHECK_EQ(atomic_load(count), N);
}

// All of Keel may be used inside.
static keel_status_t submit_call(void *user, keel_host_call_t *call)
{
    keel_semaphore_t *out = user;
    keel_buffer_options_t options = {.size = 64};
    keel_buffer_t *buffer = NULL;
    KEEL_TRY(keel_buffer_create(the_device(), &options, &buffer));
    keel_op_t op = keel_op_fill(keel_whole(buffer), 1, 1);
    keel_status_t status = keel_queue_submit(the_queue(), KEEL_NO_WAITS, &op, 1,
                                             KEEL_SIGNAL(keel_point(out, 1)), NULL);
    keel_buffer_release(buffer);
    return status;
}

TEST(hostcall, submits_work, CALLS)
{
    keel_semaphore_t *out = new_semaphore(0);
    reach(submit(keel_op_host_call(submit_call, out)));
    reach_value(out, 1);
}

static keel_status_t signal_call(void *user, keel_host_call_t *call)
{
    return keel_semaphore_signal(user, 1);
}

TEST(hostcall, signals, CALLS)
{
    keel_semaphore_t *s = new_semaphore(0);
    keel_point_t after = submit_after(KEEL_AFTER(keel_point(s, 1)), keel_op_barrier());
    reach(submit(keel_op_host_call(signal_call, s)));
    reach(after);
}

TEST(hostcall, bad_arguments, CALLS)
{
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "fn",
                 keel_queue_run(the_queue(), KEEL_NO_WAITS, keel_op_host_call(NULL, NULL), NULL));
}

// The last reference to the device released inside one of its own calls.
typedef struct closer_t {
    keel_device_t *device;
    gate_t *released;
} closer_t;

static keel_status_t close_call(void *user, keel_host_call_t *call)
{
    closer_t *closer = user;
    keel_device_release(closer->device);
    gate_open(closer->released);
    return NULL;
}

// Runs `op` on a device of its own, whose last reference `closer` then has.
static void run_closing(closer_t *closer, keel_op_t op)
{
    hold_t *hold = new_hold();
    keel_device_t *device = open_device(the_uri());
    keel_point_t held;
    TRY(keel_queue_run(keel_device_queue(device, 0), KEEL_NO_WAITS, op_hold(hold), &held));
    hold_entered(hold, held);
    keel_point_t done;
    TRY(keel_queue_run(keel_device_queue(device, 0), KEEL_AFTER(held), op, &done));
    OWN(keel_semaphore_retain(done.semaphore));
    closer->device = device;
    disown(device); // from here on it is the call's
    gate_open(hold->gate);
    keel_status_t status = keel_wait(KEEL_POINTS(done), KEEL_ALL, patience());
    if (status) keel_device_release(device); // there was no call
    TRY(status);
    CHECK(gate_wait_ms(closer->released, (unsigned)(patience() / 1000000)));
}

static closer_t *new_closer(void)
{
    closer_t *closer = scratch(sizeof *closer);
    closer->released = new_gate();
    return closer;
}

TEST(hostcall, releases_the_device, CALLS, .also = NEED_WORKERS)
{
    closer_t *closer = new_closer();
    run_closing(closer, keel_op_host_call(close_call, closer));
}

TEST(hostcall, detached_releases_the_device, CALLS, .also = NEED_WORKERS)
{
    closer_t *closer = new_closer();
    run_closing(closer, detached(close_call, closer));
}

// A buffer's release callback is code of the application, too, and may come on any thread.
static void close_in_callback(void *user)
{
    close_call(user, NULL);
}

TEST(hostcall, release_callback_releases_the_device,
     .needs = KEEL_CAP_HOST_CALLS | KEEL_CAP_IMPORT_HOST, .also = NEED_WORKERS)
{
    closer_t *closer = new_closer();
    hold_t *hold = new_hold();
    keel_device_t *device = open_device(the_uri());
    keel_external_buffer_t external = {.kind = KEEL_EXTERNAL_HOST,
                                       .handle.host = scratch(64),
                                       .size = 64,
                                       .release = close_in_callback,
                                       .user = closer};
    keel_buffer_t *x = NULL;
    keel_point_t held;
    TRY(keel_queue_run(keel_device_queue(device, 0), KEEL_NO_WAITS, op_hold(hold), &held));
    hold_entered(hold, held);
    keel_device_retain(device); // the callback's, whenever it comes
    closer->device = device;
    keel_status_t status = keel_buffer_import(device, &external, NULL, &x);
    if (status) keel_device_release(device);
    TRY(status);
    status =
        keel_queue_fill(keel_device_queue(device, 0), KEEL_AFTER(held), keel_whole(x), 1, 1, NULL);
    drop(device);
    if (status) gate_open(hold->gate); // nothing holds the buffer but us
    keel_buffer_release(x);
    gate_open(hold->gate);
    CHECK(gate_wait_ms(closer->released, (unsigned)(patience() / 1000000)));
    TRY(status);
}

// A log callback is told without locks held: it may look around.
static void look_around(void *user, keel_log_level_t level, const char *text)
{
    keel_memory_stats_t stats;
    keel_status_t status = keel_device_memory(the_device(), &stats);
    EXPECT(!status || starved());
    keel_status_release(status);
    gate_open(user);
}

TEST(hostcall, log_callback_may_call_keel, CALLS)
{
    char what[] = "ladle";
    gate_t *told = new_gate();
    the_device();
    keel_log_set(look_around, told, KEEL_LOG_ERROR);
    reach(submit(detached(fail_call, what)));
    bool heard = gate_wait_ms(told, (unsigned)(patience() / 1000000)) || starved();
    keel_log_set(NULL, NULL, KEEL_LOG_ERROR);
    CHECK(heard);
}

// A call that is made or abandoned, and which.
typedef struct owner_t {
    _Atomic int calls, abandoned, code;
} owner_t;

static keel_status_t owner_call(void *user, keel_host_call_t *call)
{
    owner_t *owner = user;
    atomic_fetch_add(&owner->calls, 1);
    return NULL;
}

static void owner_abandoned(void *user, keel_status_t cause)
{
    owner_t *owner = user;
    atomic_store(&owner->code, (int)keel_status_code(cause));
    keel_status_release(cause);
    atomic_fetch_add(&owner->abandoned, 1);
}

static keel_op_t op_owner(owner_t *owner, bool is_detached)
{
    keel_op_t op = keel_op_host_call(owner_call, owner);
    op.as.call.detached = is_detached;
    op.as.call.abandoned = owner_abandoned;
    return op;
}

// It was not made, and its owner knows, with this cause, when the point has failed.
static void check_abandoned(owner_t *owner, keel_code_t code)
{
    CHECK_EQ(atomic_load(&owner->calls), 0);
    CHECK_EQ(atomic_load(&owner->abandoned), 1);
    if (!faulted() && !starved()) CHECK_EQ(atomic_load(&owner->code), code);
}

TEST(hostcall, not_abandoned, CALLS)
{
    owner_t *owners = scratch(2 * sizeof *owners);
    reach(SUBMIT(KEEL_NO_WAITS, op_owner(&owners[0], false), op_owner(&owners[1], true)));
    CHECK_EQ(atomic_load(&owners[0].calls), 1);
    come_to(&owners[1].calls, 1); // it may come later
    for (int i = 0; i < 2; i++) CHECK_EQ(atomic_load(&owners[i].abandoned), 0);
}

TEST(hostcall, abandoned_when_a_wait_fails, CALLS)
{
    owner_t *owners = scratch(2 * sizeof *owners);
    keel_semaphore_t *gate = new_semaphore(0);
    keel_point_t done = SUBMIT(KEEL_AFTER(keel_point(gate, 1)), op_owner(&owners[0], false),
                               op_owner(&owners[1], true));
    CHECK_EQ(atomic_load(&owners[0].abandoned), 0);
    TRY(keel_semaphore_fail(gate, KEEL_ERROR(KEEL_IO, "never")));
    reach_failure(done, KEEL_IO);
    for (int i = 0; i < 2; i++) check_abandoned(&owners[i], KEEL_IO);
}

TEST(hostcall, abandoned_when_its_submission_fails, CALLS)
{
    owner_t *owner = scratch(sizeof *owner);
    char luck[] = "luck";
    keel_point_t done = SUBMIT(KEEL_NO_WAITS, keel_op_host_call(fail_call, luck), keel_op_barrier(),
                               op_owner(owner, false));
    reach_failure(done, KEEL_NOT_FOUND);
    check_abandoned(owner, KEEL_NOT_FOUND);
}

TEST(hostcall, abandoned_when_the_device_closes, CALLS)
{
    owner_t *owner = scratch(sizeof *owner);
    submit_after(KEEL_AFTER(keel_point(new_semaphore(0), 1)), op_owner(owner, false));
    drop(the_device());
    check_abandoned(owner, KEEL_CANCELLED);
}

TEST(hostcall, refused_is_not_abandoned, CALLS)
{
    owner_t *owner = scratch(sizeof *owner);
    keel_op_t ops[] = {op_owner(owner, false), keel_op_host_call(NULL, NULL)};
    FAILS(KEEL_INVALID_ARGUMENT,
          keel_queue_submit(the_queue(), KEEL_NO_WAITS, ops, 2, KEEL_NO_SIGNALS, NULL));
    CHECK_EQ(atomic_load(&owner->abandoned), 0);
}

static keel_status_t defer_in_vain(void *user, keel_host_call_t *call)
{
    keel_call_defer(call);
    atomic_store(&((deferred_t *)user)->call, call);
    return KEEL_ERROR(KEEL_IO, "there is no server");
}

// An error that is returned after all ends the call; what completes it later has no effect.
TEST(hostcall, deferred_and_failed_inside, CALLS)
{
    deferred_t *deferred = scratch(sizeof *deferred);
    keel_point_t done = submit(keel_op_host_call(defer_in_vain, deferred));
    reach_failure_saying(done, KEEL_IO, "there is no server");
    keel_call_complete(atomic_load(&deferred->call), NULL);
}

// A second completion has no effect on the call that has its memory by then.
TEST(hostcall, completed_twice, CALLS)
{
    deferred_t *first = new_deferred(), *second = new_deferred();
    keel_point_t done = submit(keel_op_host_call(defer_call, first));
    await_call(first, done);
    complete(first, NULL);
    reach(done);
    keel_call_complete(atomic_load(&first->call), NULL);
    done = submit(keel_op_host_call(defer_call, second));
    await_call(second, done);
    keel_call_complete(atomic_load(&first->call), KEEL_ERROR(KEEL_IO, "who is this?"));
    CHECK(pending(done));
    complete(second, NULL);
    reach(done);
}

static keel_status_t complete_what_is_not_deferred(void *user, keel_host_call_t *call)
{
    keel_call_complete(call, KEEL_ERROR(KEEL_IO, "it goes on"));
    return NULL;
}

static keel_status_t defer_nothing(void *user, keel_host_call_t *call)
{
    keel_call_defer(call);
    atomic_fetch_add((_Atomic int *)user, 1);
    return NULL;
}

TEST(hostcall, completed_or_deferred_in_vain, CALLS)
{
    _Atomic int *count = scratch(sizeof *count);
    reach(submit(keel_op_host_call(complete_what_is_not_deferred, NULL)));
    reach(submit(detached(defer_nothing, count)));
    come_to(count, 1);
}
