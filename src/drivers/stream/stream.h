// SPDX-License-Identifier: Apache-2.0
// The stream machine: queues of devices that have streams and events, whoever sells them (api.h).
// docs/stream.md explains it with pictures.
//
// A queue (queue.c) is one stream. A submission is a run (run.c), which is issued to the stream
// when each of its waits is reached or promised, by whoever brought the last of them, and ends when
// the event behind it is over. Events (event.c) are the promises of kit/promise.h: other streams
// wait for them, hosts poll them, and for sleepers the queue has a thread (watch.c) that sleeps
// until the oldest one asked for. Events of a stream come in order, so the end of one is the end of
// all before; flight.c ends their runs in that order. What a stream cannot do, calls and files, is
// done on the host (host.c) while the run is parked.
//
// One thread at a time issues to a stream, holding no lock: whoever finds somebody at it leaves his
// run on the list and goes.
#ifndef KEEL_SRC_DRIVERS_STREAM_STREAM_H_
#define KEEL_SRC_DRIVERS_STREAM_STREAM_H_

#include <keel/driver/driver.h>
#include <pthread.h>

#include "base/lock.h"
#include "drivers/stream/api.h"
#include "executable/cache.h"
#include "kit/blocks.h"
#include "kit/chores.h"
#include "kit/helper.h"
#include "kit/inbox.h"
#include "kit/kept.h"
#include "kit/pages.h"
#include "kit/pending.h"
#include "kit/submission.h"
#include "kit/transfer.h"

enum {
    STREAM_MAX_BINDINGS = 128,
    STREAM_MAX_CONSTANTS = 1024,
    STREAM_MAX_DEPTH = 16,
};

typedef struct stream_device_t stream_device_t;
typedef struct stream_queue_t stream_queue_t;
typedef struct stream_event_t stream_event_t;
typedef struct stream_run_t stream_run_t;
typedef struct stream_prepared_t stream_prepared_t;
typedef struct stream_once_t stream_once_t;

typedef enum stream_commands_t {
    STREAM_COMMANDS_CHOSEN, // per recording: graphs for reusable ones
    STREAM_COMMANDS_GRAPH,
    STREAM_COMMANDS_STREAM,
} stream_commands_t;

enum { STREAM_ADOPTED = 8 }; // of a device, at most

typedef struct stream_options_t {
    const char *library; // the vendor's, borrowed from the URI; NULL: the system's, or it is open
    void *context;       // of the vendor's, the caller's; NULL: the device's own
    stream_h adopted[STREAM_ADOPTED]; // of the caller's, for queues as they come; NULL: none
    uint8_t commands;                 // stream_commands_t
    uint8_t serial;                   // 1: wait after each operation: errors name the one
    uint8_t alloc_sync;               // 1: pools of the host's instead of the vendor's
} stream_options_t;

struct stream_event_t {
    promise_t promise;
    stream_event_t *next; // on a spare list, or in flight on its queue
    stream_device_t *device;
    stream_queue_t *queue;           // there for sure until it is over; see stream_event_queue
    stream_event_h handle;           // owned
    uint64_t launches;               // of the queue up to here
    stream_run_t *runs, **runs_last; // that go on or end with it, while in flight
    bool frees;                      // memory comes back with it, or came before it
    _Atomic bool asked;              // somebody sleeps
    _Atomic bool over;               // it has come, and its runs have gone on or ended
};

// Where the device says what only it can find out, of one list of commands.
typedef struct stream_report_t {
    struct stream_report_t *next;
    const keel_cmd_execute_t *execute; // whose recording it is; NULL: the submission itself
    uint64_t address;                  // of `words`, as the device sees it
    volatile uint32_t words[4];        // place of the command that failed; and why
} stream_report_t;

// Words of the device's memory that the host reads to go on with a command (peek.c). In staging.
typedef struct stream_peek_t {
    volatile uint32_t words[3];
    uint64_t address;                 // of `words`, as the device sees it
    uint32_t loops[STREAM_MAX_DEPTH]; // rounds so far, of the recording that is executed
    bool copied; // when the run goes on, `words` has what its command asked for
} stream_peek_t;

