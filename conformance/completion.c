// SPDX-License-Identifier: Apache-2.0
// The ends of waits: calls of keel_on, and completion queues for people with an event loop.
#include "suite/suite.h"

#include <poll.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/epoll.h>
#endif

static keel_completion_t *new_completion(void)
{
    keel_completion_t *queue = NULL;
    TRY(keel_completion_create(&queue));
    OWN(queue);
    return queue;
}

static bool readable(keel_completion_t *queue, int timeout_ms)
{
    struct pollfd fd = {.fd = keel_completion_fd(queue), .events = POLLIN};
    CHECK(fd.fd >= 0);
    int ready = poll(&fd, 1, timeout_ms);
    CHECK(ready >= 0);
    return ready == 1 && fd.revents & POLLIN;
}

#define SOON ((int)(patience() / 1000000))

// Adds a wait, known by its number.
static void add(keel_completion_t *queue, keel_points_t points, keel_wait_mode_t mode,
                uintptr_t number)
{
    TRY(keel_completion_add(queue, points, mode, (void *)number));
}

// The number of the next end, which must have gone well.
static uintptr_t next(keel_completion_t *queue)
{
    void *user = NULL;
    keel_status_t status = NULL;
    TRY(keel_completion_next(queue, patience(), &user, &status));
    TRY(status);
    return (uintptr_t)user;
}

// The next end must be that of `number`, with this error.
static void next_fails(keel_completion_t *queue, uintptr_t number, keel_code_t code)
{
    void *user = NULL;
    keel_status_t status = NULL;
    TRY(keel_completion_next(queue, patience(), &user, &status));
    FAILS(code, status);
    CHECK_EQ((uintptr_t)user, number);
}

// There must be none; a device that may be lost ends everything (faulted).
static void none(keel_completion_t *queue)
{
    void *user = NULL;
    keel_status_t status = NULL;
    if (faulted()) return;
    FAILS(KEEL_DEADLINE_EXCEEDED, keel_completion_next(queue, 0, &user, &status));
    CHECK(!user && !status);
    CHECK(!readable(queue, 0));
}

TEST(completion, comes_after_the_signal)
{
    keel_completion_t *queue = new_completion();
    keel_semaphore_t *semaphore = new_semaphore(0);
    add(queue, KEEL_POINTS(keel_point(semaphore, 2)), KEEL_ALL, 7);
    none(queue);
    TRY(keel_semaphore_signal(semaphore, 1));
    none(queue);
    TRY(keel_semaphore_signal(semaphore, 2));
    CHECK(readable(queue, SOON));
    CHECK(readable(queue, 0)); // and stays so
    CHECK_EQ(next(queue), 7);
    none(queue);
}

TEST(completion, comes_at_once)
{
    keel_completion_t *queue = new_completion();
    keel_point_t past = keel_point(new_semaphore(2), 1);
    add(queue, KEEL_POINTS(past), KEEL_ALL, 1);
    add(queue, KEEL_POINTS(past), KEEL_ANY, 2);
    add(queue, KEEL_NO_WAITS, KEEL_ALL, 3);
    CHECK(readable(queue, SOON)); // also if the descriptor is asked for after the end
    for (uintptr_t i = 1; i <= 3; i++) CHECK_EQ(next(queue), i);
    none(queue);
}

TEST(completion, all_and_any)
{
    keel_completion_t *queue = new_completion();
    keel_point_t points[] = {keel_point(new_semaphore(0), 1), keel_point(new_semaphore(0), 1)};
    add(queue, keel_points(points, 2), KEEL_ALL, 1);
    add(queue, keel_points(points, 2), KEEL_ANY, 2);
    TRY(keel_semaphore_signal(points[1].semaphore, 1));
    CHECK_EQ(next(queue), 2);
    none(queue);
    TRY(keel_semaphore_signal(points[0].semaphore, 1));
    CHECK_EQ(next(queue), 1);
}

