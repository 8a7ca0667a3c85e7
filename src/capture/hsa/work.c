// SPDX-License-Identifier: Apache-2.0
#include "capture/hsa/work.h"

#include "capture/hsa/clock.h"
#include "trace/trace.h"

static void work_record(const work_t *work, hsa_time_t time, trace_device_clock_t clock)
{
    trace_record_t *record = trace_take();
    if (!record) return;
    record->flags = trace_flags(work->op, clock);
    record->name = work->name;
    record->start = time.start;
    record->end = time.end;
    record->id = work->queue;
    record->submission = work->call;
    if (work->op == TRACE_OP_COPY) {
        record->a[0] = work->size;
        record->a[1] = work->kind;
    } else {
        record->shape = work->shape;
    }
    trace_put(record, TRACE_GPU);
}

void work_end(const work_t *work, hsa_time_t time)
{
    work_record(work, hsa_clock_ns(time), TRACE_BOOT_NS);
}

void work_note(const work_t *work)
{
    work_record(work, (hsa_time_t){work->submitted, work->submitted}, TRACE_HOST);
}