// How far a command got.
typedef enum stream_step_t {
    STREAM_STEP_DONE,   // on to the next command
    STREAM_STEP_AGAIN,  // the same one, when the stream has room or by the queue's own thread
    STREAM_STEP_PARKED, // the run has changed hands, and comes back to the same command
} stream_step_t;

struct stream_run_t {
    keel_submission_t base;
    stream_run_t *next;                  // on an event's list
    const keel_command_t *at;            // the next command
    const keel_command_t *inner;         // of the recording that it executes; NULL: not begun
    uint32_t piece;                      // the same of one that is a row of graphs
    pending_t pending;                   // of the host's
    struct keel_status *_Atomic failure; // owned: the first
    transfers_t transfers;
    block_t *blocks;          // owned: staging of its own
    uint64_t ring_end;        // what it took of the ring ends here; 0: nothing
    stream_report_t *reports; // in staging: what the device finds out
    stream_peek_t *peek;      // in staging: what the host has to know; NULL: nothing yet
    stream_once_t *onces;     // on the stream, to go back to the device's
    bool begun;               // its waits are on the stream
    bool issued;              // work of its own, or waits, may not be over
    bool placed;              // what the stream had before it may not be over
    bool phased;              // has operations of the host, or peeks
    bool ending;              // the last event is behind it
    bool deallocates;         // has deallocas that the pool has yet to be told of
    uint32_t frees;           // deallocas on the stream that may not be over
    bool hungry;              // it was parked for want of memory
    bool put_off;             // no event could be recorded to park or end with
};

// A thread that sleeps for events that are asked for (watch.c).
typedef struct stream_watcher_t {
    stream_queue_t *queue;
    helper_t helper;
    stream_h alarm;      // owned: its own, made when it first sleeps
    stream_event_h bell; // owned: what it sleeps on
    uint64_t at;         // the event that it sleeps for; 0: it is awake
} stream_watcher_t;

// Most often there is one. Each of the others sleeps for something that came into demand later and
// is older.
enum { STREAM_WATCHERS = 4 };

// A graph of one launch, in the hands of one thread at a time (launch.c).
typedef struct stream_blank_t {
    stream_graph_h graph; // owned, as is `exec`
    stream_node_h node;
    stream_exec_h exec; // NULL: there is none
} stream_blank_t;

// One for launches of a queue that differ in their arguments alone.
typedef struct stream_shape_t {
    uint64_t hash;        // of such launches
    uint64_t last;        // of the last that came here, and may have the place if it comes again
    bool refused;         // the vendor lets no graph do them
    stream_blank_t blank; // none: there is none left
} stream_shape_t;

// Of a queue; of a device, for all of them; and graphs of recordings that there is room for, too.
enum { STREAM_SHAPES = 16, STREAM_BLANKS = 32, STREAM_ROOM = 32 };

// Those in nobody's hands.
typedef struct stream_blanks_t {
    bool used;              // or launches are but launched; never changes
    _Atomic uint32_t count; // written with the device's lock, which guards the next
    stream_blank_t list[STREAM_BLANKS];
} stream_blanks_t;

struct stream_queue_t {
    keel_queue_t base;
    stream_queue_t *next, *previous; // in the device's list
    stream_h stream;                 // owned, unless adopted; see stream_queue_onto
    bool adopted;
    _Atomic bool dead; // destroyed, and waits to be buried

