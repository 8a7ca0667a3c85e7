// SPDX-License-Identifier: Apache-2.0
// Much of everything at once, from many threads: no wake-up lost, no count wrong.
#include "suite/suite.h"

#define RUNS .needs = KEEL_CAP_EXECUTES

enum { THREADS = 4 };

static void run_threads(void (*fn)(void *user), void *user)
{
    thread_t *threads[THREADS];
    the_device();
    for (int i = 0; i < THREADS; i++) threads[i] = thread_start(fn, user);
    for (int i = 0; i < THREADS; i++) thread_join(threads[i]);
}

// Each thread signals its own semaphores and waits for those of the others, any or all.
typedef struct storm_t {
    keel_semaphore_t *semaphores[THREADS];
    atomic_uint next;
} storm_t;

static void signal_and_wait(void *user)
{
    storm_t *storm = user;
    unsigned self = atomic_fetch_add(&storm->next, 1);
    for (uint64_t i = 1; i <= few(4000); i++) {
        TRY(keel_semaphore_signal(storm->semaphores[self], i));
        keel_point_t points[THREADS];
        for (int t = 0; t < THREADS; t++) points[t] = keel_point(storm->semaphores[t], i);
        if (i % 8) {
            TRY(keel_wait(keel_points(points, THREADS), KEEL_ALL, patience()));
        } else {
            TRY(keel_wait(keel_points(points, THREADS), KEEL_ANY, 0));
        }
    }
}

TEST(stress, semaphores, .heavy = true)
{
    storm_t *storm = scratch(sizeof *storm);
    for (int i = 0; i < THREADS; i++) storm->semaphores[i] = new_semaphore(0);
    run_threads(signal_and_wait, storm);
}

static keel_buffer_t *shared_word;

// Chains of tallies on queues shared by all threads; each thread keeps several chains going.
static void submit_chains(void *user)
{
    keel_queue_t **queues = user;
    keel_point_t last[4];
    for (int c = 0; c < 4; c++) last[c] = keel_point(keel_queue_timeline(queues[c]), 0);
    keel_op_t op = op_kernel("tally", 1, NULL, 0, KEEL_BIND(shared_word));
    for (size_t i = 0; i < few(4000); i++) {
        size_t c = random_below(4), q = random_below(4), other = random_below(4);
        keel_points_t waits = i % 3 ? KEEL_AFTER(last[c]) : KEEL_AFTER(last[c], last[other]);
        TRY(keel_queue_run(queues[q], waits, op, &last[c]));
    }
    TRY(keel_wait(keel_points(last, 4), KEEL_ALL, patience()));
}

TEST(stress, queues, RUNS, .heavy = true)
{
    keel_queue_t **queues = scratch(4 * sizeof *queues); // threads may outlive a test that leaves
    for (int i = 0; i < 4; i++) queues[i] = new_queue(0);
    shared_word = new_buffer(4);
    kernels();
    run_threads(submit_chains, queues);
    TRY(keel_device_wait_idle(the_device(), patience()));
    CHECK_EQ(buffer_u32(shared_word, 0), THREADS * few(4000));
}

// Every thread waits for what another one submits, before it is submitted.
typedef struct ring_t {
    keel_semaphore_t *semaphore;
    atomic_uint next;
} ring_t;

// One thread that cannot go on must not leave the others waiting.
static void ring_try(ring_t *ring, keel_status_t status)
{
    if (status) TRY(keel_semaphore_fail(ring->semaphore, keel_status_retain(status)));
    TRY(status);
}

static void pass_on(void *user)
{
    ring_t *ring = user;
    unsigned self = atomic_fetch_add(&ring->next, 1);
    keel_queue_t *queue = NULL;
    ring_try(ring, keel_queue_create(the_device(), NULL, &queue));
    OWN(queue);
    for (uint64_t i = self; i < THREADS * few(2000); i += THREADS) {
        ring_try(ring, keel_queue_signal(queue, KEEL_AFTER(keel_point(ring->semaphore, i)),
                                         KEEL_SIGNAL(keel_point(ring->semaphore, i + 1)), NULL));
    }
    reach_value(ring->semaphore, THREADS * few(2000));
}