TEST(completion, tells_the_failure)
{
    keel_completion_t *queue = new_completion();
    keel_point_t points[] = {keel_point(new_semaphore(0), 1), keel_point(new_semaphore(0), 1)};
    add(queue, keel_points(points, 2), KEEL_ALL, 1);
    TRY(keel_semaphore_fail(points[1].semaphore, KEEL_ERROR(KEEL_ABORTED, "broken")));
    next_fails(queue, 1, KEEL_ABORTED);
    add(queue, keel_points(points, 2), KEEL_ANY, 2); // failed before
    next_fails(queue, 2, KEEL_ABORTED);
    none(queue); // the other point is not awaited any more
    TRY(keel_semaphore_signal(points[0].semaphore, 1));
    none(queue);
}

TEST(completion, comes_in_the_order_of_ends)
{
    enum { N = 10 };
    keel_completion_t *queue = new_completion();
    keel_semaphore_t *semaphores[N];
    for (uintptr_t i = 0; i < N; i++) {
        semaphores[i] = new_semaphore(0);
        add(queue, KEEL_POINTS(keel_point(semaphores[i], 1)), KEEL_ALL, i);
    }
    for (uintptr_t i = 0; i < N; i++) TRY(keel_semaphore_signal(semaphores[i * 7 % N], 1));
    for (uintptr_t i = 0; i < N; i++) CHECK_EQ(next(queue), i * 7 % N);
}

// Many submissions in flight, one descriptor; some waits have more points than are recycled.
TEST(completion, many_submissions)
{
    enum { N = 200, WIDE = 6 };
    keel_completion_t *queue = new_completion();
    keel_semaphore_t *gate = new_semaphore(0);
    keel_point_t done[N];
    bool seen[2 * N] = {false};
    for (uintptr_t round = 0; round < 2; round++) { // the second on recycled memory
        for (uintptr_t i = 0; i < N; i++) {
            done[i] = submit_after(KEEL_AFTER(keel_point(gate, round + 1)), keel_op_barrier());
            size_t count = i % 50 == 49 ? WIDE : 1;
            add(queue, keel_points(&done[i + 1 - count], count), KEEL_ALL, round * N + i);
        }
        none(queue);
        TRY(keel_semaphore_signal(gate, round + 1));
        for (int i = 0; i < N; i++) {
            CHECK(readable(queue, SOON));
            uintptr_t number = next(queue);
            CHECK(number < 2 * N && !seen[number]);
            seen[number] = true;
        }
        none(queue);
    }
}

TEST(completion, ends_when_the_device_closes)
{
    keel_completion_t *queue = new_completion();
    keel_semaphore_t *semaphore = new_semaphore(0);
    keel_point_t point = keel_point(semaphore, 1),
                 done = submit_after(KEEL_AFTER(point), keel_op_barrier());
    add(queue, KEEL_POINTS(point), KEEL_ALL, 1);
    add(queue, KEEL_POINTS(done), KEEL_ALL, 1);
    drop(the_device());
    next_fails(queue, 1, KEEL_CANCELLED);
    next_fails(queue, 1, KEEL_CANCELLED);
}

TEST(completion, retains_its_semaphores)
{
    keel_completion_t *queue = new_completion();
    keel_semaphore_t *semaphore = new_semaphore(0);
    add(queue, KEEL_POINTS(keel_point(semaphore, 1)), KEEL_ALL, 1);
    keel_semaphore_retain(semaphore);
    drop(semaphore);
    keel_status_t status = keel_semaphore_signal(semaphore, 1);
    keel_semaphore_release(semaphore);
    TRY(status);
    CHECK(readable(queue, SOON));
    keel_live_t live;
    uint64_t start = keel_now_ns();
    do keel_live_objects(&live); // a thread that told of the end may be about to let go
    while (live.semaphores && keel_now_ns() - start < patience());
    CHECK_EQ(live.semaphores, 0); // until the end, not until it is taken
    CHECK_EQ(live.completions, 1);
    CHECK_EQ(next(queue), 1);
}