    // Issuing: one thread at a time, whoever found no other in the inbox.
    inbox_t inbox;             // what is to be issued
    uint64_t most;             // launches under way at most; 0: the issuer is to be another thread
    stream_event_t *spare;     // owned: events to record
    stream_event_t *looked_at; // retained: the newest when the issuer last looked; NULL: none
    ring_t ring;
    kept_t kept; // of the last dealloca; see pool.c
    stream_shape_t shapes[STREAM_SHAPES];
    uint32_t unloads;       // of the device when they came
    _Atomic uint32_t onces; // of runs under way
    // What others read of it.
    _Atomic uint64_t at; // the submission that is being issued; 0: none
    _Atomic uint64_t launches;
    uint64_t recorded;      // events so far; written with the lock
    _Atomic bool unmarked;  // there is work behind the last event
    _Atomic bool loose;     // there are frees behind it; see settle.c
    _Atomic bool passed_on; // the issuer's thread is to go on with it
    _Atomic bool handed_on; // the device's is
    _Atomic bool parked;    // free.c is, which held it up

    // Telling what has come: one thread at a time, in order.
    lock_t lock;                           // for what is in flight, up to `recorded`
    stream_event_t *flight, **flight_last; // in order
    stream_event_t *freed;                 // retained: the last that was over and has frees before
    bool telling;                          // somebody tells what has come
    uint64_t came;                         // events that have come, as far as anybody knows
    _Atomic uint64_t over;                 // those that were told
    _Atomic uint64_t launches_over;

    // Threads, each made when it is first needed.
    stream_watcher_t watchers[STREAM_WATCHERS]; // what they sleep for is guarded by `lock`
    helper_t issuer;                            // issues what the stream would not take at once
    chores_t calls;                             // of the application's, to be made
};

// Kernels of the machine's own (builtin.c).
typedef struct stream_builtins_t {
    stream_module_h module;
    stream_function_h functions[STREAM_BUILTINS];
} stream_builtins_t;

struct stream_device_t {
    keel_device_t base;
    // What every submission looks at, side by side.
    const stream_api_t *api;
    stream_vendor_t *vendor;          // owned
    struct keel_status *_Atomic lost; // owned: why nothing works any more
    uint32_t generation;              // of fork
    uint64_t most_pending;            // launches of a queue before its own thread goes on
    bool peeks;                       // the host reads what the device cannot act on; see peek.c
    _Atomic uint32_t active;          // work was issued since the keeper looked
    _Atomic uint32_t hungry;          // runs that wait for memory
    _Atomic bool held_up;             // a queue waits for another to be told; see flight.c
    _Atomic bool holding;             // nobody is to issue; see free.c
    stream_options_t options;
    stream_limits_t limits;
    keel_device_ops_t ops;           // those that this one has
    _Atomic(stream_event_t *) spare; // owned: events that came back
    _Atomic uint32_t events;         // there are, with those in use
    lock_t lock;                     // for the lists
    stream_queue_t *queues;
    struct stream_pool_t *pools;
    uint64_t pool_count; // that there were
    stream_prepared_t *prepared;
    stream_once_t *spares; // owned: of graph_once.c
    uint32_t spare_count;
    _Atomic uint32_t onces; // that there are, spare or not
    stream_blanks_t blanks;
    _Atomic uint32_t unloads; // of modules: graphs may name kernels of theirs
    // Deallocas on streams and other frees under way, and those of them that are over: memory comes
    // back with these.
    _Atomic uint64_t frees, frees_over;
    keel_pool_request_t *_Atomic starved; // allocas that wait for it; written with the lock
    stream_builtins_t builtins;
    cache_t modules;      // of executables
    stream_h side;        // owned: a stream beside all queues
    helper_t keeper;      // ends work that nobody asks for
    helper_t issuer;      // issues what would be much for whoever brought it
    bool stopped;         // there are no threads of queues any more; guarded by `lock`
    uint32_t idle_rounds; // the keeper's
    uint64_t relieved;    // the keeper's: of `frees_over`, when it last looked at thresholds
    chores_t chores;      // things to be given back to the vendor
    uint64_t hold_ns;     // free.c's: for how much longer it holds up busy queues, if need be
    uint64_t patience_ns; // and after how long it does without need
    uint64_t held_until;  // and idle ones now; 0: not
    blocks_t blocks;      // staging to be used again
    aio_t *aio;           // owned
    pages_user_t pages;
    struct border_t *_Atomic border; // owned: of semaphores of other APIs; NULL: there are none
    keel_dlpack_place_t dlpack[DEVICE_DLPACK];
};

