// SPDX-License-Identifier: Apache-2.0
// Recordings on a GPU: what their submission costs the host, how fast they run, with the same and
// with other bindings or parameters, and whether what has no barrier between it runs at the same
// time.
#include "gpu.h"
#include "kernels/region.h"

#include <stdlib.h>
#include <string.h>

enum { SLOTS = 48, SETS = 2, PIPELINED = 10, OVERLAPPING = 8, GIVEN = 16 };

typedef struct tape_t {
    gpu_t gpu;
    keel_recording_t *recording;
    keel_executable_t *image; // the raw kernel
    keel_buffer_t *buffers[SETS];
} tape_t;

static void tape_end(void *state)
{
    tape_t *self = state;
    keel_recording_release(self->recording);
    keel_executable_release(self->image);
    for (int i = 0; i < SETS; i++) keel_buffer_release(self->buffers[i]);
    gpu_close(&self->gpu);
    free(self);
}

static keel_status_t tape_open(const setting_t *setting, void **state, uint32_t slots)
{
    tape_t *self = calloc(1, sizeof *self);
    if (!self) return KEEL_ERROR(KEEL_OUT_OF_MEMORY, "no memory");
    *state = self;
    KEEL_TRY(gpu_open(&self->gpu, setting));
    keel_recording_options_t options = {.slots = slots};
    return keel_recording_create(self->gpu.rig.device, &options, &self->recording);
}

static keel_status_t tape_close(tape_t *self)
{
    KEEL_TRY(keel_recording_end(self->recording));
    return keel_recording_prepare(self->recording, self->gpu.queues[0]);
}

static keel_status_t plain_begin(const setting_t *setting, void **state)
{
    KEEL_TRY(tape_open(setting, state, 0));
    tape_t *self = *state;
    keel_op_t ops[] = {self->gpu.op, keel_op_barrier()};
    for (uint32_t i = 0; i < setting->job.repeat; i++)
        KEEL_TRY(keel_recording_add(self->recording, ops, 2));
    return tape_close(self);
}

static keel_status_t replay_round(void *state, tally_t *tally)
{
    tape_t *self = state;
    for (uint32_t s = 0; s < self->gpu.job.samples; s++) {
        keel_point_t done;
        uint64_t start = keel_now_ns();
        KEEL_TRY(keel_queue_execute(self->gpu.queues[0], KEEL_NO_WAITS, self->recording,
                                    KEEL_NO_BINDINGS, &done));
        KEEL_TRY(gpu_spin(done));
        tally_add(tally, (double)(keel_now_ns() - start) / self->gpu.job.repeat);
    }
    return NULL;
}

// The call alone, with a signal.
static keel_status_t submit_round(void *state, tally_t *tally)
{
    tape_t *self = state;
    keel_op_t op = keel_op_execute(self->recording, KEEL_NO_BINDINGS);
    for (uint32_t s = 0; s < self->gpu.job.samples; s++) {
        keel_point_t done, signal = keel_point(self->gpu.semaphore, ++self->gpu.value);
        uint64_t start = keel_now_ns();
        KEEL_TRY(keel_queue_submit(self->gpu.queues[0], KEEL_NO_WAITS, &op, 1, KEEL_SIGNAL(signal),
                                   &done));
        tally_add(tally, (double)(keel_now_ns() - start));
        KEEL_TRY(gpu_spin(done));
    }
    return NULL;
}

static keel_status_t bare_graph_begin(const setting_t *setting, void **state)
{
    KEEL_TRY(bare_begin(setting, state));
    return raw_graph(((bare_t *)*state)->raw, setting->job.repeat);
}

static keel_status_t bare_replay_round(void *state, tally_t *tally)
{
    bare_t *self = state;
    for (uint32_t s = 0; s < self->job.samples; s++) {
        uint64_t start = keel_now_ns();
        KEEL_TRY(raw_replay(self->raw));
        KEEL_TRY(raw_record(self->raw, 0, 0));
        KEEL_TRY(raw_spin(self->raw, 0));
        tally_add(tally, (double)(keel_now_ns() - start) / self->job.repeat);
    }
    return NULL;
}