// With waits that are pending, and ends that were not taken.
TEST(completion, released_early)
{
    keel_completion_t *queue = new_completion();
    keel_point_t point = keel_point(new_semaphore(0), 1), past = keel_point(new_semaphore(1), 1);
    keel_point_t failed = keel_point(new_semaphore(0), 1);
    TRY(keel_semaphore_fail(failed.semaphore, KEEL_ERROR(KEEL_ABORTED, "broken")));
    add(queue, KEEL_POINTS(point), KEEL_ALL, 1);
    add(queue, KEEL_POINTS(point, past), KEEL_ALL, 2);
    add(queue, KEEL_POINTS(past), KEEL_ALL, 3);
    add(queue, KEEL_POINTS(failed), KEEL_ALL, 4);
    drop(queue);
    TRY(keel_semaphore_signal(point.semaphore, 1));
    keel_completion_release(NULL);
}

TEST(completion, bad_arguments)
{
    keel_completion_t *queue = new_completion();
    keel_point_t nowhere = keel_point(NULL, 1), point = keel_point(new_semaphore(0), 1);
    keel_point_t later = keel_point(keel_queue_timeline(the_queue()), 1u << 30);
    void *user = NULL;
    keel_status_t status = NULL;
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "queue", keel_completion_create(NULL));
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "queue",
                 keel_completion_add(NULL, KEEL_POINTS(point), KEEL_ALL, NULL));
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "points",
                 keel_completion_add(queue, keel_points(NULL, 1), KEEL_ALL, NULL));
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "points[0]",
                 keel_completion_add(queue, KEEL_POINTS(nowhere), KEEL_ALL, NULL));
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "no submission",
                 keel_completion_add(queue, KEEL_POINTS(later), KEEL_ALL, NULL));
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "mode",
                 keel_completion_add(queue, KEEL_POINTS(point), (keel_wait_mode_t)5, NULL));
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "queue", keel_completion_next(NULL, 0, &user, &status));
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "user", keel_completion_next(queue, 0, NULL, &status));
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "status", keel_completion_next(queue, 0, &user, NULL));
    none(queue);
}

typedef struct taker_t {
    keel_completion_t *queue;
    _Atomic int taken;
} taker_t;

static void take_some(void *user)
{
    taker_t *taker = user;
    for (int i = 0; i < 50; i++) {
        next(taker->queue);
        atomic_fetch_add(&taker->taken, 1);
    }
}

// Threads that sleep until there is an end; each goes to one of them.
TEST(completion, wakes_takers)
{
    enum { THREADS = 3 };
    keel_semaphore_t *semaphore = new_semaphore(0);
    taker_t *taker = scratch(sizeof *taker);
    thread_t *threads[THREADS];
    taker->queue = new_completion();
    for (uint64_t i = 1; i <= THREADS * 50; i++) // one that finds no memory leaves no thread alone
        add(taker->queue, KEEL_POINTS(keel_point(semaphore, i)), KEEL_ALL, i);
    for (int i = 0; i < THREADS; i++) threads[i] = thread_start(take_some, taker);
    for (uint64_t i = 1; i <= THREADS * 50; i++) TRY(keel_semaphore_signal(semaphore, i));
    for (int i = 0; i < THREADS; i++) thread_join(threads[i]);
    CHECK_EQ(atomic_load(&taker->taken), THREADS * 50);
}

TEST(completion, next_times_out)
{
    keel_completion_t *queue = new_completion();
    void *user = NULL;
    keel_status_t status = NULL;
    uint64_t start = keel_now_ns();
    FAILS(KEEL_DEADLINE_EXCEEDED, keel_completion_next(queue, 2000000, &user, &status));
    CHECK_GE(keel_now_ns() - start, 2000000);
}

#ifdef __linux__
// As an event loop would: one epoll, one descriptor, many waits, each told of once.
TEST(completion, epoll)
{
    enum { N = 10 };
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    CHECK(epoll >= 0);
    own_descriptor(epoll);
    keel_completion_t *queue = new_completion();
    keel_semaphore_t *semaphore = new_semaphore(0);
    struct epoll_event event = {.events = EPOLLIN};
    CHECK(epoll_ctl(epoll, EPOLL_CTL_ADD, keel_completion_fd(queue), &event) == 0);
    for (uintptr_t i = 0; i < N; i++)
        add(queue, KEEL_POINTS(keel_point(semaphore, i + 1)), KEEL_ALL, i);
    for (uintptr_t i = 0; i < N; i++) {
        if (!faulted()) CHECK_EQ(epoll_wait(epoll, &event, 1, 0), 0);
        TRY(keel_semaphore_signal(semaphore, i + 1));
        CHECK_EQ(epoll_wait(epoll, &event, 1, SOON), 1);
        CHECK_EQ(next(queue), i);
    }
}
#endif