// An entry point.
typedef struct stream_kernel_t {
    stream_function_h function;
    stream_function_h walk; // takes its grid from memory; NULL: there is none
    uint32_t abi;           // keel_abi_t
    uint32_t local_memory;  // in the code itself; what a dispatch has beyond is dynamic
    uint32_t arguments;     // KEEL_ABI_RAW: bytes that it takes; a launch may have more
} stream_kernel_t;

static inline stream_device_t *stream_device(const keel_device_t *device)
{
    return (stream_device_t *)(uintptr_t)device;
}

static inline stream_queue_t *stream_queue(const keel_queue_t *queue)
{
    return (stream_queue_t *)(uintptr_t)queue;
}

// options.c
keel_status_t stream_options_parse(const keel_uri_t *uri, stream_options_t *options);

// device.c
// Makes a device of a vendor's. Takes over `vendor`, also when it fails.
keel_status_t stream_device_create(const stream_api_t *api, stream_vendor_t *vendor,
                                   const stream_limits_t *limits, const stream_options_t *options,
                                   keel_device_t **device);
bool stream_device_is_ours(const stream_device_t *device); // of this process
// Notes that the device is lost, for the first time, and ends all work and every wait with that
// (device_end). Consumes.
void stream_device_lose(stream_device_t *device, keel_status_t cause) KEEL_COLD;
// Whether the device has the feature, and may use it.
static inline bool stream_device_has(const stream_device_t *device, stream_feature_t feature)
{
    return device->limits.features & feature;
}
static inline bool stream_device_is_lost(const stream_device_t *device)
{
    return __builtin_expect(atomic_load(&device->lost) != NULL, 0);
}
// The cause, a new reference, or NULL.
keel_status_t stream_device_lost(stream_device_t *device) KEEL_COLD;
// Passes an error of the vendor's on; one that says that the device is lost ends everything.
keel_status_t stream_device_note(stream_device_t *device, keel_status_t status);
// Waits until the stream has done all that is on it. A vendor that refuses is asked again for a
// second; a device that never says whether work has ended is as good as lost.
keel_status_t stream_device_drain(stream_device_t *device, stream_h stream);
// An error of the context stays, any other may be gone the next time.
#define STREAM_TWICE(status, call)                                                                 \
    do {                                                                                           \
        if (!((status) = (call))) break;                                                           \
        keel_status_release(status);                                                               \
        (status) = (call);                                                                         \
    } while (0)

// The vendor's context around vendor calls. False, with nothing to leave, if the device is lost or
// has stayed with the parent of a fork.
typedef struct stream_entered_t {
    stream_device_t *device;
    stream_before_t before;
} stream_entered_t;
bool stream_enter(stream_device_t *device, stream_entered_t *entered);
void stream_leave(stream_entered_t *entered);

// event.c
extern const promise_ops_t stream_promise_ops;
// Adds spare ones to a list, and makes what is missing; and takes a list back. Neither is fast.
keel_status_t stream_events_get(stream_device_t *device, uint32_t count, stream_event_t **list);
void stream_events_put(stream_device_t *device, stream_event_t *list);
keel_status_t stream_event_acquire(stream_queue_t *queue, stream_event_t **event); // the issuer's
// Its queue, retained; NULL: the event is over, and the queue may be gone.
stream_queue_t *stream_event_queue(stream_event_t *event);
// Gives up what the flight had, of events that are over and their submissions ended.
void stream_events_release(stream_event_t *list);
void stream_events_destroy(stream_device_t *device, uint32_t most); // so many spare ones
// Destroys some of those that the device has only because it once had much to do. False: none.
bool stream_events_shed(stream_device_t *device);

// queue.c
keel_status_t stream_queue_create(keel_device_t *device, const keel_queue_options_t *options,
                                  keel_queue_t **queue);
