// SPDX-License-Identifier: Apache-2.0
// What Keel records of itself. To be called where trace_is_on says so; docs/trace.md lists the
// places. `start` is of trace_start; if that was 0, tracing was turned on meanwhile, and the span
// is left out.
#ifndef KEEL_SRC_TRACE_EVENT_H_
#define KEEL_SRC_TRACE_EVENT_H_

#include <keel/status.h>

#include "trace/name.h"
#include "trace/trace.h"

// A submission, by its queue's number and its own on the queue's timeline.
typedef struct trace_work_t {
    uint32_t queue;
    uint64_t submission;
} trace_work_t;

// The number of a queue, remembered at `place`, which is 0 at first. Its timeline is told by its
// address; NULL: it has none.
uint32_t trace_queue(_Atomic uint32_t *place, const char *device, const char *name,
                     const void *timeline);

// A call has submitted `work`.
typedef struct trace_counts_t {
    uint64_t commands, waits, signals;
} trace_counts_t;
void trace_submit(uint64_t start, trace_work_t work, trace_counts_t counts);

// `work` waits for a point of a semaphore, which is told by its address. `name` may be NULL.
void trace_need(trace_work_t work, const void *semaphore, const char *name, uint64_t value);

// All that `work` waited for has come; it has ended, with a status (borrowed).
void trace_ready(trace_work_t work);
void trace_end(trace_work_t work, keel_status_t status);

// A processor has done a part of an operation of `work`: `count` units from `first`. Of each
// operation one part has the first unit.
typedef struct trace_part_t {
    trace_op_t op;
    uint32_t name;
    uint64_t command;      // its place in its list
    uint64_t first, count; // of what moves bytes, in bytes
} trace_part_t;
void trace_part(uint64_t start, trace_work_t work, trace_part_t part);

// The same with times of a device's clock.
typedef struct trace_times_t {
    uint32_t clock; // its number
    uint64_t start, end;
} trace_times_t;
void trace_part_timed(trace_times_t times, trace_work_t work, trace_part_t part);

// The same with times of CLOCK_BOOTTIME, in ns.
void trace_part_boot(uint64_t start_ns, uint64_t end_ns, trace_work_t work, trace_part_t part);
// At such a time a counter got a value; and something happened. Both by name.
void trace_count_boot(uint32_t name, uint64_t at_ns, double value);
void trace_mark_boot(uint32_t name, uint64_t at_ns);

// A number for a device's clock, whose times are in ns; 0: there is none left.
uint32_t trace_clock_make(void);

// A device's clock said `device_ns` when CLOCK_MONOTONIC was `host_ns`, give or take `error_ns`.
void trace_pair(uint32_t clock, uint64_t device_ns, uint64_t host_ns, uint64_t error_ns);

// The bytes that are in use of a pool have changed. Its counter's number is remembered at `place`,
// which is 0 at first; `name` may be NULL. Not by two threads at once for one pool.
void trace_pool(uint32_t *place, const char *device, const char *name, uint64_t used);

// The host waited for so many points, with a status (borrowed).
void trace_wait(uint64_t start, uint64_t points, keel_status_t status);

#endif