static void come_and_go(void *user)
{
    keel_semaphore_t *semaphore = user;
    for (size_t i = 0; i < few(400); i++) {
        keel_point_t point = keel_point(semaphore, 1 + random_below(200));
        keel_completion_t *queue = NULL;
        TRY(keel_completion_create(&queue));
        keel_status_t status = keel_completion_add(queue, KEEL_POINTS(point), KEEL_ALL, NULL);
        keel_completion_release(queue);
        TRY(status);
    }
}

TEST(completion, release_races_with_signals)
{
    keel_semaphore_t *semaphore = new_semaphore(0);
    thread_t *threads[2];
    for (int i = 0; i < 2; i++) threads[i] = thread_start(come_and_go, semaphore);
    for (uint64_t i = 1; i <= 200; i++) TRY(keel_semaphore_signal(semaphore, i));
    for (int i = 0; i < 2; i++) thread_join(threads[i]);
}

// What a call of keel_on finds.
typedef struct told_t {
    _Atomic int calls;
    _Atomic int code;
} told_t;

static void tell(void *user, keel_status_t status)
{
    told_t *told = user;
    atomic_store(&told->code, (int)keel_status_code(status));
    keel_status_release(status);
    atomic_fetch_add(&told->calls, 1);
}

static keel_on_t *on(keel_points_t points, keel_wait_mode_t mode, told_t *told)
{
    keel_on_t *handle = NULL;
    TRY(keel_on(points, mode, tell, told, &handle));
    CHECK(handle);
    return handle;
}

TEST(on, called_after_the_signal)
{
    told_t *told = scratch(sizeof *told);
    keel_point_t point = keel_point(new_semaphore(0), 1);
    TRY(keel_on(KEEL_POINTS(point), KEEL_ALL, tell, told, NULL));
    if (!faulted()) CHECK_EQ(atomic_load(&told->calls), 0);
    TRY(keel_semaphore_signal(point.semaphore, 1));
    come_to(&told->calls, 1);
    CHECK_EQ(atomic_load(&told->code), KEEL_OK);
}

TEST(on, called_after_work)
{
    told_t *told = scratch(sizeof *told);
    keel_semaphore_t *gate = new_semaphore(0);
    keel_point_t done = submit_after(KEEL_AFTER(keel_point(gate, 1)), keel_op_barrier());
    TRY(keel_on(KEEL_POINTS(done), KEEL_ALL, tell, told, NULL));
    TRY(keel_semaphore_signal(gate, 1));
    come_to(&told->calls, 1);
    CHECK_EQ(atomic_load(&told->code), KEEL_OK);
    CHECK(ended(done));
}

TEST(on, called_with_the_failure)
{
    told_t *told = scratch(sizeof *told);
    keel_point_t points[] = {keel_point(new_semaphore(0), 1), keel_point(new_semaphore(0), 1)};
    TRY(keel_on(keel_points(points, 2), KEEL_ALL, tell, told, NULL));
    TRY(keel_semaphore_fail(points[1].semaphore, KEEL_ERROR(KEEL_ABORTED, "broken")));
    come_to(&told->calls, 1);
    CHECK_EQ(atomic_load(&told->code), KEEL_ABORTED);
    TRY(keel_semaphore_signal(points[0].semaphore, 1));
    CHECK_EQ(atomic_load(&told->calls), 1);
}

TEST(on, called_for_what_is_past)
{
    told_t *told = scratch(sizeof *told);
    keel_point_t past = keel_point(new_semaphore(2), 1), point = keel_point(new_semaphore(0), 1);
    TRY(keel_on(KEEL_POINTS(past), KEEL_ALL, tell, told, NULL));
    come_to(&told->calls, 1);
    TRY(keel_on(KEEL_POINTS(point, past), KEEL_ANY, tell, told, NULL));
    come_to(&told->calls, 2);
    TRY(keel_on(KEEL_NO_WAITS, KEEL_ALL, tell, told, NULL));
    CHECK_EQ(atomic_load(&told->calls), 3); // before it returned
}

