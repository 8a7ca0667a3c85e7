// SPDX-License-Identifier: Apache-2.0
// Copies and fills on a GPU: `repeat` of them in one submission, one after the other.
#include "gpu.h"

#include <stdlib.h>
#include <string.h>

typedef struct spans_t {
    gpu_t gpu;
    keel_device_t *cpu; // NULL: all is on the GPU
    keel_buffer_t *first, *second;
    keel_op_t *ops;
} spans_t;

static bool is_across(transfer_t kind)
{
    return kind == TRANSFER_IN || kind == TRANSFER_OUT;
}

static void spans_end(void *state)
{
    spans_t *self = state;
    keel_buffer_release(self->first);
    keel_buffer_release(self->second);
    keel_device_release(self->cpu);
    gpu_close(&self->gpu);
    free(self->ops);
    free(self);
}

// The first copy page-locks the memory, which is not what is measured.
static keel_status_t spans_warm(const spans_t *self)
{
    keel_point_t done;
    KEEL_TRY(keel_queue_submit(self->gpu.queues[0], KEEL_NO_WAITS, self->ops, 1, KEEL_NO_SIGNALS,
                               &done));
    return gpu_spin(done);
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
    if (is_across(kind)) KEEL_TRY(keel_device_open("cpu://", NULL, &self->cpu));
    KEEL_TRY(
        keel_buffer_create(self->cpu ? self->cpu : self->gpu.rig.device, &options, &self->first));
    self->ops = calloc(2 * (size_t)setting->job.repeat, sizeof *self->ops);
    if (!self->ops) return KEEL_ERROR(KEEL_OUT_OF_MEMORY, "no memory");
    keel_ref_t first = keel_whole(self->first), second = keel_whole(self->second);
    for (uint32_t i = 0; i < setting->job.repeat; i++) {
        self->ops[2 * i] = kind == TRANSFER_FILL  ? keel_op_fill(second, 7, 4)
                           : kind == TRANSFER_OUT ? keel_op_copy(second, first)
                                                  : keel_op_copy(first, second);
        self->ops[2 * i + 1] = keel_op_barrier();
    }
    return self->cpu ? spans_warm(self) : NULL;
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
    transfer_t kind = setting->job.transfer;
    return raw_spans(self->raw, setting->job.size, kind == TRANSFER_UPLOAD || is_across(kind));
}

static keel_status_t bare_spans_round(void *state, tally_t *tally)
{
    bare_t *self = state;
    transfer_t kind = self->job.transfer;
    for (uint32_t s = 0; s < self->job.samples; s++) {
        uint64_t start = keel_now_ns();
        for (uint32_t i = 0; i < self->job.repeat; i++)
            KEEL_TRY(kind == TRANSFER_FILL  ? raw_fill(self->raw, self->job.size)
                     : kind == TRANSFER_OUT ? raw_copy_back(self->raw, self->job.size)
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
    LARGE("gpu.in", "copy from a buffer of cpu://", TRANSFER_IN),
    SMALL("gpu.in", "copy from a buffer of cpu://", TRANSFER_IN),
    LARGE("gpu.out", "copy to a buffer of cpu://", TRANSFER_OUT),
    SMALL("gpu.out", "copy to a buffer of cpu://", TRANSFER_OUT),
    {0},
};
