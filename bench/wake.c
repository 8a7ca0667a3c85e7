// SPDX-License-Identifier: Apache-2.0
// From a submission, or a signal of the host, to the thread that waits for it.
//
// self     One thread submits and waits. A sample is the time from before the submission to after
//          the wait.
// other    Two threads: the first submits and then waits for the second, which is blocked in
//          keel_wait until the submission signals, submits in turn, and blocks again. A sample is
//          half the round trip as the first thread sees it: from before a submission to where the
//          other thread is out of its wait.
// signal   One way, with keel_semaphore_signal: the second thread is blocked; a sample is the time
//          from before the signal, on the first, to after the wait, on the second.
//
// An empty submission wakes one thread, its waiter: its floor is half a round trip of a futex
// ping-pong. A dispatch wakes two, a worker and the waiter: its floor is the whole round trip.
#include "rig.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

typedef struct wake_t {
    setting_t setting;
    rig_t rig;
    keel_op_t op;
    size_t op_count; // 0: nothing but the signal
    keel_semaphore_t *there, *back;
    uint64_t value; // both semaphores' at the beginning of a round
    tally_t *tally;
    keel_status_t second_status;
    _Alignas(64) _Atomic uint32_t ready; // signal: how often the second thread has gone to wait
    _Alignas(64) _Atomic uint64_t start; // signal: when the signal was begun
} wake_t;

static void wake_end(void *state)
{
    wake_t *self = state;
    keel_semaphore_release(self->there);
    keel_semaphore_release(self->back);
    rig_close(&self->rig);
    free(self);
}

static keel_status_t wake_begin(const setting_t *setting, void **state)
{
    wake_t *self = aligned_alloc(64, sizeof *self);
    if (!self) return KEEL_ERROR(KEEL_OUT_OF_MEMORY, "no memory");
    *self = (wake_t){.setting = *setting};
    *state = self;
    KEEL_TRY(rig_open(&self->rig, setting));
    KEEL_TRY(keel_semaphore_create(self->rig.device, NULL, &self->there));
    KEEL_TRY(keel_semaphore_create(self->rig.device, NULL, &self->back));
    if (setting->job.groups) {
        self->op = keel_op_dispatch(self->rig.entry, keel_groups(setting->job.groups, 1, 1), NULL,
                                    0, KEEL_NO_BINDINGS);
        self->op_count = 1;
    }
    return NULL;
}

// Runs `second` on a thread of its own while `first` runs here, each in its place.
static keel_status_t threads_run(wake_t *self, void *(*second)(void *),
                                 keel_status_t (*first)(wake_t *, tally_t *), tally_t *tally)
{
    pthread_t thread;
    self->tally = tally;
    self->second_status = NULL;
    self->ready = 0;
    if (pthread_create(&thread, NULL, second, self))
        return KEEL_ERROR(KEEL_RESOURCE_EXHAUSTED, "no thread");
    place_first(self->setting.job.place);
    keel_status_t status = first(self, tally);
    // The second thread waits for signals that will not come if the first has failed.
    if (status) keel_semaphore_fail(self->there, keel_status_retain(status));
    pthread_join(thread, NULL);
    place_pin(-1);
    self->value += self->setting.job.samples;
    if (!status) return self->second_status;
    keel_status_release(self->second_status);
    return status;
}

static keel_status_t submit_signal(wake_t *self, keel_semaphore_t *semaphore, uint64_t value)
{
    return keel_queue_submit(self->rig.queue, KEEL_NO_WAITS, &self->op, self->op_count,
                             KEEL_SIGNAL(keel_point(semaphore, value)), NULL);
}

static keel_status_t self_first(wake_t *self, tally_t *tally)
{
    for (uint32_t i = 0; i < self->setting.job.samples; i++) {
        keel_point_t done;
        uint64_t start = keel_now_ns();
        KEEL_TRY(keel_queue_submit(self->rig.queue, KEEL_NO_WAITS, &self->op, self->op_count,
                                   KEEL_NO_SIGNALS, &done));
        KEEL_TRY(rig_wait(done));
        tally_add(tally, (double)(keel_now_ns() - start));
    }
    return NULL;
}

static keel_status_t self_round(void *state, tally_t *tally)
{
    wake_t *self = state;
    place_first(self->setting.job.place);
    keel_status_t status = self_first(self, tally);
    place_pin(-1);
    return status;
}

static keel_status_t other_first(wake_t *self, tally_t *tally)
{
    for (uint64_t i = 1; i <= self->setting.job.samples; i++) {
        uint64_t value = self->value + i, start = keel_now_ns();
        KEEL_TRY(submit_signal(self, self->there, value));
        KEEL_TRY(rig_wait(keel_point(self->back, value)));
        tally_add(tally, (double)(keel_now_ns() - start) / 2);
    }
    return NULL;
}