TEST(on, cancelled)
{
    told_t *told = scratch(sizeof *told);
    keel_point_t points[] = {keel_point(new_semaphore(0), 1), keel_point(new_semaphore(0), 1)};
    keel_on_t *handle = on(keel_points(points, 2), KEEL_ALL, told);
    TRY(keel_semaphore_signal(points[0].semaphore, 1));
    bool cancelled = keel_on_cancel(handle);
    if (!faulted()) CHECK(cancelled);
    TRY(keel_semaphore_signal(points[1].semaphore, 1));
    drop(the_device()); // all calls have been made then
    CHECK_EQ(atomic_load(&told->calls), cancelled ? 0 : 1);
    CHECK(!keel_on_cancel(NULL));
}

TEST(on, cancelled_too_late)
{
    told_t *told = scratch(sizeof *told);
    keel_point_t point = keel_point(new_semaphore(0), 1);
    keel_on_t *handle = on(KEEL_POINTS(point), KEEL_ALL, told);
    TRY(keel_semaphore_signal(point.semaphore, 1));
    come_to(&told->calls, 1);
    CHECK(!keel_on_cancel(handle));
}

// The device's close makes all calls, for what it fails and for what had ended.
TEST(on, called_when_the_device_closes)
{
    enum { N = 20 };
    told_t *told = scratch(2 * sizeof *told);
    keel_semaphore_t *semaphore = new_semaphore(0);
    for (uint64_t i = 1; i <= N; i++)
        TRY(keel_on(KEEL_POINTS(keel_point(semaphore, i)), KEEL_ALL, tell, &told[i > N / 2], NULL));
    TRY(keel_semaphore_signal(semaphore, N / 2));
    drop(the_device());
    CHECK_EQ(atomic_load(&told[0].calls), N / 2);
    CHECK_EQ(atomic_load(&told[1].calls), N / 2);
    if (!faulted()) CHECK_EQ(atomic_load(&told[1].code), KEEL_CANCELLED);
    TRY(keel_on(KEEL_POINTS(keel_point(semaphore, N)), KEEL_ALL, tell, &told[1], NULL));
    CHECK_EQ(atomic_load(&told[1].calls), N / 2 + 1); // a closed device has no thread
}

TEST(on, holds_nothing_when_called)
{
    told_t *told = scratch(sizeof *told);
    keel_semaphore_t *semaphore = new_semaphore(0);
    keel_live_t live;
    TRY(keel_on(KEEL_POINTS(keel_point(semaphore, 1)), KEEL_ALL, tell, told, NULL));
    keel_live_objects(&live);
    if (!faulted()) CHECK_EQ(live.completions, 1);
    TRY(keel_semaphore_signal(semaphore, 1));
    drop(semaphore);
    come_to(&told->calls, 1);
    keel_live_objects(&live);
    CHECK_EQ(live.completions, 0);
    CHECK_EQ(live.semaphores, 0);
}

// Each call waits for the next point, which may be past already: no stack grows.
typedef struct chain_t {
    keel_semaphore_t *semaphore;
    _Atomic int reached;
    uint64_t length;
    keel_code_t code;
} chain_t;

static void chain_on(void *user, keel_status_t status)
{
    chain_t *chain = user;
    uint64_t at = (uint64_t)atomic_load(&chain->reached) + 1;
    if (!status && at < chain->length)
        status = keel_on(KEEL_POINTS(keel_point(chain->semaphore, at + 1)), KEEL_ALL, chain_on,
                         chain, NULL);
    if (status) {
        chain->code = keel_status_code(status);
        at = chain->length; // it ends here
    }
    keel_status_release(status);
    atomic_store(&chain->reached, (int)at);
}