static keel_status_t bare_submit_round(void *state, tally_t *tally)
{
    bare_t *self = state;
    for (uint32_t s = 0; s < self->job.samples; s++) {
        uint64_t start = keel_now_ns();
        KEEL_TRY(raw_replay(self->raw));
        KEEL_TRY(raw_record(self->raw, 0, 0));
        tally_add(tally, (double)(keel_now_ns() - start));
        KEEL_TRY(raw_spin(self->raw, 0));
    }
    return NULL;
}

static keel_status_t buffers_make(tape_t *self)
{
    keel_buffer_options_t options = {.size = 4096};
    for (int i = 0; i < SETS; i++)
        KEEL_TRY(keel_buffer_create(self->gpu.rig.device, &options, &self->buffers[i]));
    return NULL;
}

// Every dispatch takes three slots of the table, by its kernel's bindings ...
static keel_status_t bound_add(tape_t *self, uint32_t index)
{
    uint32_t constants[4] = {index, 1, 2, 3}, slot = index * 3 % SLOTS;
    keel_op_t ops[] = {
        keel_op_dispatch(self->gpu.rig.entry, keel_groups(1, 1, 1), constants, sizeof constants,
                         KEEL_BIND(keel_slot(slot, 0, 64), keel_slot(slot + 1, 0, 64),
                                   keel_slot(slot + 2, 0, 64))),
        keel_op_barrier(),
    };
    return keel_recording_add(self->recording, ops, 2);
}

// ... or as addresses in an argument block.
static keel_status_t patched_add(tape_t *self, uint32_t index)
{
    uint64_t block[RAW_BLOCK / 8] = {0};
    keel_entry_t entry = {self->image, 0};
    keel_patch_t patches[3];
    for (uint32_t i = 0; i < 3; i++)
        patches[i] = (keel_patch_t){i * 8, keel_slot((index * 3 + i) % SLOTS, 0, 64)};
    keel_op_t op =
        keel_op_dispatch(entry, keel_groups(1, 1, 1), block, sizeof block, KEEL_NO_BINDINGS);
    op.as.dispatch.raw = true;
    op.as.dispatch.patches = patches;
    op.as.dispatch.patch_count = 3;
    op.as.dispatch.group_size = keel_groups(1, 1, 1);
    keel_op_t ops[] = {op, keel_op_barrier()};
    return keel_recording_add(self->recording, ops, 2);
}

static keel_status_t rebind_begin(const setting_t *setting, void **state)
{
    KEEL_TRY(tape_open(setting, state, SLOTS));
    tape_t *self = *state;
    KEEL_TRY(buffers_make(self));
    for (uint32_t i = 0; i < setting->job.repeat; i++) KEEL_TRY(bound_add(self, i));
    return tape_close(self);
}

static keel_status_t patch_begin(const setting_t *setting, void **state)
{
    KEEL_TRY(tape_open(setting, state, SLOTS));
    tape_t *self = *state;
    KEEL_TRY(buffers_make(self));
    keel_executable_options_t image = raw_image(self->gpu.rig.device);
    KEEL_TRY(keel_executable_load(self->gpu.rig.device, &image, &self->image));
    for (uint32_t i = 0; i < setting->job.repeat; i++) KEEL_TRY(patched_add(self, i));
    return tape_close(self);
}

// Submissions one after the other, each with another table than the one before, none waited for
// until the last.
static keel_status_t rebind_round(void *state, tally_t *tally)
{
    tape_t *self = state;
    keel_ref_t tables[SETS][SLOTS];
    for (int t = 0; t < SETS; t++)
        for (int i = 0; i < SLOTS; i++)
            tables[t][i] = keel_span(self->buffers[t], (uint64_t)i * 64, 64);
    for (uint32_t s = 0; s < self->gpu.job.samples; s++) {
        keel_point_t last;
        uint64_t start = keel_now_ns();
        for (int i = 0; i < PIPELINED; i++)
            KEEL_TRY(keel_queue_execute(self->gpu.queues[0], i ? KEEL_AFTER(last) : KEEL_NO_WAITS,
                                        self->recording, keel_refs(tables[i % SETS], SLOTS),
                                        &last));
        KEEL_TRY(gpu_spin(last));
        tally_add(tally, (double)(keel_now_ns() - start) / PIPELINED / self->gpu.job.repeat);
    }
    return NULL;
}