static void *other_second(void *user)
{
    wake_t *self = user;
    place_second(self->setting.job.place);
    for (uint64_t i = 1; i <= self->setting.job.samples && !self->second_status; i++) {
        uint64_t value = self->value + i;
        self->second_status = rig_wait(keel_point(self->there, value));
        if (!self->second_status) self->second_status = submit_signal(self, self->back, value);
    }
    return NULL;
}

static keel_status_t other_round(void *state, tally_t *tally)
{
    return threads_run(state, other_second, other_first, tally);
}

static keel_status_t signal_first(wake_t *self, tally_t *tally)
{
    for (uint32_t i = 1; i <= self->setting.job.samples; i++) {
        place_until(&self->ready, i, self->setting.job.place);
        self->start = keel_now_ns();
        KEEL_TRY(keel_semaphore_signal(self->there, self->value + i));
    }
    return NULL;
}

static void *signal_second(void *user)
{
    wake_t *self = user;
    place_second(self->setting.job.place);
    for (uint32_t i = 1; i <= self->setting.job.samples; i++) {
        atomic_store_explicit(&self->ready, i, memory_order_release);
        self->second_status = rig_wait(keel_point(self->there, self->value + i));
        if (self->second_status) break;
        tally_add(self->tally, (double)(keel_now_ns() - self->start));
    }
    return NULL;
}

static keel_status_t signal_round(void *state, tally_t *tally)
{
    return threads_run(state, signal_second, signal_first, tally);
}

static const side_t keel_self = {"keel", wake_begin, self_round, wake_end};
static const side_t keel_other = {"keel", wake_begin, other_round, wake_end};
static const side_t keel_signal = {"keel", wake_begin, signal_round, wake_end};

const row_t wake_rows[] = {
    {.name = "wake.empty.self",
     .what = "empty submission and wait, one thread; futex: half a ping-pong on two processors",
     .job = {.samples = 5000, .place = PLACE_APART, .legs = 2},
     .sides = {&keel_self, &peer_pingpong},
     .bars = {AT_MOST(1.15, 1)},
     .iree = {8500}},
    {.name = "wake.empty.other",
     .what = "empty submission -> thread blocked on another processor; futex: half a ping-pong",
     .job = {.samples = 5000, .place = PLACE_APART, .legs = 2},
     .sides = {&keel_other, &peer_pingpong},
     .bars = {AT_MOST(1.15, 1), P99_WITHIN(2, 1)}},
    {.name = "wake.dispatch.self",
     .what = "one dispatch on another processor and wait, one thread; futex: a whole ping-pong",
     .job = {.kernel = "empty", .groups = 1, .repeat = 1, .samples = 5000, .place = PLACE_APART},
     .sides = {&keel_self, &peer_pingpong, &opencl_chain},
     .bars = {AT_MOST(1.3, 1), P99_WITHIN(2, 1), SPEED(10, 2)},
     .iree = {11200}},
    {.name = "wake.dispatch.other",
     .what = "one dispatch -> another thread blocked; futex: a whole ping-pong",
     .job = {.kernel = "empty", .groups = 1, .samples = 3000, .place = PLACE_APART},
     .sides = {&keel_other, &peer_pingpong},
     .bars = {AT_MOST(1.3, 1), P99_WITHIN(2, 1)}},
    {.name = "wake.dispatch.free",
     .what = "one dispatch and wait on a device with all workers, no thread pinned by hand",
     .job = {.kernel = "empty", .groups = 1, .repeat = 1, .samples = 5000},
     .sides = {&keel_self, &peer_pingpong, &opencl_chain},
     .bars = {SPEED(10, 2)},
     .iree = {11200}},
    {.name = "wake.signal",
     .what =
         "host signal -> thread blocked on another processor, 100,000 times; futex: a bare wake",
     .job = {.samples = 100000 / 7 + 1, .place = PLACE_APART},
     .sides = {&keel_signal, &peer_wake},
     .bars = {AT_MOST(1.3, 1), NO_TAIL(1)},
     .iree = {2000, 4000}},
    {.name = "wake.signal.together",
     .what = "the same with both threads on one processor, where the waker may lose it",
     .job = {.samples = 100000 / 7 + 1, .place = PLACE_TOGETHER},
     .sides = {&keel_signal, &peer_wake},
     .bars = {AT_MOST(1.3, 1), NO_TAIL(1)}},
    {0},
};