void stream_queue_destroy(keel_queue_t *queue);
void stream_queue_submit(keel_queue_t *queue, keel_submission_t *submission);
void stream_queue_push(stream_queue_t *queue, stream_run_t *run); // to be issued, now or soon
// As device_next_queue.
static inline stream_queue_t *stream_queue_next(stream_device_t *device, stream_queue_t *after)
{
    return stream_queue(device_next_queue(&device->base, after ? &after->base : NULL));
}
bool stream_queue_stays_full(stream_queue_t *queue);
// Whether the stream would hold up whoever issues more, and that must not be; the issuer's.
static inline bool stream_queue_is_full(stream_queue_t *queue)
{
    // relaxed: both only grow, and an old value of the second is on the safe side.
    uint64_t issued = atomic_load_explicit(&queue->launches, memory_order_relaxed);
    uint64_t over = atomic_load_explicit(&queue->launches_over, memory_order_relaxed);
    return __builtin_expect(issued - over >= queue->most, 0) && stream_queue_stays_full(queue);
}
// Whether the issuer may not wait for the device: then what it is at is left to the queue's own
// thread, which comes back to it.
static inline bool stream_queue_puts_off(stream_queue_t *queue)
{
    bool patient = queue->most == UINT64_MAX;
    if (!patient) queue->most = 0;
    return !patient;
}
// The stream, to put one piece of work on it, which is counted; the issuer's. All that takes room
// on the stream is put there by this.
static inline stream_h stream_queue_onto(stream_queue_t *queue)
{
    // relaxed: one writer.
    uint64_t before = atomic_load_explicit(&queue->launches, memory_order_relaxed);
    atomic_store_explicit(&queue->launches, before + 1, memory_order_relaxed);
    atomic_store_explicit(&queue->unmarked, true, memory_order_relaxed);
    return queue->stream;
}
void stream_queues_bury(stream_device_t *device); // those that died on threads of their own
bool stream_queues_going(stream_device_t *device, bool last); // some, and are not yet gone
// All of them, for the keeper. Whether there is more; *alone: on a queue for which nobody sleeps.
bool stream_queues_poll(stream_device_t *device, bool *alone);
void stream_queues_stop(stream_device_t *device); // their threads
uint64_t stream_queue_issue(void *queue);         // the issuer's work
uint64_t stream_queues_issue(void *device);       // the same of the device's
void stream_queue_go_on(stream_queue_t *queue);   // with what was held up, if anything
void stream_queue_shed(stream_queue_t *queue);    // gives spare events back, if idle
// Gives back memory that it keeps, if whoever issues is done by the deadline. Entered.
void stream_queue_yield(stream_queue_t *queue, uint64_t deadline);

// flight.c
// Records an event behind what was issued; the issuer's. When it has come, so has stream_run_over;
// from the return on the run is no longer the caller's.
typedef enum stream_mark_t {
    STREAM_SETTLES,  // without a run: there are frees before it, and work behind
    STREAM_PARKS,    // the run goes on then
    STREAM_ENDS,     // it ends then, perhaps with a failure
    STREAM_PROMISES, // and surely without one: its points may be promised
} stream_mark_t;
keel_status_t stream_queue_record(stream_queue_t *queue, stream_run_t *run, stream_mark_t mark);
// Instead, for a run that put nothing on the stream, and with no work behind the last event: ends
// it with that. False if there is none in flight, and the run is still the caller's.
bool stream_queue_join(stream_queue_t *queue, stream_run_t *run);
// Whether all that was recorded has been told; the issuer's.
static inline bool stream_queue_is_quiet(const stream_queue_t *queue)
{
    // acquire: what ended before has ended for whoever learns of what follows.
    return queue->recorded == atomic_load_explicit(&queue->over, memory_order_acquire);
}
// The event has come, and with it all before; 0: tells what is known already. The caller has, or
// is one of, what keeps the queue.
void stream_queue_retire(stream_queue_t *queue, uint64_t number);
void stream_queues_retire(stream_device_t *device); // tells all of them what is known; or lost
// Whether nothing is on the stream, as far as anybody knows.
bool stream_queue_is_idle(stream_queue_t *queue);
// Looks how far it is, to the end if need be.
void stream_queue_poll(stream_queue_t *queue, bool whole);
void stream_frees_watch(stream_device_t *device); // somebody hungry is to be woken with them

