// SPDX-License-Identifier: Apache-2.0
// What there is: devices, contexts, streams, events. All of it is changed under one lock, which
// every exported function takes (call.h) and the workers take between pieces of work.
#ifndef SIM_CUDA_STATE_H_
#define SIM_CUDA_STATE_H_

#include "cuda/base.h"
#include "cuda/work.h"

#include <pthread.h>

enum { DEVICES_MAX = 16, PRIORITY_LEAST = 0, PRIORITY_GREATEST = -5 };

// The first word of every object behind a handle, so that a wrong handle is noticed.
typedef enum magic_t {
    MAGIC_CONTEXT = 0x43000001,
    MAGIC_STREAM,
    MAGIC_EVENT,
    MAGIC_MODULE,
    MAGIC_FUNCTION,
    MAGIC_POOL,
    MAGIC_GRAPH,
    MAGIC_NODE,
    MAGIC_EXEC,
    MAGIC_SEMAPHORE,
} magic_t;

#define IS(handle, wanted) ((handle) && *(const unsigned *)(handle) == (wanted))

// Frees an object behind a handle, long after it is destroyed, so that its handle is found to be
// wrong and not another's. Clears the magic word.
void object_bury(void *object);

// The place of an event, graph or executable graph in the list of what its context has.
typedef struct kin_t {
    struct kin_t *next, **link; // no link: it stands in none
} kin_t;

typedef struct device_t {
    int ordinal;
    uint64_t used; // bytes, pools' reserves included
    CUresult lost;
    CUcontext primary; // made once, alive while retained
    unsigned primary_count, primary_flags;
    bool primary_ends; // it is being destroyed, for which the lock may be let go
    CUmemoryPool default_pool, pool;
} device_t;

// How far a stream has seen another one by waiting for events.
typedef struct seen_t {
    uint64_t stream, number;
} seen_t;

// One completion that can be waited for: what a record of an event, or the end of a stream,
// leaves behind. Counted by references.
typedef struct mark_t {
    unsigned references;
    bool done;
    uint64_t time_ns;
    uint64_t stream, number; // where it stands: stream and command in it
    seen_t *seen;            // owned: what the stream had seen there; NULL: no other
    unsigned seen_count;
    struct waiter_t *waiters;
} mark_t;

typedef struct waiter_t {
    struct waiter_t *next;
    void (*wake)(struct waiter_t *waiter); // under the lock
} waiter_t;

// A piece of work for a worker of a context.
typedef struct task_t {
    struct task_t *next;
    int priority;
    void (*run)(struct task_t *task);  // without the lock
    void (*done)(struct task_t *task); // with it; the task may be gone after that
} task_t;

typedef struct task_list_t {
    task_t *first, **last;
    unsigned count;
} task_list_t;

typedef enum command_kind_t {
    COMMAND_WORK,   // something for a worker
    COMMAND_RECORD, // a mark is reached
    COMMAND_WAIT,   // for a mark
    COMMAND_GRAPH,  // the launch of an executable graph
    COMMAND_ALLOC,  // memory promised earlier is there
    COMMAND_FREE,   // memory goes back to its pool
} command_kind_t;

typedef struct command_t {
    struct command_t *next;
    command_kind_t kind;
    work_t work;
    mark_t *mark;            // retained
    struct launch_t *launch; // COMMAND_GRAPH; owned
    uint64_t address;        // COMMAND_ALLOC and COMMAND_FREE
    uint32_t correlation;    // of the call that enqueued it; 0: no tool asked
} command_t;

typedef struct capture_t {
    bool on, spoilt;
    CUstreamCaptureMode mode;
    pthread_t thread; // that began it
    CUstream next;    // of all that are captured
} capture_t;

struct CUstream_st {
    unsigned magic;
    CUcontext context;
    CUstream next; // of the context
    uint64_t id;
    unsigned flags;
    int priority;
    pthread_t thread; // that a per-thread default stream belongs to
    bool is_default, per_thread, dead, running;
    command_t *head, *tail;
    uint64_t enqueued, completed; // commands
    unsigned pending;             // of them, work
    bool in_pump;                 // stands on the list of streams to look at
    CUstream pump_next;
    waiter_t waiter;
    task_t task;
    seen_t seen[64];
    unsigned seen_count;
    capture_t capture;
};

struct CUevent_st {
    unsigned magic;
    CUcontext context;
    uint64_t life; // of the context: its id when the event was made
    unsigned flags;
    mark_t *mark; // of the latest record; NULL: never recorded
    kin_t kin;
};

struct CUctx_st {
    unsigned magic;
    CUcontext next; // of all that were ever made
    device_t *device;
    uint64_t id;
    unsigned flags;
    bool alive;
    CUresult error; // sticky
    bool noticed;   // a call has returned it, so all do from now on
    size_t limits[CU_LIMIT_MAX];
    uint32_t peers; // bit n: access to device n's memory is enabled
    CUstream streams, legacy;
    unsigned events, modules, graphs, execs, semaphores; // that exist
    kin_t *kin;          // of them, and of those that it left behind when it ended
    size_t places, room; // that executable graphs have in slabs; that there are
    pthread_t workers[64];
    unsigned worker_count, idle;
    unsigned transfers; // copies and fills that are under way
    unsigned settling;  // calls that wait for all of its work; no thread can enqueue or make more
    bool starting;      // a worker that has not come to its first task
    bool stopping;
    task_list_t ready[PRIORITY_LEAST - PRIORITY_GREATEST + 1]; // the most urgent first
    unsigned ready_count;                                      // in all of them
    pthread_cond_t work;
};

typedef struct state_t {
    pthread_mutex_t lock;
    pthread_cond_t changed; // marks, streams, errors: whatever a call may wait for
    unsigned sleepers;      // calls that do
    bool initialised;
    device_t devices[DEVICES_MAX];
    unsigned device_count;
    CUcontext contexts;
    uint64_t serial;  // of contexts, streams, allocations, nodes
    unsigned kernels; // enqueued or running, in all contexts
} state_t;

extern state_t state;

// Waits for a change while the lock is let go.
void state_wait(void);
void state_notify(void);

// The device behind an ordinal, or NULL.
device_t *device_of(CUdevice ordinal);

// Makes a context with its default stream; NULL when memory is short.
CUcontext context_create(device_t *device, unsigned flags);
// Gives a destroyed context a new life.
bool context_begin(CUcontext context, unsigned flags);
// Ends all of its work and takes all that it has.
void context_destroy(CUcontext context);
// Lists what it has; and takes something off its list.
void context_list(CUcontext context, kin_t *kin);
void kin_remove(kin_t *kin);
// Whatever runs and whatever comes is dropped from now on; the first error stays.
void context_fail(CUcontext context, CUresult error);
// What a call that has waited for the context's work returns: its error, from when no copy or fill
// is under way any more.
CUresult context_report(CUcontext context);

// Whether it is an event, of a context that has not ended since; tells of it otherwise.
bool event_exists(CUevent event);

// The stream behind a handle in the current context, NULL when it is none.
CUstream stream_of(CUcontext current, CUstream handle);
CUstream stream_create(CUcontext context, unsigned flags, int priority);
// Ends a stream with nothing left to do, now or when that is so.
void stream_retire(CUstream stream);

#endif
