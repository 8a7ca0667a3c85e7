// SPDX-License-Identifier: Apache-2.0
// Copies and fills on a GPU: `repeat` of them in one submission, one after the other.
#include "gpu.h"

#include <stdlib.h>
#include <string.h>

typedef struct spans_t {
    gpu_t gpu;
    keel_buffer_t *first, *second;
    keel_op_t *ops;
} spans_t;

static void spans_end(void *state)
{
    spans_t *self = state;
    keel_buffer_release(self->first);
    keel_buffer_release(self->second);
    gpu_close(&self->gpu);
    free(self->ops);
    free(self);
}

static keel_status_t spans_begin(const setting_t *setting, void **state)
{
    spans_t *self = calloc(1, sizeof *self);
    if (!self) return KEEL_ERROR(KEEL_OUT_OF_MEMORY, "no memory");
    *state = self;
    KEEL_TRY(gpu_open(&self->gpu, setting));
    transfer_t kind = setting->job.transfer;
    keel_buffer_options_t options = {.size = setting->job.size};
    KEEL_TRY(keel_buffer_create(self->gpu.rig.device, &options, &self->second));
    if (kind == TRANSFER_UPLOAD) options.memory = KEEL_MEMORY_HOST_VISIBLE;
    KEEL_TRY(keel_buffer_create(self->gpu.rig.device, &options, &self->first));
    self->ops = calloc(2 * (size_t)setting->job.repeat, sizeof *self->ops);
    if (!self->ops) return KEEL_ERROR(KEEL_OUT_OF_MEMORY, "no memory");
    for (uint32_t i = 0; i < setting->job.repeat; i++) {
        self->ops[2 * i] = kind == TRANSFER_FILL
                               ? keel_op_fill(keel_whole(self->second), 7, 4)
                               : keel_op_copy(keel_whole(self->first), keel_whole(self->second));
        self->ops[2 * i + 1] = keel_op_barrier();
    }
    return NULL;
}

static keel_status_t spans_round(void *state, tally_t *tally)
{
    spans_t *self = state;
    const job_t *job = &self->gpu.job;
    for (uint32_t s = 0; s < job->samples; s++) {
        keel_point_t done;
        uint64_t start = keel_now_ns();
        KEEL_TRY(keel_queue_submit(self->gpu.queues[0], KEEL_NO_WAITS, self->ops,
                                   2 * (size_t)job->repeat, KEEL_NO_SIGNALS, &done));
        KEEL_TRY(gpu_spin(done));
        tally_add(tally, (double)(keel_now_ns() - start) / job->repeat);
    }
    return NULL;
}

static keel_status_t bare_spans_begin(const setting_t *setting, void **state)
{
    KEEL_TRY(bare_begin(setting, state));
    bare_t *self = *state;
    return raw_spans(self->raw, setting->job.size, setting->job.transfer == TRANSFER_UPLOAD);
}

static keel_status_t bare_spans_round(void *state, tally_t *tally)
{
    bare_t *self = state;
    bool fill = self->job.transfer == TRANSFER_FILL;
    for (uint32_t s = 0; s < self->job.samples; s++) {
        uint64_t start = keel_now_ns();
        for (uint32_t i = 0; i < self->job.repeat; i++)
            KEEL_TRY(fill ? raw_fill(self->raw, self->job.size)
                          : raw_copy(self->raw, self->job.size));
        KEEL_TRY(raw_record(self->raw, 0, 0));
        KEEL_TRY(raw_spin(self->raw, 0));
        tally_add(tally, (double)(keel_now_ns() - start) / self->job.repeat);
    }
    return NULL;
}

static const side_t keel_spans = {"keel", spans_begin, spans_round, spans_end};
static const side_t bare_spans = {"raw", bare_spans_begin, bare_spans_round, bare_end};

#define LARGE(name_, what_, kind)                                                                  \
    {.name = name_ ".1g",                                                                          \
     .what = what_ " of 1 GiB",                                                                    \
     .job = {.size = 1 << 30, .repeat = 1, .samples = 3, .transfer = (kind)},                      \
     .sides = {&keel_spans, &bare_spans},                                                          \
     .bars = {SPEED(0.97, 1)},                                                                     \
     .gpu = true}
#define SMALL(name_, what_, kind)                                                                  \
    {.name = name_ ".64k",                                                                         \
     .what = what_ " of 64 KiB, 100 of them one after the other, each",                            \
     .job = {.size = 64 << 10, .repeat = 100, .samples = 10, .transfer = (kind)},                  \
     .sides = {&keel_spans, &bare_spans},                                                          \
     .bars = {SPEED(0.97, 1)},                                                                     \
     .gpu = true}

const row_t gpu_transfer_rows[] = {
    LARGE("gpu.copy", "copy on the device", TRANSFER_COPY),
    SMALL("gpu.copy", "copy on the device", TRANSFER_COPY),
    LARGE("gpu.fill", "fill", TRANSFER_FILL),
    SMALL("gpu.fill", "fill", TRANSFER_FILL),
    LARGE("gpu.upload", "copy from pinned memory of the host", TRANSFER_UPLOAD),
    SMALL("gpu.upload", "copy from pinned memory of the host", TRANSFER_UPLOAD),
    {0},
};