TEST(stress, ring_of_queues, .heavy = true)
{
    ring_t *ring = scratch(sizeof *ring);
    ring->semaphore = new_semaphore(0);
    run_threads(pass_on, ring);
}

static void open_work_close(void *user)
{
    for (size_t i = 0; i < few(96); i++) {
        keel_device_t *device = open_device(the_uri());
        keel_point_t done;
        TRY(keel_queue_signal(keel_device_queue(device, 0), KEEL_NO_WAITS, KEEL_NO_SIGNALS, &done));
        reach(done);
        drop(device);
    }
}

TEST(stress, devices, .heavy = true)
{
    run_threads(open_work_close, NULL);
}

static void allocate_and_free(void *user)
{
    keel_pool_t *pool = user;
    keel_queue_t *queue = NULL;
    TRY(keel_queue_create(the_device(), NULL, &queue));
    OWN(queue);
    for (size_t i = 0; i < few(2000); i++) {
        keel_buffer_options_t options = {.size = 1 + random_below(4096)};
        keel_buffer_t *x = NULL;
        keel_point_t ready, filled, freed;
        TRY(keel_buffer_reserve(pool, &options, &x));
        keel_status_t status = keel_queue_run(queue, KEEL_NO_WAITS, keel_op_alloca(x), &ready);
        if (!status) {
            status = keel_queue_fill(queue, KEEL_AFTER(ready), keel_whole(x), 1, 1, &filled);
        }
        if (!status) status = keel_queue_dealloca(queue, KEEL_AFTER(filled), x, &freed);
        keel_buffer_release(x);
        TRY(status);
        if (i % 8 == 7) reach(freed);
    }
    TRY(keel_queue_wait_idle(queue, patience()));
}

TEST(stress, pool, .needs = KEEL_CAP_QUEUE_ALLOCA, .heavy = true)
{
    // Room for all that may be in flight, so that nothing need fail.
    keel_pool_t *pool = new_pool(THREADS * 10 * 4096, 4096);
    run_threads(allocate_and_free, pool);
    TRY(keel_device_wait_idle(the_device(), patience()));
    keel_pool_stats_t stats;
    keel_pool_stats(pool, &stats);
    CHECK_EQ(stats.used, 0);
    CHECK_EQ(stats.waiting, 0);
}

// One-shot recordings made and submitted as fast as possible.
TEST(stress, one_shot_recordings, RUNS)
{
    keel_buffer_t *x = new_buffer(4);
    keel_point_t last = keel_point(keel_queue_timeline(the_queue()), 0);
    for (uint32_t i = 1; i <= 200; i++) {
        keel_recording_options_t options = {.one_shot = true};
        keel_recording_t *recording = NULL;
        TRY(keel_recording_create(the_device(), &options, &recording));
        OWN(recording);
        keel_op_t op = keel_op_fill(keel_whole(x), i, 4);
        TRY(keel_recording_add(recording, &op, 1));
        TRY(keel_recording_end(recording));
        last = submit_after(KEEL_AFTER(last), keel_op_execute(recording, KEEL_NO_BINDINGS));
        drop(recording);
    }
    reach(last);
    CHECK_EQ(buffer_u32(x, 0), 200);
}

