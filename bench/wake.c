// SPDX-License-Identifier: Apache-2.0
// From a submission, or a signal of the host, to the thread that waits for it.
//
// self     One thread submits and waits. A sample is the time from before the submission to after
//          the wait.
// polled   The same, the waiter polling before it would go to sleep (keel_wait_options_t.spin_ns).
// other    The second thread is blocked in keel_wait. A sample is the time from before the first
//          thread submits what it waits for to after the wait, on the second.
// signal   The same with keel_semaphore_signal in place of a submission.
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
    size_t op_count;             // 0: nothing but the signal
    keel_semaphore_t *semaphore; // what the second thread waits for
    uint64_t value;              // its value at the beginning of a round
    tally_t *tally;
    keel_status_t second_status;
    _Alignas(64) _Atomic uint32_t ready; // how often the second thread has gone to wait
    _Alignas(64) _Atomic uint64_t start; // when the submission or signal was begun
} wake_t;

static void wake_end(void *state)
{
    wake_t *self = state;
    keel_semaphore_release(self->semaphore);
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
    KEEL_TRY(keel_semaphore_create(self->rig.device, NULL, &self->semaphore));
    if (setting->job.groups) {
        self->op = keel_op_dispatch(self->rig.entry, keel_groups(setting->job.groups, 1, 1), NULL,
                                    0, KEEL_NO_BINDINGS);
        self->op_count = 1;
    }
    return NULL;
}

// Without a time limit, as the futex: a limit would set a timer each time.
static keel_status_t wait_for(keel_point_t point)
{
    return keel_wait(KEEL_POINTS(point), KEEL_ALL, KEEL_FOREVER);
}

static keel_status_t self_samples(wake_t *self, uint64_t spin_ns, tally_t *tally)
{
    keel_wait_options_t options = {.spin_ns = spin_ns};
    for (uint32_t i = 0; i < self->setting.job.samples; i++) {
        keel_point_t done;
        uint64_t start = keel_now_ns();
        KEEL_TRY(keel_queue_submit(self->rig.queue, KEEL_NO_WAITS, &self->op, self->op_count,
                                   KEEL_NO_SIGNALS, &done));
        KEEL_TRY(keel_wait_with(KEEL_POINTS(done), KEEL_ALL, KEEL_FOREVER, &options));
        tally_add(tally, (double)(keel_now_ns() - start));
    }
    return NULL;
}

static keel_status_t self_placed(wake_t *self, uint64_t spin_ns, tally_t *tally)
{
    place_first(self->setting.job.place);
    keel_status_t status = self_samples(self, spin_ns, tally);
    place_pin(-1);
    return status;
}

static keel_status_t self_round(void *state, tally_t *tally)
{
    return self_placed(state, 0, tally);
}

static keel_status_t polled_round(void *state, tally_t *tally)
{
    return self_placed(state, 100000, tally);
}

static keel_status_t submit_signal(wake_t *self, uint64_t value)
{
    return keel_queue_submit(self->rig.queue, KEEL_NO_WAITS, &self->op, self->op_count,
                             KEEL_SIGNAL(keel_point(self->semaphore, value)), NULL);
}

static keel_status_t host_signal(wake_t *self, uint64_t value)
{
    return keel_semaphore_signal(self->semaphore, value);
}

static void *second_thread(void *user)
{
    wake_t *self = user;
    place_second(self->setting.job.place);
    for (uint32_t i = 1; i <= self->setting.job.samples; i++) {
        atomic_store_explicit(&self->ready, i, memory_order_release);
        self->second_status = wait_for(keel_point(self->semaphore, self->value + i));
        if (self->second_status) break;
        tally_add(self->tally, (double)(keel_now_ns() - self->start));
    }
    return NULL;
}

static keel_status_t first_thread(wake_t *self, keel_status_t (*signal)(wake_t *, uint64_t))
{
    for (uint32_t i = 1; i <= self->setting.job.samples; i++) {
        place_until(&self->setting.job, &self->ready, i);
        self->start = keel_now_ns();
        KEEL_TRY(signal(self, self->value + i));
    }
    return NULL;
}