// settle.c
// Has the vendor notice what was freed and is over; with `last`, on that queue alone, which goes
// away. Entered. Blocks for a moment, never for what an application runs.
keel_status_t stream_device_settle(stream_device_t *device, stream_queue_t *last);

// watch.c
void stream_watchers_init(stream_queue_t *queue);
// Somebody sleeps for an event of that number: sees to it that a watcher does, unless one sleeps
// for something older, after which it looks. Without a thread the keeper still ends it, only later.
void stream_watchers_wake(stream_queue_t *queue, uint64_t number);
bool stream_is_watched(const stream_queue_t *queue, uint64_t number); // or an older one; locked
void stream_watchers_stop(stream_queue_t *queue);
void stream_watchers_destroy(stream_queue_t *queue); // what they have of the vendor's

// run.c
void stream_run_start(keel_submission_t *submission); // its waits are over or promised
bool stream_run_go(stream_run_t *run); // as far as it goes; false: there is more; the issuer's
// Its event has come. True if that was its end, and submission_end_all is due.
bool stream_run_over(stream_run_t *run);
void stream_run_lost(stream_run_t *run);                       // its event never will
void stream_run_fail(stream_run_t *run, keel_status_t status); // consumes; only the first counts
void stream_run_done(stream_run_t *run);                       // an operation of the host has ended
// Has the run go on when all that was issued is over, too: one more of `pending`, which the caller
// has counted, ends then. The issuer's.
void stream_run_park(stream_run_t *run);
// Where the device reports of the recording that `execute` runs, or of the submission: the same for
// all of its commands. A run that has one may fail when all seemed well, so it promises nothing.
keel_status_t stream_run_report(stream_run_t *run, const keel_cmd_execute_t *execute,
                                uint64_t *address);

// issue.c: commands as work of the stream.
// What a command needs to know of where it is.
typedef struct stream_context_t {
    stream_device_t *device;
    binder_t binder;
} stream_context_t;
// Where a command stands in its list, from 1, as the device reports it.
static inline uint32_t stream_command_place(const keel_commands_t *commands,
                                            const keel_command_t *command)
{
    return (uint32_t)((uintptr_t)command - (uintptr_t)keel_commands_first(commands)) + 1;
}
// The block of parameters of a dispatch. A raw one may be longer.
typedef struct stream_arguments_t {
    _Alignas(16) unsigned char bytes[4096]; // on a stack, so no more
    unsigned char *large;                   // owned, also after an error; NULL: not needed
} stream_arguments_t;
// Whether its kernel can take its grid from memory by itself; others are made elsewhere.
static inline bool stream_dispatch_walks(const keel_cmd_dispatch_t *c)
{
    return !c->raw && ((const stream_kernel_t *)c->kernel)->walk;
}
// Whether it is a dispatch that takes its grid from memory and cannot look there by itself.
static inline bool stream_dispatch_is_foreign(const keel_command_t *command)
{
    const keel_cmd_dispatch_t *c = (const keel_cmd_dispatch_t *)(const void *)command;
    return command->kind == KEEL_CMD_DISPATCH && c->counts_kind != KEEL_COUNTS_DIRECT &&
           !stream_dispatch_walks(c);
}
keel_status_t stream_dispatch_launch(const stream_context_t *context, const keel_cmd_dispatch_t *c,
                                     stream_arguments_t *arguments, stream_launch_t *launch);
keel_status_t stream_grid_refuse(const stream_device_t *device, const keel_cmd_dispatch_t *c,
                                 const uint32_t groups[3]); // it is too large
void stream_fill_launch(const stream_device_t *device, const bound_fill_t *fill,
                        builtin_fill_t *arguments, stream_launch_t *launch);
