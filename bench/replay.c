// SPDX-License-Identifier: Apache-2.0
// A recording of `repeat` dispatches with a barrier after each, executed and waited for. A sample
// is the time from the submission to the return of the wait, per dispatch.
#include "rig.h"

#include <stdlib.h>
#include <string.h>

typedef struct replay_t {
    setting_t setting;
    rig_t rig;
    keel_recording_t *recording;
    keel_buffer_t *counters;   // "spin": groups done by each worker
    keel_buffer_t *vectors[2]; // "saxpy"
    spin_constants_t spin;
    saxpy_constants_t saxpy;
} replay_t;

static void replay_end(void *state)
{
    replay_t *self = state;
    keel_recording_release(self->recording);
    keel_buffer_release(self->counters);
    for (int i = 0; i < 2; i++) keel_buffer_release(self->vectors[i]);
    rig_close(&self->rig);
    free(self);
}

static keel_status_t spin_make(replay_t *self)
{
    keel_buffer_options_t options = {.size = MAX_WORKERS * SPIN_COUNTER_STRIDE * sizeof(uint64_t)};
    KEEL_TRY(keel_buffer_create(self->rig.device, &options, &self->counters));
    return spin_calibrate(self->setting.job.group_ns, &self->spin.iterations);
}

// Vectors of zeros, which stay zeros.
static keel_status_t saxpy_make(replay_t *self)
{
    self->saxpy = (saxpy_constants_t){0.5f, (uint32_t)self->setting.job.size};
    keel_buffer_options_t options = {.size = self->setting.job.size * sizeof(float)};
    for (int i = 0; i < 2; i++)
        KEEL_TRY(keel_buffer_create(self->rig.device, &options, &self->vectors[i]));
    return NULL;
}

// `refs` is to live as long as the op.
static keel_op_t dispatch_make(const replay_t *self, keel_ref_t refs[2])
{
    keel_groups_t groups = keel_groups(self->setting.job.groups, 1, 1);
    if (self->counters) {
        refs[0] = keel_whole(self->counters);
        return keel_op_dispatch(self->rig.entry, groups, &self->spin, sizeof self->spin,
                                keel_refs(refs, 1));
    }
    if (self->vectors[0]) {
        for (int i = 0; i < 2; i++) refs[i] = keel_whole(self->vectors[i]);
        return keel_op_dispatch(self->rig.entry, groups, &self->saxpy, sizeof self->saxpy,
                                keel_refs(refs, 2));
    }
    return keel_op_dispatch(self->rig.entry, groups, NULL, 0, KEEL_NO_BINDINGS);
}

static keel_status_t recording_make(replay_t *self)
{
    keel_ref_t refs[2];
    keel_op_t ops[2] = {dispatch_make(self, refs), keel_op_barrier()};
    KEEL_TRY(keel_recording_create(self->rig.device, NULL, &self->recording));
    for (uint32_t i = 0; i < self->setting.job.repeat; i++)
        KEEL_TRY(keel_recording_add(self->recording, ops, 2));
    KEEL_TRY(keel_recording_end(self->recording));
    return keel_recording_prepare(self->recording, self->rig.queue);
}

static keel_status_t replay_begin(const setting_t *setting, void **state)
{
    replay_t *self = calloc(1, sizeof *self);
    if (!self) return KEEL_ERROR(KEEL_OUT_OF_MEMORY, "no memory");
    *state = self;
    self->setting = *setting;
    KEEL_TRY(rig_open(&self->rig, setting));
    if (setting->job.group_ns) KEEL_TRY(spin_make(self));
    if (!strcmp(setting->job.kernel, "saxpy")) KEEL_TRY(saxpy_make(self));
    return recording_make(self);
}

// How evenly the groups were spread: the least that a worker did, as a part of an even share.
static keel_status_t workers_note(replay_t *self, tally_t *tally)
{
    uint64_t counters[MAX_WORKERS * SPIN_COUNTER_STRIDE], least = UINT64_MAX, sum = 0;
    uint32_t workers = self->setting.workers;
    KEEL_TRY(keel_buffer_read(self->counters, 0, counters, sizeof counters));
    char text[160];
    int length = 0;
    for (uint32_t w = 0; w < workers; w++) {
        uint64_t groups = counters[w * SPIN_COUNTER_STRIDE];
        sum += groups;
        if (groups < least) least = groups;
        if (length < (int)sizeof text - 20)
            length += snprintf(text + length, 20, " %llu", (unsigned long long)groups);
    }
    tally->values[0] = (double)least * workers / (double)sum;
    tally_note(tally, "groups of each worker:%s", text);
    return NULL;
}

