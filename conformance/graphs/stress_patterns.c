// SPDX-License-Identifier: Apache-2.0
// A thread never blocks while work of its own waits for a signal that it has not given yet, so any
// hang is the library's.
#include "graphs/kernels/arith.h"
#include "graphs/stress.h"

#include <stdlib.h>

static void step(stress_t *stress)
{
    atomic_fetch_add_explicit(&stress->steps, 1, memory_order_relaxed);
}

// Any error ends the run: nothing here is meant to fail.
static void need(submitter_t *self, keel_status_t status)
{
    if (!status) return;
    keel_status_print(status, stderr);
    keel_status_release(status);
    atomic_store(&self->stress->problem, "a call or a submission failed");
    pthread_exit(NULL);
}

static keel_queue_t *queue_choose(submitter_t *self)
{
    return self->stress->env.devices[0].queues[random_below(&self->random, MAX_QUEUES)];
}

// Often a kernel of a few groups on memory of its own, else nothing at all.
static keel_point_t submit(submitter_t *self, keel_queue_t *queue, keel_points_t waits,
                           keel_points_t signals)
{
    const env_device_t *device = &self->stress->env.devices[0];
    bool work = queue != device->queues[TRANSFER_QUEUE] && random_chance(&self->random, 60);
    arith_constants_t constants = {1, 0, random_below(&self->random, 200)};
    uint64_t slot = self->submitted % STRESS_SLOTS * STRESS_SLOT;
    keel_ref_t target = keel_span(self->scratch, slot, STRESS_SLOT);
    keel_groups_t groups = keel_groups(random_range(&self->random, 1, 4), 1, 1);
    keel_op_t op = keel_op_dispatch(device->entries[OP_SCALE], groups, &constants, sizeof constants,
                                    keel_refs(&target, 1));
    keel_point_t done;
    need(self, keel_queue_submit(queue, waits, &op, work, signals, &done));
    atomic_store_explicit(&self->submitted, self->submitted + 1, memory_order_relaxed);
    self->unawaited++;
    step(self->stress);
    return done;
}

static void await(submitter_t *self, keel_point_t point)
{
    keel_wait_options_t options = {.spin_ns = random_below(&self->random, 3) * 2000};
    need(self, keel_wait_with(KEEL_POINTS(point), KEEL_ALL, KEEL_FOREVER, &options));
    step(self->stress);
}

// Changes the thread's word by a kernel.
static keel_point_t word_step(submitter_t *self, keel_queue_t *queue, keel_point_t after)
{
    static const arith_constants_t constants = {7, 0, 0};
    keel_op_t op =
        keel_op_dispatch(self->stress->env.devices[0].entries[OP_SCALE], keel_groups(1, 1, 1),
                         &constants, sizeof constants, KEEL_BIND(self->buffer));
    keel_point_t done;
    need(self, keel_queue_submit(queue, KEEL_AFTER(after), &op, 1, KEEL_NO_SIGNALS, &done));
    self->word = arith_scale(self->word, constants.constant, 0);
    atomic_store_explicit(&self->submitted, self->submitted + 1, memory_order_relaxed);
    self->unawaited++;
    step(self->stress);
    return done;
}

static void word_check(submitter_t *self)
{
    uint32_t word;
    need(self, keel_buffer_read(self->buffer, 0, &word, sizeof word));
    if (word != self->word) atomic_store(&self->stress->problem, "a chain was not in order");
}

static void chain(submitter_t *self)
{
    uint32_t length = random_range(&self->random, 1, STRESS_FAN);
    keel_queue_t *queue = self->stress->env.devices[0].queues[0];
    for (uint32_t i = 0; i < length; i++) self->last = word_step(self, queue, self->last);
}

static void fan_out(submitter_t *self)
{
    keel_point_t done[STRESS_FAN], gate = keel_point(self->gate, ++self->gate_value);
    uint32_t width = random_range(&self->random, 1, STRESS_FAN);
    for (uint32_t i = 0; i < width; i++)
        done[i] = submit(self, queue_choose(self), KEEL_AFTER(self->last, gate), KEEL_NO_SIGNALS);
    need(self, keel_semaphore_signal(gate.semaphore, gate.value));
    self->last = submit(self, queue_choose(self), keel_points(done, width), KEEL_NO_SIGNALS);
}