void stream_copy_launch(const stream_device_t *device, const bound_copy_t *copy,
                        builtin_copy_t *arguments, stream_launch_t *launch);
void stream_builtin_launch(const stream_device_t *device, stream_builtin_t builtin,
                           const void *arguments, uint32_t size, stream_launch_t *launch);
keel_status_t stream_counts_make(const stream_context_t *context, const keel_cmd_dispatch_t *c,
                                 builtin_counts_t *arguments);
// Issues a command of the submission, or of the recording that `execute` runs.
keel_status_t stream_issue(stream_run_t *run, const keel_cmd_execute_t *execute,
                           const keel_command_t *command, stream_step_t *step);

// peek.c
// Whether the host must read memory before the command can be issued; whether it must for one of
// the recording's, or the submission's.
bool stream_command_peeks(const stream_device_t *device, const keel_command_t *command);
bool stream_recording_peeks(const stream_device_t *device, const keel_recording_t *recording);
bool stream_submission_peeks(const stream_device_t *device, const keel_submission_t *submission);
// Reads what `ref` names, up to three words. STREAM_STEP_DONE: it is in run->peek->words. Else the
// run is parked until it is. The issuer's.
keel_status_t stream_peek(stream_run_t *run, const keel_cmd_execute_t *execute,
                          const keel_ref_t *ref, stream_step_t *step);

// launch.c
keel_status_t stream_launch(stream_queue_t *queue, const stream_launch_t *launch); // the issuer's
// The queue gives up what it has for launches, which are over. Entered, as the next.
void stream_shapes_return(stream_queue_t *queue);
// Makes so many, when the device is opened, and some more that go again: the vendor keeps their
// room, for recordings that nobody prepares. May wait for the device.
void stream_blanks_make(stream_device_t *device, uint32_t kept);
void stream_blanks_destroy(stream_device_t *device);

// execute.c
// Issues a recording, as a graph or command by command. Unless *step says that it is done, the next
// call goes on with it. Errors name the command.
keel_status_t stream_execute(stream_run_t *run, const keel_cmd_execute_t *c, stream_step_t *step);
keel_status_t stream_recording_prepare(keel_recording_t *recording, keel_queue_t *queue);
void stream_recording_discard(keel_recording_t *recording);
void stream_graphs_orphan(stream_device_t *device, const stream_queue_t *queue); // it is gone

// graph_once.c
// Launches a dispatch over the grid that is in memory when the device gets there; or puts it off.
keel_status_t stream_once_run(stream_run_t *run, const stream_launch_t *launch,
                              const builtin_counts_t *counts);
void stream_onces_end(stream_run_t *run); // those on the stream are over
// Makes ahead what such dispatches need, if that was not done: may wait for the device. Entered.
keel_status_t stream_onces_reserve(stream_device_t *device);
void stream_onces_forget(stream_device_t *device); // kernels go away, which nobody uses
void stream_onces_destroy(stream_device_t *device);

// host.c
// Operations of the host.
#define STREAM_HOST_KINDS                                                                          \
    (1u << KEEL_CMD_READ | 1u << KEEL_CMD_WRITE | 1u << KEEL_CMD_HOST_CALL | 1u << KEEL_CMD_ALLOCA)
static inline bool stream_host_is(uint32_t kind)
{
    return kind == KEEL_CMD_READ || kind == KEEL_CMD_HOST_CALL;
}
// Begins a call or a read; it ends by stream_run_done.
void stream_host_begin(stream_run_t *run, keel_command_t *command);
// Begins a write: its copies are on the stream.
keel_status_t stream_host_write(stream_run_t *run, keel_command_t *command);

// staging.c
// Page-locked memory, and where the device sees it. Given back by `free_host`.
keel_status_t stream_host_alloc(stream_device_t *device, uint64_t size, void **data,
                                uint64_t *address);