TEST(on, chain)
{
    chain_t *chain = scratch(sizeof *chain);
    chain->semaphore = new_semaphore(0);
    chain->length = few(100000);
    TRY(keel_on(KEEL_POINTS(keel_point(chain->semaphore, 1)), KEEL_ALL, chain_on, chain, NULL));
    TRY(keel_semaphore_signal(chain->semaphore, chain->length));
    come_to(&chain->reached, (int)chain->length);
    if (!faulted() && !starved()) CHECK_EQ(chain->code, KEEL_OK);
}

static void submit_on(void *user, keel_status_t status)
{
    keel_semaphore_t *out = user;
    keel_point_t signal = keel_point(out, 1);
    if (!status)
        status = keel_queue_submit(the_queue(), KEEL_NO_WAITS, NULL, 0, KEEL_SIGNAL(signal), NULL);
    if (status) TRY(keel_semaphore_fail(out, status));
}

TEST(on, uses_keel)
{
    keel_semaphore_t *in = new_semaphore(0), *out = new_semaphore(0);
    the_queue();
    TRY(keel_on(KEEL_POINTS(keel_point(in, 1)), KEEL_ALL, submit_on, out, NULL));
    TRY(keel_semaphore_signal(in, 1));
    reach_value(out, 1);
}

typedef struct closing_t {
    keel_device_t *device;
    gate_t *released;
} closing_t;

static void close_on(void *user, keel_status_t status)
{
    closing_t *closing = user;
    keel_status_release(status);
    keel_device_release(closing->device);
    gate_open(closing->released);
}

// The last reference to the device released in a call of its own thread.
TEST(on, closes_the_device)
{
    closing_t *closing = scratch(sizeof *closing);
    closing->released = new_gate();
    closing->device = open_device(the_uri());
    keel_point_t done;
    TRY(keel_queue_run(keel_device_queue(closing->device, 0), KEEL_NO_WAITS, keel_op_barrier(),
                       &done));
    OWN(keel_semaphore_retain(done.semaphore));
    TRY(keel_on(KEEL_POINTS(done), KEEL_ALL, close_on, closing, NULL));
    disown(closing->device);
    CHECK(gate_wait_ms(closing->released, (unsigned)SOON));
}

TEST(on, bad_arguments)
{
    told_t told = {0};
    keel_on_t *handle = NULL;
    keel_point_t nowhere = keel_point(NULL, 1), point = keel_point(new_semaphore(0), 1);
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "fn",
                 keel_on(KEEL_POINTS(point), KEEL_ALL, NULL, &told, &handle));
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "points[0]",
                 keel_on(KEEL_POINTS(nowhere), KEEL_ALL, tell, &told, &handle));
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "mode",
                 keel_on(KEEL_POINTS(point), (keel_wait_mode_t)5, tell, &told, &handle));
    CHECK(!handle);
    CHECK_EQ(atomic_load(&told.calls), 0);
}

typedef struct racer_t {
    keel_semaphore_t *semaphore;
    told_t told;
    _Atomic int cancelled, begun;
} racer_t;

static void cancel_in_a_loop(void *user)
{
    racer_t *racer = user;
    for (size_t i = 0; i < few(400); i++) {
        keel_point_t points[] = {keel_point(racer->semaphore, 1 + random_below(200)),
                                 keel_point(racer->semaphore, 1 + random_below(200))};
        keel_on_t *handle = NULL;
        keel_wait_mode_t mode = i % 2 ? KEEL_ANY : KEEL_ALL;
        TRY(keel_on(keel_points(points, 2), mode, tell, &racer->told, &handle));
        atomic_fetch_add(&racer->begun, 1);
        if (keel_on_cancel(handle)) atomic_fetch_add(&racer->cancelled, 1);
    }
}

// Each is either cancelled or called.
TEST(on, cancel_races_with_signals)
{
    racer_t *racer = scratch(sizeof *racer);
    racer->semaphore = new_semaphore(0);
    thread_t *threads[2];
    for (int i = 0; i < 2; i++) threads[i] = thread_start(cancel_in_a_loop, racer);
    for (uint64_t i = 1; i <= 200; i++) TRY(keel_semaphore_signal(racer->semaphore, i));
    for (int i = 0; i < 2; i++) thread_join(threads[i]);
    come_to(&racer->told.calls, atomic_load(&racer->begun) - atomic_load(&racer->cancelled));
}