static keel_status_t threads_run(wake_t *self, tally_t *tally,
                                 keel_status_t (*signal)(wake_t *, uint64_t))
{
    pthread_t second;
    self->tally = tally;
    self->second_status = NULL;
    self->ready = 0;
    if (pthread_create(&second, NULL, second_thread, self))
        return KEEL_ERROR(KEEL_RESOURCE_EXHAUSTED, "no thread");
    place_first(self->setting.job.place);
    keel_status_t status = first_thread(self, signal);
    // The second thread waits for signals that will not come if the first has failed.
    if (status)
        keel_status_release(keel_semaphore_fail(self->semaphore, keel_status_retain(status)));
    pthread_join(second, NULL);
    place_pin(-1);
    self->value += self->setting.job.samples;
    if (!status) return self->second_status;
    keel_status_release(self->second_status);
    return status;
}

static keel_status_t other_round(void *state, tally_t *tally)
{
    return threads_run(state, tally, submit_signal);
}

static keel_status_t signal_round(void *state, tally_t *tally)
{
    return threads_run(state, tally, host_signal);
}

static const side_t keel_self = {"keel", wake_begin, self_round, wake_end};
static const side_t keel_polled = {"keel", wake_begin, polled_round, wake_end};
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
     .job = {.samples = 5000, .place = PLACE_APART, .asleep_us = 5, .legs = 2},
     .sides = {&keel_other, &peer_pingpong},
     .bars = {AT_MOST(1.15, 1), P99_WITHIN(2, 1)}},
    {.name = "wake.dispatch.self",
     .what = "one dispatch on another processor and wait, again and again; futex: a ping-pong",
     .job = {.kernel = "empty", .groups = 1, .repeat = 1, .samples = 5000, .place = PLACE_APART},
     .sides = {&keel_self, &peer_pingpong, &opencl_chain},
     .bars = {AT_MOST(1.3, 1), P99_WITHIN(2, 1), SPEED(10, 2)},
     .iree = {11200}},
    {.name = "wake.dispatch.polled",
     .what = "the same with a waiter that polls for up to 100 us before it sleeps",
     .job = {.kernel = "empty", .groups = 1, .repeat = 1, .samples = 5000, .place = PLACE_APART},
     .sides = {&keel_polled, &peer_pingpong, &opencl_chain},
     .bars = {SPEED(10, 2)},
     .iree = {11200}},
    {.name = "wake.dispatch.other",
     .what =
         "one dispatch -> worker asleep on another processor -> another thread; futex: a ping-pong",
     .job =
         {.kernel = "empty", .groups = 1, .samples = 3000, .place = PLACE_BESIDE, .asleep_us = 60},
     .sides = {&keel_other, &peer_pingpong},
     .bars = {AT_MOST(1.3, 1), P99_WITHIN(2, 1)}},
    {.name = "wake.dispatch.free",
     .what =
         "one dispatch and wait on a device with all workers, threads where the system puts them",
     .job = {.kernel = "empty", .groups = 1, .repeat = 1, .samples = 5000},
     .sides = {&keel_self, &peer_pingpong, &opencl_chain},
     .bars = {SPEED(10, 2)},
     .iree = {11200}},
    {.name = "wake.signal",
     .what =
         "host signal -> thread blocked on another processor, 100,000 times; futex: a bare wake",
     .job = {.samples = 100000 / 7 + 1, .place = PLACE_APART, .asleep_us = 10},
     .sides = {&keel_signal, &peer_wake},
     .bars = {AT_MOST(1.3, 1), NO_TAIL(1)},
     .iree = {2000, 4000}},
    {.name = "wake.signal.together",
     .what = "the same with both threads on one processor, where the waker may lose it",
     .job = {.samples = 100000 / 7 + 1, .place = PLACE_TOGETHER, .asleep_us = 10},
     .sides = {&keel_signal, &peer_wake},
     .bars = {AT_MOST(1.3, 1), NO_TAIL(1)}},
    {0},
};