// Memory that the device can read and write until the run ends.
keel_status_t stream_stage(stream_run_t *run, uint64_t size, void **data, uint64_t *address);
// Of at least that size; and back, a list of them, to be used again.
static inline keel_status_t stream_block_acquire(stream_device_t *device, uint64_t size,
                                                 block_t **block)
{
    return blocks_acquire(&device->blocks, size, block);
}
void stream_blocks_return(stream_device_t *device, block_t *blocks);
extern const blocks_ops_t stream_blocks_ops;

// free.c
// Has something given back to the vendor on a thread for that, `waits`: who waits for the device.
// NULL is fine. With a lost device, and in the child of a fork, nothing is.
void stream_free(stream_device_t *device, bool waits, stream_give_t *give, void *what);
// The same for what is more than that: says stream_chore_end when it has called the vendor; `more`:
// and does more than that.
void stream_chore_add(stream_device_t *device, chore_t *chore);
void stream_chore_end(stream_device_t *device, bool more);
bool stream_may_free(void *device, uint64_t waited); // see chores.h

// outside.c
keel_status_t stream_semaphore_import(keel_device_t *base,
                                      const keel_external_semaphore_t *external, uint64_t initial,
                                      keel_semaphore_t **semaphore);

// memory.c, pool.c, executable.c, builtin.c: ops and what belongs to them.
extern const pages_ops_t stream_pages_ops;
keel_status_t stream_buffer_alloc(keel_buffer_t *buffer);
void stream_buffer_free(keel_buffer_t *buffer);
keel_status_t stream_buffer_import(keel_buffer_t *buffer);
void stream_buffer_forget(keel_buffer_t *buffer);
keel_status_t stream_buffer_export(keel_buffer_t *buffer, keel_external_t *external);
keel_status_t stream_pool_create(keel_device_t *device, const keel_pool_options_t *options,
                                 keel_pool_t **pool);
void stream_pool_destroy(keel_pool_t *pool);
void stream_pool_stats(keel_pool_t *pool, keel_pool_stats_t *stats);
keel_status_t stream_pool_trim(keel_pool_t *pool, uint64_t keep);
// Has what is beyond thresholds given back; while the device is busy, after frees only.
void stream_pools_relieve(stream_device_t *device, bool busy);
uint64_t stream_pools_reserved(stream_device_t *device); // by all; entered
void stream_pools_break(stream_device_t *device);        // it is lost: nobody waits for memory
// Kinds of commands that take no time of the stream's.
#define STREAM_BRIEF_KINDS                                                                         \
    (1u << KEEL_CMD_BARRIER | 1u << KEEL_CMD_ALLOCA | 1u << KEEL_CMD_DEALLOCA |                    \
     1u << KEEL_CMD_HOST_CALL)
// Runs an alloca or dealloca. *waits: it goes on by stream_run_done.
keel_status_t stream_alloca(stream_run_t *run, keel_cmd_alloca_t *c, bool *waits);
void stream_alloca_drop(keel_cmd_alloca_t *c); // it will not go on: takes back what it was granted
keel_status_t stream_dealloca(stream_run_t *run, keel_cmd_alloca_t *c);
void stream_kept_free(stream_queue_t *queue);                    // if any; the issuer's
void stream_deallocas_end(stream_run_t *run);                    // those begun so far are over
void stream_frees_tell(stream_device_t *device, uint32_t count); // so many are; feeds the starved
void stream_pools_empty(stream_device_t *device); // of what no buffer holds; as settling
keel_status_t stream_executable_load(keel_device_t *device, const keel_image_t *image,
                                     keel_executable_t **executable);
void stream_executable_unload(keel_executable_t *executable);
keel_status_t stream_executable_global(keel_executable_t *executable, const char *name,
                                       keel_external_t *where);
extern const cache_class_t stream_module_class;
keel_status_t stream_executable_write(keel_executable_t *executable, const keel_external_t *where,
                                      const void *data);
uint32_t stream_executable_rank(keel_device_t *device, keel_image_kind_t kind, const char *target);
keel_status_t stream_builtins_load(stream_device_t *device);
void stream_builtins_unload(stream_device_t *device);
keel_status_t stream_device_clock(keel_device_t *device, uint64_t *now_ns);

#endif