static keel_status_t replay_round(void *state, tally_t *tally)
{
    replay_t *self = state;
    keel_point_t done;
    if (self->counters) {
        KEEL_TRY(keel_queue_fill(self->rig.queue, KEEL_NO_WAITS, keel_whole(self->counters), 0, 4,
                                 &done));
        KEEL_TRY(rig_wait(done));
    }
    for (uint32_t s = 0; s < self->setting.job.samples; s++) {
        uint64_t start = keel_now_ns();
        KEEL_TRY(keel_queue_execute(self->rig.queue, KEEL_NO_WAITS, self->recording,
                                    KEEL_NO_BINDINGS, &done));
        KEEL_TRY(rig_wait(done));
        tally_add(tally, (double)(keel_now_ns() - start) / self->setting.job.repeat);
    }
    return self->counters ? workers_note(self, tally) : NULL;
}

static const side_t keel_replay = {"keel", replay_begin, replay_round, replay_end};

// The groups one after the other on this thread, divided by the number of workers.
typedef struct ideal_t {
    setting_t setting;
    keel_host_kernel_fn kernel;
    spin_constants_t spin;
} ideal_t;

static keel_status_t ideal_begin(const setting_t *setting, void **state)
{
    ideal_t *self = calloc(1, sizeof *self);
    if (!self) return KEEL_ERROR(KEEL_OUT_OF_MEMORY, "no memory");
    *state = self;
    self->setting = *setting;
    KEEL_TRY(image_kernel(setting->job.kernel, &self->kernel));
    return spin_calibrate(setting->job.group_ns, &self->spin.iterations);
}

static keel_status_t ideal_round(void *state, tally_t *tally)
{
    ideal_t *self = state;
    const job_t *job = &self->setting.job;
    uint64_t counter[SPIN_COUNTER_STRIDE] = {0};
    void *bindings[] = {counter};
    keel_host_dispatch_t dispatch = {.bindings = bindings, .constants = &self->spin};
    keel_host_group_t group = {0};
    for (uint32_t s = 0; s < job->samples; s++) {
        uint64_t start = keel_now_ns();
        for (uint32_t i = 0; i < job->repeat; i++)
            for (uint32_t g = 0; g < job->groups; g++) self->kernel(&dispatch, &group);
        tally_add(tally, (double)(keel_now_ns() - start) / job->repeat / self->setting.workers);
    }
    return NULL;
}

static const side_t ideal = {"ideal", ideal_begin, ideal_round, free};

const row_t replay_rows[] = {
    {.name = "replay.inline.1",
     .what = "cpu://inline, 1000 x (1 empty group + barrier), each",
     .job = {.uri = "cpu://inline", .kernel = "empty", .groups = 1, .repeat = 1000, .samples = 100},
     .sides = {&keel_replay},
     .bars = {AT_MOST_NS(40)},
     .iree = {57, 103}},
    {.name = "replay.cpu.1",
     .what = "cpu://, 1000 x (1 empty group + barrier), each",
     .job = {.kernel = "empty", .groups = 1, .repeat = 1000, .samples = 100},
     .sides = {&keel_replay, &opencl_replay},
     .bars = {AT_MOST_NS(100), SPEED(10, 1)},
     .iree = {743},
     .scales = true},
    {.name = "replay.cpu.64",
     .what = "cpu://, 1000 x (64 empty groups + barrier), each; an OpenMP parallel for each",
     .job = {.kernel = "empty", .groups = 64, .repeat = 1000, .samples = 40},
     .sides = {&keel_replay, &gomp_replay, &opencl_replay},
     .bars = {AT_MOST(1.0, 1), SPEED(10, 2)},
     .iree = {1372},
     .scales = true},
    {.name = "replay.cpu.64.1us",
     .what = "cpu://, 1000 x (64 groups of 1 us + barrier), each; ideal is one thread's time over "
             "the number of workers",
     .job = {.kernel = "spin", .groups = 64, .group_ns = 1000, .repeat = 1000, .samples = 4},
     .sides = {&keel_replay, &ideal, &gomp_replay},
     .bars = {AT_MOST_UP_TO(2, 1.1, 1), AT_MOST(2, 1),
              VALUE_LEAST(0.8, 0, "least busy worker's share")},
     .scales = true},
    {.name = "replay.cpu.saxpy",
     .what = "cpu://, 200 x (saxpy of the same 300,000 elements + barrier), each; an OpenMP "
             "parallel for with a static schedule each",
     .job = {.kernel = "saxpy",
             .groups = (300000 + SAXPY_GROUP - 1) / SAXPY_GROUP,
             .size = 300000,
             .repeat = 200,
             .samples = 20},
     .sides = {&keel_replay, &gomp_replay},
     .bars = {AT_MOST(1.1, 1)},
     .scales = true},
    {0},
};
