// SPDX-License-Identifier: Apache-2.0
// What the files of the vendor share. All of it is under one lock, which BEGIN takes and `done`
// gives back.
#ifndef TESTS_DRIVERS_STREAM_VENDOR_INSIDE_H_
#define TESTS_DRIVERS_STREAM_VENDOR_INSIDE_H_

#include <pthread.h>

#include "base/status.h"
#include "drivers/stream/vendor.h"

enum { VENDOR_GREATEST = -2 }; // the priority of streams that are no queue's

// What a handle is. Things are kept until vendor_end, so that a stale handle is noticed.
typedef enum thing_kind_t {
    THING_GONE,
    THING_STREAM,
    THING_EVENT,
    THING_MEMORY,
    THING_LOCKED, // memory of the application's
    THING_MODULE,
    THING_POOL,
    THING_GRAPH,
    THING_EXEC,
    THINGS,
} thing_kind_t;

typedef struct thing_t {
    struct thing_t *next;
    thing_kind_t kind;
    void (*finish)(struct thing_t *thing); // what it owns, at the end of all; may be NULL
} thing_t;

typedef void kernel_fn(const stream_launch_t *launch);
typedef struct kernel_t {
    const char *name;
    kernel_fn *fn;
    uint32_t arguments; // bytes
} kernel_t;
const kernel_t *kernel_find(const char *name);
extern const char *const kernel_builtins[STREAM_BUILTINS];

// Work of a stream, or of a graph. The first four are pieces of work as the test counts them.
typedef enum work_kind_t {
    WORK_LAUNCH,
    WORK_FILL,
    WORK_COPY,
    WORK_RUN, // of a program
    WORK_RECORD,
    WORK_WAIT,
    WORK_FREE,
} work_kind_t;

typedef struct event_t event_t;
typedef struct program_t program_t;

typedef struct work_t {
    struct work_t *next;
    uint64_t order; // over all streams
    work_kind_t kind;
    stream_launch_t launch; // `arguments` are owned
    bound_fill_t fill;
    bound_copy_t copy;
    program_t *program; // owned
    event_t *event;     // borrowed
    uint64_t record;    // of the event
    uint64_t address;   // to be freed
} work_t;

// What no vendor takes.
void launch_check(const stream_launch_t *launch);
void launch_copy(stream_launch_t *to, const stream_launch_t *from);
void work_run(const work_t *work);
void work_finish(work_t *work);
void stream_put(stream_h stream, const work_t *work); // takes over what it owns; may block
void pump(void);                                      // runs what can run
bool queue_has_pending(uint32_t queue, uint32_t n);

// An instantiated graph as one run of it finds it.
void program_run(program_t *program);
void program_release(program_t *program);
uint32_t program_length(const program_t *program); // nodes, but for those of blocks
// A launch of a graph that the device changes, by what graph_updatable gave.
void node_set_grid(uint64_t node, bool enabled, const uint32_t groups[3]);
void node_set_arguments(uint64_t node, uint64_t arguments, uint64_t size);

void memory_end(uint64_t address);

// Things of the vendor's. thing_of looks whether the handle is what it should be.
void *thing_new(thing_kind_t kind, size_t size);
void *thing_of(void *handle, thing_kind_t kind);
void thing_end(void *handle, thing_kind_t kind);
thing_t *thing_first(void);
void misuse(const char *format, ...) KEEL_PRINTF(1, 2);
const vendor_kind_t *kind_now(void); // of the device

// Begins a call: counts it, takes the lock, and blocks or fails as the script says.
keel_status_t begin_call(stream_vendor_t *v, int slot, const char *name);
void begin_void(stream_vendor_t *v, int slot, const char *name);
#define BEGIN(slot)      KEEL_TRY(begin_call(v, SLOT(slot), #slot))
#define BEGIN_VOID(slot) begin_void(v, SLOT(slot), #slot)
void vendor_lock(void);
void changed_wait(void);                  // gives the lock back until something has changed
keel_status_t done(keel_status_t status); // gives it back for good

void memory_slots(stream_api_t *api, uint32_t features); // slots
void stream_slots(stream_api_t *api);
void graph_slots(stream_api_t *api, uint32_t features);
void streams_reset(void);
void memory_reset(void);

#endif
