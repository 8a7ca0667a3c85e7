// SPDX-License-Identifier: Apache-2.0
#include "trace/event.h"

#include <stdio.h>
#include <string.h>

uint32_t trace_queue(_Atomic uint32_t *place, const char *device, const char *name,
                     const void *timeline)
{
    static _Atomic uint32_t last;
    uint32_t known = atomic_load_explicit(place, memory_order_relaxed), none = 0;
    if (__builtin_expect(known != 0, 1)) return known;
    uint32_t number = atomic_fetch_add_explicit(&last, 1, memory_order_relaxed) + 1;
    // relaxed: the number is all there is. One of several threads gives it.
    if (!atomic_compare_exchange_strong_explicit(place, &none, number, memory_order_relaxed,
                                                 memory_order_relaxed))
        return none;
    uint32_t queue_name = trace_name(name), device_name = trace_name(device);
    trace_record_t *record = trace_take_always();
    if (!record) return number;
    record->id = number;
    record->name = queue_name;
    record->start = record->end = trace_now();
    record->a[0] = device_name;
    record->a[1] = (uintptr_t)timeline;
    trace_put(record, TRACE_QUEUE);
    return number;
}

void trace_submit(uint64_t start, trace_work_t work, trace_counts_t counts)
{
    if (!start) return;
    trace_record_t *record = trace_take();
    if (!record) return;
    record->start = start;
    record->end = trace_now();
    record->id = work.queue;
    record->submission = work.submission;
    record->a[0] = counts.commands;
    record->a[1] = counts.waits;
    record->a[2] = counts.signals;
    trace_put(record, TRACE_SUBMIT);
}

void trace_need(trace_work_t work, const void *semaphore, const char *name, uint64_t value)
{
    uint32_t number = name ? trace_name(name) : 0;
    trace_record_t *record = trace_take();
    if (!record) return;
    record->name = number;
    record->start = record->end = trace_now();
    record->id = work.queue;
    record->submission = work.submission;
    record->a[0] = (uintptr_t)semaphore;
    record->a[1] = value;
    trace_put(record, TRACE_NEED);
}

static void moment(trace_kind_t kind, trace_work_t work, uint16_t flags)
{
    trace_record_t *record = trace_take();
    if (!record) return;
    record->flags = flags;
    record->start = trace_now();
    record->end = record->start;
    record->id = work.queue;
    record->submission = work.submission;
    trace_put(record, kind);
}

void trace_ready(trace_work_t work)
{
    moment(TRACE_READY, work, 0);
}

void trace_end(trace_work_t work, keel_status_t status)
{
    moment(TRACE_END, work, (uint16_t)keel_status_code(status));
}

static void part_record(uint16_t flags, uint64_t start, uint64_t end, trace_work_t work,
                        trace_part_t part)
{
    trace_record_t *record = trace_take();
    if (!record) return;
    record->flags = flags;
    record->name = part.name;
    record->start = start;
    record->end = end;
    record->id = work.queue;
    record->submission = work.submission;
    record->a[0] = part.command;
    record->a[1] = part.first;
    record->a[2] = part.count;
    trace_put(record, TRACE_OP);
}

void trace_part(uint64_t start, trace_work_t work, trace_part_t part)
{
    if (start) part_record(trace_flags(part.op, TRACE_HOST), start, trace_now(), work, part);
}

void trace_part_timed(trace_times_t times, trace_work_t work, trace_part_t part)
{
    part_record(trace_flags(part.op, TRACE_DEVICE_NS + times.clock), times.start, times.end, work,
                part);
}

void trace_part_boot(uint64_t start_ns, uint64_t end_ns, trace_work_t work, trace_part_t part)
{
    part_record(trace_flags(part.op, TRACE_BOOT_NS), start_ns, end_ns, work, part);
}

static void boot_record(trace_kind_t kind, uint32_t name, uint64_t at_ns, double value)
{
    trace_record_t *record = trace_take();
    if (!record) return;
    record->flags = trace_flags(0, TRACE_BOOT_NS);
    record->name = name;
    record->start = record->end = at_ns;
    memcpy(&record->a[0], &value, sizeof value);
    trace_put(record, kind);
}

void trace_count_boot(uint32_t name, uint64_t at_ns, double value)
{
    boot_record(TRACE_COUNT, name, at_ns, value);
}

void trace_mark_boot(uint32_t name, uint64_t at_ns)
{
    boot_record(TRACE_MARK, name, at_ns, 0);
}

uint32_t trace_clock_make(void)
{
    static _Atomic uint32_t last;
    // relaxed: nothing but the number counts.
    uint32_t number = atomic_fetch_add_explicit(&last, 1, memory_order_relaxed) + 1;
    return number <= TRACE_CLOCK_MOST - TRACE_DEVICE_NS ? number : 0;
}

void trace_pair(uint32_t clock, uint64_t device_ns, uint64_t host_ns, uint64_t error_ns)
{
    trace_record_t *record = trace_take_always();
    if (!record) return;
    record->id = clock;
    record->start = device_ns;
    record->a[0] = host_ns;
    record->a[1] = error_ns;
    trace_put(record, TRACE_PAIR);
}

// Pools are numbered, since names may be alike.
static uint32_t pool_number(const char *device, const char *name)
{
    static _Atomic uint32_t last;
    char text[256];
    uint32_t number = atomic_fetch_add_explicit(&last, 1, memory_order_relaxed) + 1;
    snprintf(text, sizeof text, "%s: bytes in use of pool %u%s%s", device, number, name ? " " : "",
             name ? name : "");
    return trace_name(text);
}

void trace_pool(uint32_t *place, const char *device, const char *name, uint64_t used)
{
    if (!*place) *place = pool_number(device, name);
    trace_record_t *record = trace_take();
    if (!record) return;
    double value = (double)used;
    record->name = *place;
    record->start = record->end = trace_now();
    memcpy(&record->a[0], &value, sizeof value);
    trace_put(record, TRACE_COUNT);
}

void trace_wait(uint64_t start, uint64_t points, keel_status_t status)
{
    if (!start) return;
    trace_record_t *record = trace_take();
    if (!record) return;
    record->start = start;
    record->end = trace_now();
    record->a[0] = points;
    record->a[1] = (uint64_t)keel_status_code(status);
    trace_put(record, TRACE_WAIT);
}