// A long life: what a queue keeps does not grow with what it has done.
TEST(stress, long_life, .heavy = true, .seconds = 60)
{
    keel_live_t first, last;
    keel_point_t point = keel_point(keel_queue_timeline(the_queue()), 0);
    size_t count = few(400000);
    for (size_t i = 0; i < count; i++) {
        point = submit_after(KEEL_AFTER(point), keel_op_barrier());
        if (i % 64 == 63) reach(point);
        if (i == count / 10) keel_live_objects(&first);
    }
    reach(point);
    TRY(keel_device_wait_idle(the_device(), patience()));
    uint64_t start = keel_now_ns();
    do keel_live_objects(&last); // the thread that ended the last ones counts them a moment later
    while (last.submissions > first.submissions && keel_now_ns() - start < patience());
    CHECK_LE(last.submissions, first.submissions);
    CHECK_EQ(last.semaphores, first.semaphores);
    CHECK_EQ(last.statuses, first.statuses);
    CHECK_EQ(value_of(keel_queue_timeline(the_queue())), count);
}

static void wait_idle_often(void *user)
{
    for (size_t i = 0; i < few(1600); i++) {
        keel_point_t done;
        TRY(keel_queue_signal(the_queue(), KEEL_NO_WAITS, KEEL_NO_SIGNALS, &done));
        TRY(keel_device_wait_idle(the_device(), patience()));
        CHECK(ended(done));
    }
}

TEST(stress, wait_idle, .heavy = true)
{
    run_threads(wait_idle_often, NULL);
}

static void make_queues(void *user)
{
    for (size_t i = 0; i < few(400); i++) {
        keel_queue_options_t options = {.priority = 0};
        keel_queue_t *queue = NULL;
        keel_point_t done;
        TRY(keel_queue_create(the_device(), &options, &queue));
        keel_semaphore_t *timeline = keel_semaphore_retain(keel_queue_timeline(queue));
        keel_status_t status = keel_queue_signal(queue, KEEL_NO_WAITS, KEEL_NO_SIGNALS, &done);
        keel_queue_release(queue);
        if (!status) status = keel_wait(KEEL_POINTS(done), KEEL_ALL, patience());
        keel_semaphore_release(timeline);
        TRY(status);
    }
}

TEST(stress, queues_come_and_go, .heavy = true)
{
    run_threads(make_queues, NULL);
}

// Failures and successes racing for the same waiters.
static void fail_or_signal(void *user)
{
    for (size_t i = 0; i < few(1600); i++) {
        keel_semaphore_t *gate = NULL;
        keel_point_t done;
        TRY(keel_semaphore_create(the_device(), NULL, &gate));
        keel_status_t status =
            keel_queue_signal(the_queue(), KEEL_AFTER(keel_point(gate, 1)), KEEL_NO_SIGNALS, &done);
        bool fails = random_below(2);
        if (!status && !fails) status = keel_semaphore_signal(gate, 1);
        if (fails) TRY(keel_semaphore_fail(gate, KEEL_ERROR(KEEL_IO, "heads")));
        keel_semaphore_release(gate);
        TRY(status);
        if (fails) {
            reach_failure(done, KEEL_IO);
        } else {
            reach(done);
        }
    }
}

TEST(stress, failures, .heavy = true)
{
    run_threads(fail_or_signal, NULL);
}

// Dispatches of all sizes from several queues at once share the workers and lose nothing.
TEST(stress, dispatches_of_all_sizes, RUNS, .heavy = true)
{
    keel_buffer_t *word = new_buffer(4);
    keel_queue_t *queues[3];
    uint32_t expected = 0;
    int32_t least = the_caps()->min_priority, most = the_caps()->max_priority;
    for (int i = 0; i < 3; i++) queues[i] = new_queue(i == 0 ? least : i == 1 ? 0 : most);
    for (size_t i = 0; i < few(3000); i++) {
        uint32_t groups = 1 + (uint32_t)random_below(i % 50 == 0 ? 5000 : 40);
        keel_op_t op =
            keel_op_dispatch(kernel("tally"), keel_groups(groups, 1, 1), NULL, 0, KEEL_BIND(word));
        TRY(keel_queue_run(queues[i % 3], KEEL_NO_WAITS, op, NULL));
        expected += groups;
    }
    TRY(keel_device_wait_idle(the_device(), patience()));
    if (!starved()) CHECK_EQ(buffer_u32(word, 0), expected); // else one may have failed
}
