// SPDX-License-Identifier: Apache-2.0
// Recording `repeat` dispatches with three bindings and 16 bytes of constants, one call each, all
// arguments checked. A sample is the time of one call; making, ending and releasing the recording
// are not in it.
#include "rig.h"

#include <stdlib.h>

#if __has_include(<valgrind/callgrind.h>)
#include <valgrind/callgrind.h>
#else
#define CALLGRIND_TOGGLE_COLLECT
#endif

typedef struct record_t {
    setting_t setting;
    rig_t rig;
    keel_buffer_t *buffers[3];
} record_t;

static void record_end(void *state)
{
    record_t *self = state;
    for (int i = 0; i < 3; i++) keel_buffer_release(self->buffers[i]);
    rig_close(&self->rig);
    free(self);
}

static keel_status_t record_begin(const setting_t *setting, void **state)
{
    keel_buffer_options_t options = {.size = 4096};
    record_t *self = calloc(1, sizeof *self);
    if (!self) return KEEL_ERROR(KEEL_OUT_OF_MEMORY, "no memory");
    *state = self;
    self->setting = *setting;
    KEEL_TRY(rig_open(&self->rig, setting));
    for (int i = 0; i < 3; i++)
        KEEL_TRY(keel_buffer_create(self->rig.device, &options, &self->buffers[i]));
    return NULL;
}

static keel_status_t record_commands(record_t *self, keel_recording_t *recording)
{
    for (uint32_t i = 0; i < self->setting.job.repeat; i++) {
        uint32_t constants[4] = {i, 1, 2, 3};
        keel_op_t op = keel_op_dispatch(
            self->rig.entry, keel_groups(1, 1, 1), constants, sizeof constants,
            KEEL_BIND(self->buffers[0], keel_span(self->buffers[1], 64, 256), self->buffers[2]));
        KEEL_TRY(keel_recording_add(recording, &op, 1));
    }
    return NULL;
}

static keel_status_t record_round(void *state, tally_t *tally)
{
    record_t *self = state;
    keel_recording_t *recording;
    uint32_t repeat = self->setting.job.repeat;
    uint64_t allocations = 0;
    for (uint32_t s = 0; s < self->setting.job.samples; s++) {
        KEEL_TRY(keel_recording_create(self->rig.device, NULL, &recording));
        uint64_t before = rig_allocations(), start = keel_now_ns();
        CALLGRIND_TOGGLE_COLLECT; // see callgrind.sh
        keel_status_t status = record_commands(self, recording);
        CALLGRIND_TOGGLE_COLLECT;
        tally_add(tally, (double)(keel_now_ns() - start) / repeat);
        allocations = rig_allocations() - before;
        if (!status) status = keel_recording_end(recording);
        keel_recording_release(recording);
        KEEL_TRY(status);
    }
    tally->values[0] = (double)allocations / repeat;
    tally_note(tally, "%llu allocations for %u commands", (unsigned long long)allocations, repeat);
    return NULL;
}

static const side_t keel_record = {"keel", record_begin, record_round, record_end};

const row_t record_rows[] = {
    {.name = "record.dispatch",
     .what = "record a checked dispatch with 3 bindings and 16 bytes of constants "
             "(instructions: bench/callgrind.sh)",
     .job = {.kernel = "three", .repeat = 1000, .samples = 100},
     .sides = {&keel_record},
     .bars = {VALUE_WITHIN(0.02, 0, "allocations per command")},
     .iree = {116, 230}},
    {0},
};
