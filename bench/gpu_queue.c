// SPDX-License-Identifier: Apache-2.0
// Single dispatches and points on a GPU: what they cost the host, how fast one follows another, and
// when a waiter learns of the end.
#include "gpu.h"
#include "kernels/region.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

// What the call costs. The work is waited for afterwards, outside.
static keel_status_t enqueue_round(void *state, tally_t *tally)
{
    gpu_t *self = state;
    for (uint32_t s = 0; s < self->job.samples; s++) {
        keel_point_t done, signal = keel_point(self->semaphore, ++self->value);
        uint64_t start = keel_now_ns();
        KEEL_TRY(keel_queue_submit(self->queues[0], KEEL_NO_WAITS, &self->op, 1,
                                   KEEL_SIGNAL(signal), &done));
        tally_add(tally, (double)(keel_now_ns() - start));
        KEEL_TRY(gpu_spin(done));
    }
    return NULL;
}

static keel_status_t bare_enqueue_round(void *state, tally_t *tally)
{
    bare_t *self = state;
    for (uint32_t s = 0; s < self->job.samples; s++) {
        uint64_t start = keel_now_ns();
        KEEL_TRY(raw_launch(self->raw, 0));
        KEEL_TRY(raw_record(self->raw, 0, 0));
        tally_add(tally, (double)(keel_now_ns() - start));
        KEEL_TRY(raw_spin(self->raw, 0));
    }
    return NULL;
}

// `repeat` dispatches, or barriers if there is no kernel, each after the one before it on the other
// queue.
static keel_status_t hops_round(void *state, tally_t *tally)
{
    gpu_t *self = state;
    keel_op_t op = self->job.kernel ? self->op : keel_op_barrier();
    for (uint32_t s = 0; s < self->job.samples; s++) {
        keel_point_t last;
        uint64_t start = keel_now_ns();
        KEEL_TRY(keel_queue_run(self->queues[0], KEEL_NO_WAITS, op, &last));
        for (uint32_t i = 1; i < self->job.repeat; i++)
            KEEL_TRY(keel_queue_run(self->queues[i % 2], KEEL_AFTER(last), op, &last));
        KEEL_TRY(gpu_spin(last));
        tally_add(tally, (double)(keel_now_ns() - start) / self->job.repeat);
    }
    return NULL;
}

static keel_status_t bare_hops_round(void *state, tally_t *tally)
{
    bare_t *self = state;
    for (uint32_t s = 0; s < self->job.samples; s++) {
        uint64_t start = keel_now_ns();
        for (uint32_t i = 0; i < self->job.repeat; i++) {
            int here = (int)(i % 2);
            if (i) KEEL_TRY(raw_wait(self->raw, here, !here));
            if (self->job.kernel) KEEL_TRY(raw_launch(self->raw, here));
            KEEL_TRY(raw_record(self->raw, here, here));
        }
        KEEL_TRY(raw_spin(self->raw, (int)((self->job.repeat - 1) % 2)));
        tally_add(tally, (double)(keel_now_ns() - start) / self->job.repeat);
    }
    return NULL;
}

// `repeat` launches on one stream, which orders them.
static keel_status_t bare_chain_round(void *state, tally_t *tally)
{
    bare_t *self = state;
    for (uint32_t s = 0; s < self->job.samples; s++) {
        uint64_t start = keel_now_ns();
        for (uint32_t i = 0; i < self->job.repeat; i++) KEEL_TRY(raw_launch(self->raw, 0));
        KEEL_TRY(raw_record(self->raw, 0, 0));
        KEEL_TRY(raw_spin(self->raw, 0));
        tally_add(tally, (double)(keel_now_ns() - start) / self->job.repeat);
    }
    return NULL;
}

static keel_status_t spin_round(void *state, tally_t *tally)
{
    gpu_t *self = state;
    for (uint32_t s = 0; s < self->job.samples; s++) {
        keel_point_t done;
        uint64_t start = keel_now_ns();
        KEEL_TRY(keel_queue_run(self->queues[0], KEEL_NO_WAITS, self->op, &done));
        KEEL_TRY(gpu_spin(done));
        tally_add(tally, (double)(keel_now_ns() - start));
    }
    return NULL;
}