static void fan_in(submitter_t *self)
{
    keel_point_t done[STRESS_FAN];
    uint32_t width = random_range(&self->random, 1, STRESS_FAN);
    for (uint32_t i = 0; i + 1 < width; i++)
        done[i] = submit(self, queue_choose(self), KEEL_NO_WAITS, KEEL_NO_SIGNALS);
    done[width - 1] = self->last;
    self->last = submit(self, queue_choose(self), keel_points(done, width), KEEL_NO_SIGNALS);
}

// A signal wakes the echo, whose signal lets the next submission go.
static void ask(submitter_t *self)
{
    uint32_t length = random_range(&self->random, 1, 4);
    for (uint32_t i = 0; i < length; i++) {
        uint64_t value = ++self->question_value;
        submit(self, queue_choose(self), KEEL_AFTER(self->last),
               KEEL_SIGNAL(keel_point(self->question, value)));
        self->last =
            submit(self, queue_choose(self),
                   KEEL_AFTER(self->last, keel_point(self->answer, value)), KEEL_NO_SIGNALS);
    }
}

// Waits for what another thread submitted last.
static void follow(submitter_t *self)
{
    stress_t *stress = self->stress;
    keel_queue_t *queue = stress->env.devices[0].queues[0];
    submitter_t *other =
        &stress->submitters[random_below(&self->random, (uint32_t)stress->thread_count)];
    uint64_t value = atomic_load_explicit(&other->published, memory_order_relaxed);
    keel_point_t theirs = keel_point(keel_queue_timeline(queue), value);
    self->last = submit(self, queue, KEEL_AFTER(self->last, theirs), KEEL_NO_SIGNALS);
    atomic_store_explicit(&self->published, self->last.value, memory_order_relaxed);
}

static void rest(submitter_t *self)
{
    keel_point_t points[2] = {self->last, keel_point(self->answer, self->question_value)};
    if (random_chance(&self->random, 50))
        await(self, self->last);
    else
        need(self, keel_wait(keel_points(points, 2), KEEL_ALL, KEEL_FOREVER));
    // Chains end in `last`, so the word is settled.
    word_check(self);
    self->unawaited = 0;
}

static const struct {
    const char *name;
    void (*run)(submitter_t *self);
} patterns[] = {
    {"chain", chain},  {"fan-out", fan_out}, {"fan-in", fan_in},
    {"question", ask}, {"follow", follow},
};

void *submitter_run(void *user)
{
    submitter_t *self = user;
    stress_t *stress = self->stress;
    self->last = submit(self, stress->env.devices[0].queues[0], KEEL_NO_WAITS, KEEL_NO_SIGNALS);
    atomic_store_explicit(&self->published, self->last.value, memory_order_relaxed);
    while (self->submitted < stress->submissions && !atomic_load(&stress->problem)) {
        size_t pattern = random_below(&self->random, sizeof patterns / sizeof patterns[0]);
        atomic_store_explicit(&self->doing, patterns[pattern].name, memory_order_relaxed);
        patterns[pattern].run(self);
        if (self->unawaited < STRESS_AHEAD && !random_chance(&self->random, 30)) continue;
        atomic_store_explicit(&self->doing, "host wait", memory_order_relaxed);
        rest(self);
    }
    atomic_store_explicit(&self->doing, "last host wait", memory_order_relaxed);
    rest(self);
    atomic_fetch_sub(&stress->running, 1);
    return NULL;
}

void *echo_run(void *user)
{
    submitter_t *self = user;
    for (uint64_t value = 1;; value++) {
        keel_point_t question = keel_point(self->question, value);
        keel_status_t status = keel_wait(KEEL_POINTS(question), KEEL_ALL, KEEL_FOREVER);
        bool stop = atomic_load(&self->stress->stop);
        if (!status && !stop && !self->stress->mute)
            status = keel_semaphore_signal(self->answer, value);
        keel_status_release(status);
        if (stop) return NULL;
        if (status) {
            atomic_store(&self->stress->problem, "an echo failed");
            return NULL;
        }
        step(self->stress);
    }
}
