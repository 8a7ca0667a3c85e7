// SPDX-License-Identifier: Apache-2.0
// Does it last? A million submissions of one group, chained in batches of `repeat` with a wait
// after each batch. The first ones are held back until they are complete, and do not count as
// times. A sample is a batch, per submission.
#include "rig.h"

#include <stdlib.h>
#include <unistd.h>

enum { WARM_BATCHES = 10, LEAST_BATCHES = 100 };

// What submissions leave behind slows all that follow; a machine that does other things now and
// then slows some for a while. So the quick tenths of both halves are compared.
#define QUICK 0.1

typedef struct endure_t {
    setting_t setting;
    rig_t rig;
    keel_semaphore_t *gate;
    uint64_t gate_value;
} endure_t;

static void endure_end(void *state)
{
    endure_t *self = state;
    keel_semaphore_release(self->gate);
    rig_close(&self->rig);
    free(self);
}

static keel_status_t resident_bytes(double *bytes)
{
    unsigned long total, resident;
    FILE *file = fopen("/proc/self/statm", "r");
    int fields = file ? fscanf(file, "%lu %lu", &total, &resident) : 0;
    if (file) fclose(file);
    if (fields != 2) return KEEL_ERROR(KEEL_UNSUPPORTED, "no /proc/self/statm");
    *bytes = (double)resident * (double)sysconf(_SC_PAGESIZE);
    return NULL;
}

static keel_status_t endure_begin(const setting_t *setting, void **state)
{
    double bytes;
    KEEL_TRY(resident_bytes(&bytes));
    endure_t *self = calloc(1, sizeof *self);
    if (!self) return KEEL_ERROR(KEEL_OUT_OF_MEMORY, "no memory");
    *state = self;
    self->setting = *setting;
    KEEL_TRY(rig_open(&self->rig, setting));
    return keel_semaphore_create(self->rig.device, NULL, &self->gate);
}

// With `gate`, none starts before all are submitted: the most that can be in flight at once.
static keel_status_t batch_run(endure_t *self, const keel_op_t *op, bool gate)
{
    keel_point_t last, opened = keel_point(self->gate, ++self->gate_value);
    if (!gate) KEEL_TRY(keel_semaphore_signal(self->gate, opened.value));
    KEEL_TRY(keel_queue_run(self->rig.queue, KEEL_AFTER(opened), *op, &last));
    for (uint32_t i = 1; i < self->setting.job.repeat; i++)
        KEEL_TRY(keel_queue_run(self->rig.queue, KEEL_AFTER(last), *op, &last));
    if (gate) KEEL_TRY(keel_semaphore_signal(self->gate, opened.value));
    return rig_wait(last);
}

static keel_status_t endure_round(void *state, tally_t *tally)
{
    endure_t *self = state;
    uint32_t batches = self->setting.job.samples, half = batches / 2;
    double early = 0, late = 0;
    keel_op_t op =
        keel_op_dispatch(self->rig.entry, keel_groups(1, 1, 1), NULL, 0, KEEL_NO_BINDINGS);
    for (uint32_t b = 0; b < batches; b++) {
        if (b == WARM_BATCHES) KEEL_TRY(resident_bytes(&early));
        uint64_t start = keel_now_ns();
        KEEL_TRY(batch_run(self, &op, b < WARM_BATCHES));
        tally_add(tally, (double)(keel_now_ns() - start) / self->setting.job.repeat);
    }
    if (batches < LEAST_BATCHES) return NULL;
    KEEL_TRY(resident_bytes(&late));
    double first = percentile(tally->samples + WARM_BATCHES, half - WARM_BATCHES, QUICK);
    double second = percentile(tally->samples + half, batches - half, QUICK);
    tally->values[0] = (late - early) / (1 << 20);
    tally->values[1] = second / first;
    tally_note(tally,
               "the quick ones: %.0f ns in the first half, %.0f in the second; RSS %.1f MiB at "
               "the end",
               first, second, late / (1 << 20));
    return NULL;
}

const side_t keel_endure = {"keel", endure_begin, endure_round, endure_end};

const row_t memory_rows[] = {
    {.name = "memory.million",
     .what = "1,000,000 submissions, in chains of 1000, each",
     .job = {.kernel = "empty", .repeat = 1000, .samples = 1000},
     .sides = {&keel_endure},
     .bars = {VALUE_WITHIN(1, 0, "MiB more after the first 10,000"),
              VALUE_WITHIN(1.05, 1, "second / first half")},
     .rounds = 1},
    {0},
};