static keel_status_t bare_spin_round(void *state, tally_t *tally)
{
    bare_t *self = state;
    for (uint32_t s = 0; s < self->job.samples; s++) {
        uint64_t start = keel_now_ns();
        KEEL_TRY(raw_launch(self->raw, 0));
        KEEL_TRY(raw_record(self->raw, 0, 0));
        KEEL_TRY(raw_spin(self->raw, 0));
        tally_add(tally, (double)(keel_now_ns() - start));
    }
    return NULL;
}

// A dispatch that waits for the host: from the host's signal to its end.
static keel_status_t deferred_round(void *state, tally_t *tally)
{
    gpu_t *self = state;
    for (uint32_t s = 0; s < self->job.samples; s++) {
        keel_point_t done, gate = keel_point(self->semaphore, ++self->value);
        KEEL_TRY(keel_queue_run(self->queues[0], KEEL_AFTER(gate), self->op, &done));
        uint64_t start = keel_now_ns();
        KEEL_TRY(keel_semaphore_signal(gate.semaphore, gate.value));
        KEEL_TRY(gpu_spin(done));
        tally_add(tally, (double)(keel_now_ns() - start));
    }
    return NULL;
}

static double cpu_ms(void)
{
    struct timespec used;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return (double)used.tv_sec * 1e3 + (double)used.tv_nsec / 1e6;
}

// What the process's processors do while it waits for 100 ms of work.
static keel_status_t idle_measure(gpu_t *self, double *ms)
{
    keel_entry_t entry;
    keel_buffer_t *out;
    keel_buffer_options_t options = {.size = 64};
    work_constants_t work = {.steps = 1 << 16};
    KEEL_TRY(keel_executable_entry(self->rig.executable, "work", &entry));
    KEEL_TRY(keel_buffer_create(self->rig.device, &options, &out));
    uint64_t took = 0;
    keel_status_t status = NULL;
    double before = 0;
    while (!status && took < 80000000) { // at most ten times: the next one takes about 100 ms
        if (took)
            work.steps = (uint32_t)(work.steps * (took > 10000000 ? 1e8 / (double)took : 8.0));
        keel_point_t done;
        uint64_t start = keel_now_ns();
        status = keel_queue_run(
            self->queues[0], KEEL_NO_WAITS,
            keel_op_dispatch(entry, keel_groups(1, 1, 1), &work, sizeof work, KEEL_BIND(out)),
            &done);
        before = cpu_ms();
        if (!status) status = rig_wait(done);
        took = keel_now_ns() - start;
    }
    *ms = cpu_ms() - before;
    keel_buffer_release(out);
    return status;
}

// Work that takes longer than a waiter polls. What is told is the time beside it.
enum { NAP_NS = 200000 };

typedef struct nap_t {
    gpu_t gpu; // first
    keel_executable_t *image;
} nap_t;

static keel_status_t nap_begin(const setting_t *setting, void **state)
{
    static const uint64_t block[RAW_BLOCK / 8] = {NAP_NS};
    nap_t *self = calloc(1, sizeof *self);
    keel_entry_t entry;
    if (!self) return KEEL_ERROR(KEEL_OUT_OF_MEMORY, "no memory");
    *state = self;
    KEEL_TRY(gpu_open(&self->gpu, setting));
    keel_executable_options_t image = raw_image(self->gpu.rig.device);
    KEEL_TRY(keel_executable_load(self->gpu.rig.device, &image, &self->image));
    KEEL_TRY(keel_executable_entry(self->image, "raw_nap", &entry));
    self->gpu.op =
        keel_op_dispatch(entry, keel_groups(1, 1, 1), block, sizeof block, KEEL_NO_BINDINGS);
    self->gpu.op.as.dispatch.raw = true;
    self->gpu.op.as.dispatch.group_size = keel_groups(1, 1, 1);
    return NULL;
}