// Every dispatch has its constants from parameters, 16 bytes of them.
static keel_status_t given_add(tape_t *self, uint32_t index)
{
    keel_buffer_t *x = self->buffers[0];
    keel_patch_t patch = {0, keel_parameter((uint64_t)(index % SLOTS) * GIVEN, GIVEN)};
    keel_op_t op = keel_op_dispatch(
        self->gpu.rig.entry, keel_groups(1, 1, 1), NULL, GIVEN,
        KEEL_BIND(keel_span(x, 0, 64), keel_span(x, 64, 64), keel_span(x, 128, 64)));
    keel_op_t ops[] = {keel_op_patched(op, &patch, 1), keel_op_barrier()};
    return keel_recording_add(self->recording, ops, 2);
}

static keel_status_t given_begin(const setting_t *setting, void **state)
{
    KEEL_TRY(tape_open(setting, state, 0));
    tape_t *self = *state;
    KEEL_TRY(buffers_make(self));
    for (uint32_t i = 0; i < setting->job.repeat; i++) KEEL_TRY(given_add(self, i));
    return tape_close(self);
}

// As rebind_round, each with other parameters than the one before.
static keel_status_t given_round(void *state, tally_t *tally)
{
    tape_t *self = state;
    unsigned char blocks[SETS][SLOTS * GIVEN];
    for (int t = 0; t < SETS; t++) memset(blocks[t], t + 1, sizeof blocks[t]);
    for (uint32_t s = 0; s < self->gpu.job.samples; s++) {
        keel_point_t last;
        uint64_t start = keel_now_ns();
        for (int i = 0; i < PIPELINED; i++) {
            keel_op_t op = keel_op_execute_with(self->recording, KEEL_NO_BINDINGS, blocks[i % SETS],
                                                sizeof blocks[0]);
            KEEL_TRY(keel_queue_run(self->gpu.queues[0], i ? KEEL_AFTER(last) : KEEL_NO_WAITS, op,
                                    &last));
        }
        KEEL_TRY(gpu_spin(last));
        tally_add(tally, (double)(keel_now_ns() - start) / PIPELINED / self->gpu.job.repeat);
    }
    return NULL;
}

static keel_status_t bare_rebind_round(void *state, tally_t *tally)
{
    bare_t *self = state;
    for (uint32_t s = 0; s < self->job.samples; s++) {
        uint64_t start = keel_now_ns();
        for (int i = 0; i < PIPELINED; i++) {
            KEEL_TRY(raw_rebind(self->raw));
            KEEL_TRY(raw_replay(self->raw));
        }
        KEEL_TRY(raw_record(self->raw, 0, 0));
        KEEL_TRY(raw_spin(self->raw, 0));
        tally_add(tally, (double)(keel_now_ns() - start) / PIPELINED / self->job.repeat);
    }
    return NULL;
}

// What changed nodes come down to where the device changes them itself. Where the host does, its
// calls are what a recording can be held against.
static keel_status_t unchanged_begin(const setting_t *setting, void **state)
{
    KEEL_TRY(bare_graph_begin(setting, state));
    if (raw_updates(((bare_t *)*state)->raw)) return NULL;
    return KEEL_ERROR(KEEL_UNSUPPORTED, "the vendor's kernels cannot change nodes of a graph");
}

// Dispatches of an eighth of the card each.
static keel_status_t eighths_begin(const setting_t *setting, void **state, bool ordered)
{
    KEEL_TRY(tape_open(setting, state, 0));
    tape_t *self = *state;
    KEEL_TRY(buffers_make(self));
    work_constants_t work = {.steps = 200000};
    uint32_t groups = keel_device_caps(self->gpu.rig.device)->workers / OVERLAPPING;
    keel_op_t ops[] = {
        keel_op_dispatch(self->gpu.rig.entry, keel_groups(groups ? groups : 1, 1, 1), &work,
                         sizeof work, KEEL_BIND(self->buffers[0])),
        keel_op_barrier(),
    };
    for (int i = 0; i < OVERLAPPING; i++)
        KEEL_TRY(keel_recording_add(self->recording, ops, ordered ? 2 : 1));
    return tape_close(self);
}

