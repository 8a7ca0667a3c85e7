// SPDX-License-Identifier: Apache-2.0
// A trace in memory: what all reports and exports are made of, wherever it was read from. Texts are
// numbers of `strings`. Indices are stable; nothing is removed.
#ifndef KEEL_SRC_TRACER_MODEL_H_
#define KEEL_SRC_TRACER_MODEL_H_

#include <keel/status.h>
#include <regex.h>
#include <stdbool.h>

#include "trace/format.h"
#include "tracer/map.h"
#include "tracer/strings.h"

// A process, with what its part of the trace lacks.
typedef struct process_t {
    uint32_t pid, parent;
    // Processes of one start of a machine have the same, unless their numbers are the same, as
    // those of containers may be; from 0.
    uint32_t node;
    uint32_t command, rank, boot; // texts
    bool ended;                   // in good order
    uint64_t lost, damaged;       // records
    int64_t real_ns;              // CLOCK_REALTIME less CLOCK_MONOTONIC; 0: not known
} process_t;

typedef struct device_t {
    uint32_t process;
    uint32_t name;
    bool own_clock; // set while its operations are read: they have times of its own clock
} device_t;

// Where events happen: a thread or a queue of a device.
typedef struct track_t {
    bool is_queue;
    uint32_t process;
    uint32_t device; // of a queue
    uint32_t name;
    uint64_t number; // of the thread in its system, or of the queue in its process
} track_t;

typedef enum event_kind_t {
    EVENT_CALL,     // on a thread
    EVENT_OP,       // on a queue
    EVENT_SPAN,     // of the application's, on a thread
    EVENT_MARK,     // the same, without a duration, which those after it have not either
    EVENT_COUNT,    // a counter's new value
    EVENT_LAUNCHES, // of a kernel, counted: by a thread, which began to when the event starts
    EVENT_KINDS,
} event_kind_t;

typedef struct event_t {
    uint64_t start_ns, end_ns; // of CLOCK_MONOTONIC
    uint64_t value; // of an operation: bytes it moved, or its shape; of a counter: a double's bits;
                    // of launches: how many; of a call, while it is read: the number of its stream
    uint32_t name;
    uint32_t args;   // of a call, as text; of an operation: the place in a graph that it is from
    uint32_t domain; // of a call: "hip"; else 0
    uint32_t track;
    uint32_t link; // of an operation: the call that made it, its index and 1; 0: none
    uint8_t kind;  // event_kind_t
    uint8_t op;    // of an operation: trace_op_t
    uint8_t copy;  // of one that moves bytes: trace_copy_t
    uint8_t later; // a part of an operation that is not its first one: not a call of its own
} event_t;

// A submission to one of Keel's queues. Times are 0 if they are not known.
typedef struct work_t {
    uint32_t track;
    uint32_t call; // the index of the call and 1; 0: none
    uint64_t number;
    uint64_t commands, waits, signals;
    uint64_t submit_ns, ready_ns, begin_ns, end_ns;
    uint32_t status; // keel_code_t
} work_t;

// A point that a submission waited for.
typedef struct need_t {
    uint32_t work;
    uint32_t on;   // the submission that makes the point, its index and 1; 0: not known, or none
    uint32_t name; // of the semaphore, if no submission is known
    uint64_t value;
} need_t;

// What is left out as a trace is read; NULL: nothing.
typedef struct filter_t {
    const regex_t *kernels, *calls; // names of operations and of calls that are kept
} filter_t;

// Zeroed, it is empty.
typedef struct model_t {
    strings_t strings;
    filter_t filter; // set before anything is read
    uint8_t *kept;   // owned: for each string, a bit for each filter that it passes
    uint32_t kept_count, kept_capacity;
    uint64_t left_out;    // files of processes that are not in it: they cannot be read
    uint32_t left_why;    // a text: of the first of these
    process_t *processes; // owned, as all that follow
    device_t *devices;
    track_t *tracks;
    event_t *events;
    work_t *works;
    need_t *needs;         // those of one submission follow each other
    trace_shape_t *shapes; // number 0 is none
    map_t shape_places;    // their numbers by a hash
    map_t track_places;    // the same of tracks
    uint32_t process_count, device_count, track_count, event_count, work_count, shape_count,
        need_count;
    uint32_t process_capacity, device_capacity, track_capacity, event_capacity, work_capacity,
        shape_capacity, need_capacity;
} model_t;

void model_finish(model_t *model);

// Each adds one item and gives its index. A device or track that is there already is found. The
// node of a process is set.
keel_status_t model_process(model_t *model, process_t process, uint32_t *index) KEEL_MUST_USE;
keel_status_t model_device(model_t *model, device_t device, uint32_t *index) KEEL_MUST_USE;
keel_status_t model_track(model_t *model, track_t track, uint32_t *index) KEEL_MUST_USE;
keel_status_t model_work(model_t *model, work_t work, uint32_t *index) KEEL_MUST_USE;
keel_status_t model_need(model_t *model, need_t need) KEEL_MUST_USE;

// Adds an event, if the filters let it: index UINT32_MAX if not. One that ends before it starts,
// which only damaged traces have, gets no duration.
keel_status_t model_event(model_t *model, event_t event, uint32_t *index) KEEL_MUST_USE;

// Moves an event in time; beyond the end of all time it has no duration.
void event_move(event_t *event, uint64_t by_ns);

// Notes that files are left out, and why.
keel_status_t model_leave_out(model_t *model, uint64_t count, const char *why) KEEL_MUST_USE;

// The number of a shape; the same for the same.
keel_status_t model_shape(model_t *model, trace_shape_t shape, uint64_t *number) KEEL_MUST_USE;

static inline keel_status_t model_text(model_t *model, const char *text, uint32_t *number)
{
    return strings_add(&model->strings, text, number);
}

static inline const char *model_string(const model_t *model, uint32_t number)
{
    return strings_text(&model->strings, number);
}

// What an event is called: its name, or what kind of operation it is.
const char *model_name(const model_t *model, const event_t *event);

// The first and the last moment of all events and submissions; both 0 if there is no event.
typedef struct range_t {
    uint64_t first_ns, last_ns;
} range_t;
range_t model_range(const model_t *model);

// Some part of the trace is missing.
bool model_is_incomplete(const model_t *model);

#endif