static void nap_end(void *state)
{
    nap_t *self = state;
    keel_executable_release(self->image);
    gpu_end(state);
}

static keel_status_t sleep_round(void *state, tally_t *tally)
{
    gpu_t *self = state;
    for (uint32_t s = 0; s < self->job.samples; s++) {
        keel_point_t done;
        uint64_t start = keel_now_ns();
        KEEL_TRY(keel_queue_run(self->queues[0], KEEL_NO_WAITS, self->op, &done));
        KEEL_TRY(rig_wait(done));
        tally_add(tally, (double)(keel_now_ns() - start) - NAP_NS);
    }
    KEEL_TRY(idle_measure(self, &tally->values[0]));
    tally_note(tally, "%.2f ms of processor time in a wait of 100 ms", tally->values[0]);
    return NULL;
}

// A thread that blocks in the vendor's call and wakes the waiter: what any library must do that
// lets many wait for one event.
typedef struct watcher_t {
    bare_t bare; // first: bare_end frees it
    pthread_t thread;
    sem_t asked, told;
    bool started, stop;
    keel_status_t status;
} watcher_t;

static void *watcher_main(void *argument)
{
    watcher_t *self = argument;
    for (;;) {
        while (sem_wait(&self->asked) != 0) {
        }
        if (self->stop) return NULL;
        self->status = raw_sleep(self->bare.raw, RAW_BELL);
        sem_post(&self->told);
    }
}

static void watcher_end(void *state)
{
    watcher_t *self = state;
    if (self->started) {
        self->stop = true;
        sem_post(&self->asked);
        pthread_join(self->thread, NULL);
    }
    bare_end(state);
}

static keel_status_t watcher_begin(const setting_t *setting, void **state)
{
    watcher_t *self = calloc(1, sizeof *self);
    if (!self) return KEEL_ERROR(KEEL_OUT_OF_MEMORY, "no memory");
    *state = self;
    self->bare.job = setting->job;
    KEEL_TRY(raw_open(setting, &self->bare.raw));
    sem_init(&self->asked, 0, 0);
    sem_init(&self->told, 0, 0);
    self->started = pthread_create(&self->thread, NULL, watcher_main, self) == 0;
    return self->started ? NULL : KEEL_ERROR(KEEL_RESOURCE_EXHAUSTED, "no thread");
}

static keel_status_t watcher_round(void *state, tally_t *tally)
{
    watcher_t *self = state;
    for (uint32_t s = 0; s < self->bare.job.samples; s++) {
        uint64_t start = keel_now_ns();
        KEEL_TRY(raw_nap(self->bare.raw, 0, NAP_NS));
        KEEL_TRY(raw_record(self->bare.raw, RAW_BELL, 0));
        sem_post(&self->asked);
        while (sem_wait(&self->told) != 0) {
        }
        tally_add(tally, (double)(keel_now_ns() - start) - NAP_NS);
        KEEL_TRY(self->status);
    }
    return NULL;
}

static keel_status_t bare_pair_begin(const setting_t *setting, void **state)
{
    KEEL_TRY(bare_begin(setting, state));
    return raw_pairs(((bare_t *)*state)->raw);
}

static keel_status_t bare_pair_round(void *state, tally_t *tally)
{
    bare_t *self = state;
    for (uint32_t s = 0; s < self->job.samples; s++) {
        uint64_t start = keel_now_ns();
        for (uint32_t i = 0; i < self->job.repeat; i++)
            KEEL_TRY(raw_pair(self->raw, self->job.size));
        KEEL_TRY(raw_record(self->raw, 0, 0));
        KEEL_TRY(raw_spin(self->raw, 0));
        tally_add(tally, (double)(keel_now_ns() - start) / self->job.repeat);
    }
    return NULL;
}

