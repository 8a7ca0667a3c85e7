// SPDX-License-Identifier: Apache-2.0
// What cpu:// promises beyond every other device: its options, its workers, its order.
#include "suite/suite.h"

#include <dirent.h>
#include <pthread.h>
#include <time.h>

static keel_queue_t *queue_of(const char *uri)
{
    return keel_device_queue(open_device(uri), 0);
}

static void run_on(keel_queue_t *queue, keel_op_t op)
{
    keel_point_t done;
    TRY(keel_queue_run(queue, KEEL_NO_WAITS, op, &done));
    reach(done);
}

TEST(cpu, threads_option, .driver = "cpu")
{
    static const unsigned counts[] = {1, 2, 3, 16};
    for (size_t i = 0; i < COUNT(counts); i++) {
        char uri[40];
        snprintf(uri, sizeof uri, "cpu://?threads=%u", counts[i]);
        row("%s", uri);
        keel_device_t *device = open_device(uri);
        CHECK_EQ(keel_device_caps(device)->workers, counts[i]);
        drop(device);
    }
}

TEST(cpu, default_has_workers, .driver = "cpu")
{
    CHECK_GE(keel_device_caps(open_device("cpu://"))->workers, 1);
}

TEST(cpu, bad_options, .driver = "cpu")
{
    static const struct {
        const char *uri, *names;
    } rows[] = {
        {"cpu://?threads=0", "threads"},
        {"cpu://?threads=-1", "threads"},
        {"cpu://?threads=two", "threads"},
        {"cpu://?threads=", "threads"},
        {"cpu://?threads=2x", "threads"},
        {"cpu://?threads=4000000000", "threads"},
        {"cpu://?threads=99999999999999999999", "threads"},
        {"cpu://?nodes=0", "nodes"},
        {"cpu://?nodes=1000000", "nodes"},
        {"cpu://?nodes=x", "nodes"},
        {"cpu://?spin_us=-1", "spin_us"},
        {"cpu://?spin_us=soon", "spin_us"},
        {"cpu://?shuffle=", "shuffle"},
        {"cpu://?shuffle=dice", "shuffle"},
        {"cpu://?cpus=", "cpus"},
        {"cpu://?cpus=a", "cpus"},
        {"cpu://?cpus=3-1", "cpus"},
        {"cpu://?cpus=0-", "cpus"},
        {"cpu://?cpus=60000", "cpus"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        keel_device_t *device = NULL;
        row("%s", rows[i].uri);
        FAILS_SAYING(KEEL_INVALID_ARGUMENT, rows[i].names,
                     keel_device_open(rows[i].uri, NULL, &device));
        CHECK(device == NULL);
    }
}

TEST(cpu, unknown_path, .driver = "cpu")
{
    keel_device_t *device = NULL;
    FAILS_SAYING(KEEL_NOT_FOUND, "outline", keel_device_open("cpu://outline", NULL, &device));
    FAILS(KEEL_NOT_FOUND, keel_device_open("cpu://7", NULL, &device));
}

TEST(cpu, options_work, .driver = "cpu")
{
    static const char *const uris[] = {
        "cpu://?cpus=any",   "cpu://?cpus=0",           "cpu://?cpus=0&threads=3",
        "cpu://?spin_us=0",  "cpu://?spin_us=500",      "cpu://?threads=2&cpus=any&spin_us=10",
        "cpu://?shuffle=42", "cpu://inline?shuffle=42",
    };
    for (size_t i = 0; i < COUNT(uris); i++) {
        row("%s", uris[i]);
        keel_device_t *device = open_device(uris[i]);
        keel_buffer_t *word = new_buffer_on(device, 64);
        run_on(keel_device_queue(device, 0), keel_op_fill(keel_whole(word), 7, 1));
        check_filled(word, 0, 64, 7);
    }
}

static keel_status_t note_thread(void *user, keel_host_call_t *call)
{
    *(pthread_t *)user = pthread_self();
    return NULL;
}

TEST(cpu, inline_runs_on_the_submitting_thread, .driver = "cpu")
{
    keel_queue_t *queue = queue_of("cpu://inline");
    CHECK_EQ(keel_device_caps(keel_queue_info(queue)->device)->workers, 0);
    pthread_t thread = {0};
    keel_point_t done;
    TRY(keel_queue_run(queue, KEEL_NO_WAITS, keel_op_host_call(note_thread, &thread), &done));
    CHECK(ended(done));
    CHECK(pthread_equal(thread, pthread_self()));
}

TEST(cpu, inline_runs_on_the_thread_that_resolves_the_wait, .driver = "cpu")
{
    keel_queue_t *queue = queue_of("cpu://inline");
    keel_semaphore_t *gate = NULL;
    TRY(keel_semaphore_create(keel_queue_info(queue)->device, NULL, &gate));
    OWN(gate);
    pthread_t thread = {0};
    keel_point_t done;
    TRY(keel_queue_run(queue, KEEL_AFTER(keel_point(gate, 1)),
                       keel_op_host_call(note_thread, &thread), &done));
    CHECK(pending(done));
    TRY(keel_semaphore_signal(gate, 1));
    CHECK(ended(done));
    CHECK(pthread_equal(thread, pthread_self()));
}

// A chain of thousands that one signal sets off must not eat the stack.
TEST(cpu, inline_long_chain, .driver = "cpu", .heavy = true)
{
    keel_queue_t *queue = queue_of("cpu://inline");
    keel_semaphore_t *gate = NULL;
    TRY(keel_semaphore_create(keel_queue_info(queue)->device, NULL, &gate));
    OWN(gate);
    keel_point_t last = keel_point(gate, 1);
    for (size_t i = 0; i < few(100000); i++) {
        TRY(keel_queue_signal(queue, KEEL_AFTER(last), KEEL_NO_SIGNALS, &last));
    }
    TRY(keel_semaphore_signal(gate, 1));
    reach(last);
}

TEST(cpu, workers_run_on_other_threads, .driver = "cpu")
{
    pthread_t thread = pthread_self();
    run_on(queue_of("cpu://?threads=1"), keel_op_host_call(note_thread, &thread));
    CHECK(!pthread_equal(thread, pthread_self()));
}

TEST(cpu, worker_numbers, .driver = "cpu")
{
    keel_device_t *device = open_device("cpu://?threads=3");
    keel_buffer_t *out = new_buffer_on(device, 400 * 4);
    run_on(keel_device_queue(device, 0),
           keel_op_dispatch(kernel_on(device, "workers"), keel_groups(400, 1, 1), NULL, 0,
                            KEEL_BIND(out)));
    for (uint32_t i = 0; i < 400; i++) CHECK_LE(buffer_u32(out, i), 2);
}

// The groups of one dispatch run on all workers at the same time.
TEST(cpu, groups_run_in_parallel, .driver = "cpu")
{
    keel_device_t *device = open_device("cpu://?threads=4");
    keel_buffer_t *arrived = new_buffer_on(device, 4);
    buffer_put(arrived, 0, &(uint32_t){0}, 4);
    uint32_t four = 4;
    run_on(keel_device_queue(device, 0),
           keel_op_dispatch(kernel_on(device, "meet"), keel_groups(4, 1, 1), &four, 4,
                            KEEL_BIND(arrived)));
}

// Dispatches that no barrier separates overlap.
TEST(cpu, dispatches_overlap, .driver = "cpu")
{
    keel_device_t *device = open_device("cpu://?threads=2");
    keel_buffer_t *arrived = new_buffer_on(device, 4);
    buffer_put(arrived, 0, &(uint32_t){0}, 4);
    uint32_t two = 2;
    keel_op_t one = keel_op_dispatch(kernel_on(device, "meet"), keel_groups(1, 1, 1), &two, 4,
                                     KEEL_BIND(arrived));
    keel_op_t ops[] = {one, one};
    keel_point_t done;
    TRY(keel_queue_submit(keel_device_queue(device, 0), KEEL_NO_WAITS, ops, 2, KEEL_NO_SIGNALS,
                          &done));
    reach(done);
}

// Submissions of one queue, and of two, run at the same time.
TEST(cpu, submissions_overlap, .driver = "cpu")
{
    keel_device_t *device = open_device("cpu://?threads=2");
    keel_queue_t *queues[2] = {keel_device_queue(device, 0)};
    TRY(keel_queue_create(device, NULL, &queues[1]));
    OWN(queues[1]);
    for (int i = 0; i < 40; i++) { // many, for a worker that is about to sleep when one comes
        int second = i % 2;
        row("queues 0 and %d", second);
        keel_buffer_t *arrived = new_buffer_on(device, 4);
        buffer_put(arrived, 0, &(uint32_t){0}, 4);
        uint32_t two = 2;
        keel_op_t one = keel_op_dispatch(kernel_on(device, "meet"), keel_groups(1, 1, 1), &two, 4,
                                         KEEL_BIND(arrived));
        keel_point_t a, b;
        TRY(keel_queue_run(queues[0], KEEL_NO_WAITS, one, &a));
        TRY(keel_queue_run(queues[second], KEEL_NO_WAITS, one, &b));
        reach(a);
        reach(b);
    }
}

typedef struct order_t {
    atomic_uint next;
    unsigned rank[8];
} order_t;

typedef struct place_t {
    order_t *order;
    unsigned index;
} place_t;

static keel_status_t note_order(void *user, keel_host_call_t *call)
{
    place_t *place = user;
    place->order->rank[place->index] = 1 + atomic_fetch_add(&place->order->next, 1);
    return NULL;
}

// While the only worker is busy, work of several priorities piles up; it is then taken by priority.
TEST(cpu, priorities, .driver = "cpu")
{
    keel_device_t *device = open_device("cpu://?threads=1");
    const keel_caps_t *caps = keel_device_caps(device);
    CHECK(caps->min_priority < caps->max_priority);
    const int32_t priorities[] = {caps->min_priority, 0, caps->max_priority};
    hold_t *hold = new_hold();
    order_t *order = scratch(sizeof *order);
    keel_point_t held, done[3];
    TRY(keel_queue_run(keel_device_queue(device, 0), KEEL_NO_WAITS, op_hold(hold), &held));
    hold_entered(hold, held);
    for (unsigned i = 0; i < 3; i++) {
        keel_queue_options_t options = {.priority = priorities[i]};
        keel_queue_t *queue = NULL;
        place_t *place = scratch(sizeof *place);
        *place = (place_t){order, i};
        TRY(keel_queue_create(device, &options, &queue));
        OWN(queue);
        TRY(keel_queue_run(queue, KEEL_NO_WAITS, keel_op_host_call(note_order, place), &done[i]));
    }
    gate_open(hold->gate);
    for (unsigned i = 0; i < 3; i++) reach(done[i]);
    CHECK_EQ(order->rank[2], 1);
    CHECK_EQ(order->rank[1], priorities[1] == priorities[0] ? 3 : 2);
    CHECK_EQ(order->rank[0], 3);
}

// Work of low priority that takes long gives way: when the urgent has ended, some is still to do.
// Once with all workers on the long run, once with one of two.
TEST(cpu, urgent_work_interrupts, .driver = "cpu")
{
    for (int held = 0; held < 2; held++) {
        row("%d workers held", held);
        keel_device_t *device = open_device("cpu://?threads=2");
        keel_entry_t slow = kernel_on(device, "slow");
        keel_queue_options_t low = {.priority = keel_device_caps(device)->min_priority};
        keel_queue_t *queue = NULL;
        hold_t *hold = new_hold();
        keel_buffer_t *ran = new_buffer_on(device, 4), *urgent = new_buffer_on(device, 4);
        keel_buffer_t *seen = new_buffer_on(device, 4); // of `ran`, when the urgent had ended
        buffer_put(ran, 0, &(uint32_t){0}, 4);
        buffer_put(urgent, 0, &(uint32_t){0}, 4);
        TRY(keel_queue_create(device, &low, &queue));
        OWN(queue);
        keel_point_t kept, long_one, short_one;
        if (held) {
            TRY(keel_queue_run(keel_device_queue(device, 0), KEEL_NO_WAITS, op_hold(hold), &kept));
            hold_entered(hold, kept);
        }
        uint32_t us = 1000;
        TRY(keel_queue_run(queue, KEEL_NO_WAITS,
                           keel_op_dispatch(slow, keel_groups(1000, 1, 1), &us, 4, KEEL_BIND(ran)),
                           &long_one));
        while (!buffer_u32(ran, 0) && !ended(long_one)) sleep_ms(1); // it is under way
        keel_op_t ops[] = {keel_op_dispatch(slow, keel_groups(1, 1, 1), &us, 4, KEEL_BIND(urgent)),
                           keel_op_barrier(), keel_op_copy(keel_whole(ran), keel_whole(seen))};
        TRY(keel_queue_submit(keel_device_queue(device, 0), KEEL_NO_WAITS, ops, COUNT(ops),
                              KEEL_NO_SIGNALS, &short_one));
        reach(short_one);
        CHECK_LE(buffer_u32(seen, 0), 999);
        gate_open(hold->gate);
        reach(long_one);
        CHECK_EQ(buffer_u32(ran, 0), 1000);
    }
}

// Two queues of the same priority with much to do: neither waits for the end of the other. The
// worker is held until all of it is there, and when each submission ended is written down by the
// device, for this thread may be late.
TEST(cpu, queues_share_workers, .driver = "cpu")
{
    keel_device_t *device = open_device("cpu://?threads=1");
    keel_entry_t slow = kernel_on(device, "slow");
    keel_buffer_t *ran = new_buffer_on(device, 4), *ended_at[2];
    keel_point_t done[2][20], held;
    hold_t *hold = new_hold();
    uint32_t us = 2000;
    TRY(keel_queue_run(keel_device_queue(device, 0), KEEL_NO_WAITS, op_hold(hold), &held));
    hold_entered(hold, held);
    for (int q = 0; q < 2; q++) {
        ended_at[q] = new_buffer_on(device, 20 * 8);
        keel_queue_t *queue = NULL;
        TRY(keel_queue_create(device, NULL, &queue));
        OWN(queue);
        for (unsigned i = 0; i < 20; i++) {
            keel_op_t ops[] = {
                keel_op_dispatch(slow, keel_groups(1, 1, 1), &us, 4, KEEL_BIND(ran)),
                keel_op_barrier(),
                keel_op_timestamp(keel_span(ended_at[q], i * 8, 8)),
            };
            TRY(keel_queue_submit(queue, KEEL_NO_WAITS, ops, 3, KEEL_NO_SIGNALS, &done[q][i]));
        }
    }
    gate_open(hold->gate);
    uint64_t times[2][20];
    for (int q = 0; q < 2; q++) {
        for (int i = 0; i < 20; i++) reach(done[q][i]);
        buffer_get(ended_at[q], 0, times[q], sizeof times[q]);
    }
    CHECK(times[1][9] < times[0][19]);
    CHECK(times[0][9] < times[1][19]);
}

static uint64_t cpu_time_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

TEST(cpu, idle_workers_sleep, .driver = "cpu", .alone = true)
{
    keel_queue_t *queue = queue_of("cpu://?threads=4");
    keel_semaphore_t *gate = NULL;
    TRY(keel_semaphore_create(keel_queue_info(queue)->device, NULL, &gate));
    OWN(gate);
    keel_point_t done;
    run_on(queue, keel_op_barrier());
    TRY(keel_queue_signal(queue, KEEL_AFTER(keel_point(gate, 1)), KEEL_NO_SIGNALS, &done));
    sleep_ms(100);
    uint64_t before = cpu_time_ns();
    sleep_ms(300);
    CHECK_LE(cpu_time_ns() - before, 60000000);
    TRY(keel_semaphore_signal(gate, 1));
    reach(done);
}

static int thread_count(void)
{
    DIR *folder = opendir("/proc/self/task");
    if (!folder) return -1;
    int count = 0;
    while (readdir(folder)) count++;
    closedir(folder);
    return count - 2;
}

TEST(cpu, no_thread_per_operation, .driver = "cpu")
{
    keel_queue_t *queue = the_queue();
    keel_semaphore_t *gate = new_semaphore(0);
    reach(submit(keel_op_barrier()));
    int before = thread_count();
    keel_point_t last;
    for (size_t i = 0; i < few(2000); i++) {
        TRY(keel_queue_signal(queue, KEEL_AFTER(keel_point(gate, 1)), KEEL_NO_SIGNALS, &last));
    }
    CHECK_LE(thread_count(), before); // one that was joined may have been counted before
    TRY(keel_semaphore_signal(gate, 1));
    TRY(keel_queue_wait_idle(queue, patience()));
    CHECK_LE(thread_count(), before);
}

// The same seed gives the same order: with one worker, what is not ordered runs as the seed says.
static void run_shuffled(unsigned seed, unsigned *ranks)
{
    char uri[60];
    snprintf(uri, sizeof uri, "cpu://?threads=1&shuffle=%u", seed);
    keel_device_t *device = open_device(uri);
    keel_queue_t *queue = keel_device_queue(device, 0);
    order_t *order = scratch(sizeof *order);
    hold_t *hold = new_hold();
    keel_point_t held;
    TRY(keel_queue_run(queue, KEEL_NO_WAITS, op_hold(hold), &held));
    hold_entered(hold, held);
    for (unsigned i = 0; i < 8; i++) {
        place_t *place = scratch(sizeof *place);
        *place = (place_t){order, i};
        TRY(keel_queue_run(queue, KEEL_NO_WAITS, keel_op_host_call(note_order, place), NULL));
    }
    gate_open(hold->gate);
    TRY(keel_device_wait_idle(device, patience()));
    memcpy(ranks, order->rank, sizeof order->rank);
}

TEST(cpu, shuffle_changes_the_order, .driver = "cpu")
{
    unsigned first[8], other[8];
    bool differs = false;
    run_shuffled(1, first);
    for (unsigned seed = 2; seed < 8 && !differs; seed++) {
        run_shuffled(seed, other);
        differs = memcmp(first, other, sizeof first) != 0;
    }
    CHECK(differs);
}

typedef struct endless_t {
    keel_device_t *device;
    keel_queue_t *queue;
    atomic_int *begun;
    keel_ref_t word;
    uint32_t constants[2];
    keel_op_t op;
    thread_t *thread; // that submits it
} endless_t;

// A dispatch of 2^40 workgroups, each of which sets the word, on a device of its own.
static endless_t *new_endless(const char *uri)
{
    endless_t *self = scratch(sizeof *self);
    keel_buffer_t *buffer = NULL;
    row("%s", uri);
    self->device = open_device(uri);
    self->begun = scratch(sizeof *self->begun);
    keel_external_buffer_t external = {
        .kind = KEEL_EXTERNAL_HOST, .handle.host = self->begun, .size = 4};
    TRY(keel_buffer_import(self->device, &external, NULL, &buffer));
    OWN(buffer);
    self->queue = keel_queue_retain(keel_device_queue(self->device, 0));
    OWN(self->queue);
    self->word = keel_whole(buffer);
    self->constants[1] = 1;
    self->op = keel_op_dispatch(kernel_on(self->device, "poke"), keel_groups(1 << 20, 1 << 20, 1),
                                self->constants, sizeof self->constants, keel_refs(&self->word, 1));
    return self;
}

static void submit_endless(void *user)
{
    const endless_t *self = user;
    TRY(keel_queue_run(self->queue, KEEL_NO_WAITS, self->op, NULL));
}

// Returns when it runs. An inline device runs it in the call that submits it.
static void endless_begin(endless_t *self)
{
    self->thread = thread_start(submit_endless, self);
    come_to(self->begun, 1);
}

static keel_point_t endless_point(const endless_t *self)
{
    return keel_point(keel_queue_timeline(self->queue), 1);
}

// What runs ends at the next workgroup, on every worker.
TEST(cpu, close_ends_a_dispatch, .driver = "cpu")
{
    static const char *const uris[] = {"cpu://?threads=1", "cpu://?threads=4", "cpu://?shuffle=3",
                                       "cpu://inline"};
    for (size_t i = 0; i < COUNT(uris); i++) {
        endless_t *work = new_endless(uris[i]);
        endless_begin(work);
        drop(work->device);
        thread_join(work->thread);
        reach_failure_saying(endless_point(work), KEEL_CANCELLED, "was closed");
    }
}

// So does a submission that goes on and on by itself.
TEST(cpu, close_ends_a_loop, .driver = "cpu")
{
    static const char *const uris[] = {"cpu://?threads=1", "cpu://?threads=4", "cpu://inline"};
    for (size_t i = 0; i < COUNT(uris); i++) {
        endless_t *work = new_endless(uris[i]);
        keel_recording_t *recording = NULL;
        keel_op_t set = work->op; // writes the word whole: this thread looks meanwhile
        set.as.dispatch.groups = keel_groups(1, 1, 1);
        keel_op_t ops[] = {set, keel_op_while(work->word), set, keel_op_end()};
        TRY(keel_recording_create(work->device, NULL, &recording));
        OWN(recording);
        TRY(keel_recording_add(recording, ops, COUNT(ops)));
        TRY(keel_recording_end(recording));
        work->op = keel_op_execute(recording, KEEL_NO_BINDINGS);
        endless_begin(work);
        drop(work->device);
        thread_join(work->thread);
        reach_failure(endless_point(work), KEEL_CANCELLED);
    }
}

// And what is cancelled, on a device that stays open.
TEST(cpu, cancel_ends_a_dispatch, .driver = "cpu")
{
    static const char *const uris[] = {"cpu://?threads=1", "cpu://?threads=4", "cpu://inline"};
    for (size_t i = 0; i < COUNT(uris); i++) {
        endless_t *work = new_endless(uris[i]);
        keel_point_t done = endless_point(work), next;
        keel_cancel_t was;
        endless_begin(work);
        TRY(keel_queue_cancel(done, &was));
        thread_join(work->thread);
        CHECK_EQ(was, KEEL_CANCEL_RUNNING);
        reach_failure_saying(done, KEEL_CANCELLED, "was cancelled");
        TRY(keel_queue_run(work->queue, KEEL_NO_WAITS, keel_op_barrier(), &next));
        reach(next);
    }
}