static keel_status_t overlap_begin(const setting_t *setting, void **state)
{
    return eighths_begin(setting, state, false);
}

static keel_status_t ordered_begin(const setting_t *setting, void **state)
{
    return eighths_begin(setting, state, true);
}

static const side_t keel_replay_plain = {"keel", plain_begin, replay_round, tape_end};
static const side_t bare_replay = {"raw", bare_graph_begin, bare_replay_round, bare_end};
static const side_t keel_submit = {"keel", plain_begin, submit_round, tape_end};
static const side_t bare_submit = {"raw", bare_graph_begin, bare_submit_round, bare_end};
static const side_t keel_rebind = {"keel", rebind_begin, rebind_round, tape_end};
static const side_t keel_patch = {"keel", patch_begin, rebind_round, tape_end};
static const side_t keel_given = {"keel", given_begin, given_round, tape_end};
static const side_t bare_rebind = {"raw", bare_graph_begin, bare_rebind_round, bare_end};
static const side_t bare_unchanged = {"unchanged", unchanged_begin, bare_replay_round, bare_end};
static const side_t keel_overlap = {"keel", overlap_begin, replay_round, tape_end};
static const side_t keel_ordered = {"ordered", ordered_begin, replay_round, tape_end};

const row_t gpu_replay_rows[] = {
    {.name = "gpu.replay",
     .what = "a recording of 1000 empty dispatches in a chain, run, each; raw: graph replay",
     .job = {.kernel = "empty", .repeat = 1000, .samples = 20},
     .sides = {&keel_replay_plain, &bare_replay},
     .bars = {AT_MOST(1.05, 1)},
     .gpu = true},
    {.name = "gpu.replay.submit",
     .what = "its submission with a signal, the call alone; raw: graph launch + event record",
     .job = {.kernel = "empty", .repeat = 1000, .samples = 20},
     .sides = {&keel_submit, &bare_submit},
     .bars = {ADDED_NS(1000, 1)},
     .gpu = true},
    {.name = "gpu.rebind",
     .what = "1000 dispatches x 3 bindings, other ones at each of 10 submissions, per dispatch; "
             "raw: SetParams of each node + launch; unchanged: launch alone",
     .job = {.kernel = "three", .repeat = 1000, .samples = 4},
     .sides = {&keel_rebind, &bare_rebind, &bare_unchanged},
     .bars = {AT_MOST(1.1, 1), AT_MOST(1.1, 2)},
     .gpu = true},
    {.name = "gpu.rebind.raw",
     .what = "the same with a kernel made elsewhere and addresses patched into its arguments",
     .job = {.kernel = "empty", .repeat = 1000, .samples = 4},
     .sides = {&keel_patch, &bare_rebind},
     .bars = {AT_MOST(1.1, 1)},
     .gpu = true},
    {.name = "gpu.parameters",
     .what = "1000 dispatches, 16 bytes of constants of each other ones at each of 10 submissions, "
             "per dispatch; raw: SetParams of each node + launch",
     .job = {.kernel = "three", .repeat = 1000, .samples = 4},
     .sides = {&keel_given, &bare_rebind},
     .bars = {AT_MOST(1.1, 1)},
     .gpu = true},
    {.name = "gpu.parameters.few",
     .what = "the same with 100 dispatches, which the host changes one by one",
     .job = {.kernel = "three", .repeat = 100, .samples = 40},
     .sides = {&keel_given, &bare_rebind},
     .bars = {AT_MOST(1.1, 1)},
     .gpu = true},
    {.name = "gpu.overlap",
     .what = "8 dispatches of an eighth of the card each, no barrier between them; ordered: with",
     .job = {.kernel = "work", .repeat = 1, .samples = 10},
     .sides = {&keel_overlap, &keel_ordered},
     .bars = {SPEED(7, 1)},
     .gpu = true},
    {0},
};
