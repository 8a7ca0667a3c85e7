// SPDX-License-Identifier: Apache-2.0
// What the application records.
#include <keel/trace.h>
#include <string.h>

#include "trace/name.h"
#include "trace/trace.h"

bool keel_trace_is_on(void)
{
    return trace_is_on() && !trace_is_paused();
}

uint64_t keel_trace_begin(void)
{
    return trace_start();
}

static void own_record(trace_kind_t kind, uint64_t start, const char *name, double value)
{
    uint32_t number = trace_text(name); // first: it may write records itself
    trace_record_t *record = trace_take();
    if (!record) return;
    record->name = number;
    record->end = trace_now();
    record->start = start ? start : record->end;
    memcpy(&record->a[0], &value, sizeof value);
    trace_put(record, kind);
}

void keel_trace_end(uint64_t start, const char *name)
{
    if (start && trace_is_on()) own_record(TRACE_SPAN, start, name, 0);
}

void keel_trace_mark(const char *name)
{
    if (trace_is_on()) own_record(TRACE_MARK, 0, name, 0);
}

void keel_trace_count(const char *name, double value)
{
    if (trace_is_on()) own_record(TRACE_COUNT, 0, name, value);
}