static const side_t keel_enqueue = {"keel", gpu_begin, enqueue_round, gpu_end};
static const side_t bare_enqueue = {"raw", bare_begin, bare_enqueue_round, bare_end};
static const side_t keel_hops = {"keel", gpu_begin, hops_round, gpu_end};
static const side_t bare_hops = {"raw", bare_begin, bare_hops_round, bare_end};
static const side_t bare_chain = {"raw", bare_begin, bare_chain_round, bare_end};
static const side_t keel_spin = {"keel", gpu_begin, spin_round, gpu_end};
static const side_t bare_spin = {"raw", bare_begin, bare_spin_round, bare_end};
static const side_t keel_deferred = {"keel", gpu_begin, deferred_round, gpu_end};
static const side_t keel_sleep = {"keel", nap_begin, sleep_round, nap_end};
static const side_t bare_watcher = {"raw", watcher_begin, watcher_round, watcher_end};
static const side_t bare_pair = {"raw", bare_pair_begin, bare_pair_round, bare_end};

const row_t gpu_queue_rows[] = {
    {.name = "gpu.enqueue",
     .what = "one dispatch with a signal, the call alone; raw: launch + event record",
     .job = {.kernel = "empty", .samples = 200},
     .sides = {&keel_enqueue, &bare_enqueue},
     .bars = {ADDED_NS(500, 1)},
     .gpu = true},
    {.name = "gpu.chain",
     .what = "1000 dispatches chained on one queue by points, each; raw: launches on one stream",
     .job = {.kernel = "empty", .groups = 1, .repeat = 1000, .samples = 4},
     .sides = {&keel_chain, &bare_chain},
     .bars = {AT_MOST(1.15, 1)},
     .gpu = true},
    {.name = "gpu.chain.two",
     .what = "the same over two queues in turn; raw: launch + event record + wait",
     .job = {.kernel = "empty", .repeat = 1000, .samples = 4},
     .sides = {&keel_hops, &bare_hops},
     .bars = {AT_MOST(1.15, 1)},
     .gpu = true},
    {.name = "gpu.pingpong",
     .what = "two queues, nothing but points between them, per hop; raw: event record + wait",
     .job = {.repeat = 1000, .samples = 4},
     .sides = {&keel_hops, &bare_hops},
     .bars = {AT_MOST(1.15, 1)},
     .gpu = true},
    {.name = "gpu.wake.spin",
     .what = "one dispatch -> waiter that polls; raw: launch + event + query",
     .job = {.kernel = "empty", .samples = 200},
     .sides = {&keel_spin, &bare_spin},
     .bars = {AT_MOST(1.15, 1)},
     .gpu = true},
    {.name = "gpu.wake.sleep",
     .what = "one dispatch of 200 us -> waiter that sleeps, without the 200; raw: blocking "
             "synchronise on a thread + its wake",
     .job = {.kernel = "empty", .samples = 100},
     .sides = {&keel_sleep, &bare_watcher},
     .bars = {AT_MOST(1.3, 1), VALUE_WITHIN(1, 0, "ms of processor in a wait of 100 ms")},
     .gpu = true},
    {.name = "gpu.deferred",
     .what = "signal by the host -> end of the dispatch that waits for it; raw: launch -> end",
     .job = {.kernel = "empty", .samples = 200},
     .sides = {&keel_deferred, &bare_spin},
     .bars = {ADDED_NS(5000, 1)},
     .gpu = true},
    {.name = "gpu.alloca",
     .what = "alloca + dealloca of 1 MB, 200 pairs, each; raw: stream-ordered alloc + free",
     .job = {.size = 1 << 20, .repeat = 200, .samples = 10},
     .sides = {&keel_pair, &bare_pair},
     .bars = {ADDED_NS(500, 1)},
     .gpu = true},
    {.name = "gpu.million",
     .what = "1,000,000 submissions, in chains of 1000, each",
     .job = {.kernel = "empty", .repeat = 1000, .samples = 1000},
     .sides = {&keel_endure},
     .bars = {VALUE_WITHIN(1, 0, "MiB more after the first 10,000"),
              VALUE_WITHIN(1.05, 1, "second / first half")},
     .rounds = 1,
     .gpu = true},
    {0},
};
