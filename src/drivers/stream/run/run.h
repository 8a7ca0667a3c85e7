// SPDX-License-Identifier: Apache-2.0
// A run: a submission on its way through the stream. Its commands are issued one after another;
// what the stream cannot do the host does, while the run is parked.
#ifndef KEEL_SRC_DRIVERS_STREAM_RUN_RUN_H_
#define KEEL_SRC_DRIVERS_STREAM_RUN_RUN_H_

#include "drivers/stream/memory/memory.h"
#include "kit/across.h"
#include "kit/bind.h"
#include "kit/command.h"
#include "kit/pending.h"
#include "kit/transfer.h"

typedef struct stream_run_t stream_run_t;
typedef struct stream_indirect_t stream_indirect_t;
typedef struct stream_stamps_t stream_stamps_t;

// Where the device reports what only it can find out, of one list of commands. In staging.
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

// What may not have ended yet of the stream, as far as the run has to wait for it.
typedef enum stream_tail_t {
    STREAM_TAIL_NONE,
    STREAM_TAIL_OTHERS, // what the stream had before the run
    STREAM_TAIL_OWN,    // work or waits of the run's own
} stream_tail_t;

// What the last copy between devices has found: the next one is most often of the same memory.
typedef struct stream_reach_t {
    keel_device_t *visited;    // until what the run has issued is over; NULL: none
    const keel_buffer_t *root; // memory of the host; NULL: none
    uint64_t address;          // of the root, as the device sees it
    uintptr_t start, end;      // of it, page-locked in one piece
} stream_reach_t;

struct stream_run_t {
    union {
        keel_submission_t base;
        stream_segment_t segment;
    };
    const keel_command_t *at;            // the next command
    const keel_command_t *inner;         // of the recording that it executes; NULL: not begun
    uint32_t piece;                      // the same of a recording that is several graphs
    uint32_t waits;                      // so many of its waits are on the stream, or need not be
    pending_t pending;                   // operations of the host
    struct keel_status *_Atomic failure; // owned: the first
    transfers_t transfers;
    reclaim_waiter_t starved;     // waits for memory
    block_t *blocks;              // owned: staging of its own
    uint64_t ring_end;            // what it took of the queue's ring ends here; 0: nothing
    stream_report_t *reports;     // what the device finds out
    stream_peek_t *peek;          // what the host has to know; NULL: nothing yet
    stream_indirect_t *indirects; // graphs on the stream, to go back to the device's
    stream_stamps_t *stamps;      // times of its commands, for a trace; NULL: none
    stream_reach_t reach;
    stream_tail_t tail;
    uint32_t frees;   // deallocas on the stream that may not be over
    uint32_t visits;  // of other devices, for copies on the stream that use their memory
    bool deallocates; // has deallocas that the pool does not know of yet
    bool begun;       // its waits are on the stream
    bool hosted;      // has operations of the host, or peeks
    bool hungry;      // it is parked for want of memory
    bool put_off;     // no event could be recorded to park or end with
    bool aside;       // other threads have the queue's turn before it goes on with the command
    uint8_t rounds;   // in which there was no memory for a graph
};

static inline stream_queue_t *stream_run_queue(const stream_run_t *run)
{
    return stream_queue(run->base.queue);
}

static inline stream_device_t *stream_run_device(const stream_run_t *run)
{
    return stream_device(run->base.queue->device);
}

// The run has to wait for that much of the stream, at least.
static inline void stream_run_follow(stream_run_t *run, stream_tail_t tail)
{
    if (run->tail < tail) run->tail = tail;
}

// builtin.c: kernels of the core's own.

// Loads the kernels, and makes the stream beside all queues. Entered.
keel_status_t stream_builtins_load(stream_device_t *device);
// Frees what was loaded; with a lost device, and in the child of a fork, without the vendor.
void stream_builtins_unload(stream_device_t *device);
void stream_builtin_launch(const stream_device_t *device, stream_builtin_t builtin,
                           const void *arguments, uint32_t size, stream_launch_t *launch);
builtin_timestamp_t stream_timestamp_make(const stream_device_t *device, uint64_t target);
keel_status_t stream_device_clock(keel_device_t *device, uint64_t *now_ns);

// dispatch.c: commands as the vendor takes them, with addresses resolved and parameters filled in.

// An entry point.
typedef struct stream_kernel_t {
    stream_function_h function;
    stream_function_h walk;  // takes its grid from memory; NULL: there is none
    uint32_t abi;            // keel_abi_t
    uint32_t local_memory;   // in the code itself; what a dispatch has beyond is dynamic
    uint32_t arguments;      // KEEL_ABI_RAW: bytes that it takes; a launch may have more
    _Atomic uint32_t traced; // its name in a trace; 0: none so far
} stream_kernel_t;

// What a command needs to know of where it is.
typedef struct stream_context_t {
    stream_device_t *device;
    binder_t binder;
} stream_context_t;

// The block of parameters of a dispatch. A raw one may be longer.
typedef struct stream_arguments_t {
    _Alignas(16) unsigned char bytes[4096]; // on a stack, so no more
    unsigned char *large;                   // owned, also after an error; NULL: not needed
} stream_arguments_t;

// Where a command stands in its list, from 1, as the device reports it.
static inline uint32_t stream_command_place(const keel_commands_t *commands,
                                            const keel_command_t *command)
{
    return (uint32_t)((uintptr_t)command - (uintptr_t)keel_commands_first(commands)) + 1;
}

// Whether its kernel can take its grid from memory by itself. Kernels made elsewhere cannot.
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

// Whether the list has such a dispatch.
bool stream_commands_have_foreign(const keel_commands_t *commands);
keel_status_t stream_dispatch_launch(const stream_context_t *context, const keel_cmd_dispatch_t *c,
                                     stream_arguments_t *arguments, stream_launch_t *launch);
// The error of a grid that is too large.
keel_status_t stream_grid_refuse(const stream_device_t *device, const keel_cmd_dispatch_t *c,
                                 const uint32_t groups[3]);
// Whether the vendor's own call fills what it is to fill (quirk fill_word).
bool stream_fill_is_right(const stream_device_t *device, const bound_fill_t *fill);
// Whether no vendor's call fills or copies it (stream_buffer_is_parted).
bool stream_ref_is_parted(const binder_t *binder, const keel_ref_t *ref);
// Whether a kernel of the core's fills it, or copies from one to the other, and no vendor's call of
// a stream: one is parted, or all is the host's (quirks host_copies_wait, host_fills_wait). NULL:
// memory of the host that is no buffer of the device's.
bool stream_fill_is_ours(const stream_context_t *context, const keel_ref_t *target);
bool stream_copy_is_ours(const stream_context_t *context, const keel_ref_t *source,
                         const keel_ref_t *target);
void stream_fill_launch(const stream_device_t *device, const bound_fill_t *fill,
                        builtin_fill_t *arguments, stream_launch_t *launch);
void stream_copy_launch(const stream_device_t *device, const bound_copy_t *copy,
                        builtin_copy_t *arguments, stream_launch_t *launch);
// Has the stream copy; `ours`: by a kernel (stream_copy_is_ours). The issuer's.
keel_status_t stream_copy(stream_run_t *run, const bound_copy_t *copy, bool ours);
keel_status_t stream_counts_make(const stream_context_t *context, const keel_cmd_dispatch_t *c,
                                 builtin_counts_t *arguments);

// launch.c: launches, plain or as graphs of one kernel.

keel_status_t stream_launch(stream_queue_t *queue, const stream_launch_t *launch); // the issuer's
// Whether launches that differ in their arguments alone become graphs.
bool stream_launches_are_graphs(const stream_device_t *device);
keel_status_t stream_launch_slots_make(stream_queue_t *queue);
// The queue gives up its graphs, whose launches are over.
void stream_launch_slots_free(stream_queue_t *queue);
// Makes graphs to keep, when the device is opened. May wait for the device. Entered.
keel_status_t stream_launch_pool_make(stream_device_t *device);
// Makes as many graphs as the vendor is to have room for, and destroys them. May wait for the
// device. Entered.
void stream_graph_room_make(stream_device_t *device);
void stream_launch_pool_destroy(stream_device_t *device);

// indirect.c: graphs for dispatches over grids in memory.

typedef struct stream_indirect_work_t {
    stream_launch_t target, setter;
    stream_grid_args_t grid; // the arguments of the setter
} stream_indirect_work_t;

// What such a graph does for a launch and a grid; without a launch, what a spare one does.
void stream_indirect_work_init(const stream_device_t *device, const stream_launch_t *launch,
                               const builtin_counts_t *counts, stream_indirect_work_t *work);
keel_status_t stream_indirects_create(stream_device_t *device);
// Makes graphs ahead, if there are fewer than `least`. May wait for the device. Entered.
keel_status_t stream_indirects_reserve(stream_device_t *device, uint32_t least);
// Kernels go away: graphs name them no more. May be called on any thread.
void stream_indirects_forget(stream_device_t *device);
void stream_indirects_destroy(stream_device_t *device);
// A graph that does the work, for the queue. NULL: there is none to be had now; *refused: because
// the vendor lets no graph be changed to that kernel. The issuer's.
stream_indirect_t *stream_indirect_take(stream_device_t *device, stream_indirect_work_t *work,
                                        const stream_queue_t *queue, bool *refused);
// Makes one for that kernel alone. May wait for the device. Entered.
keel_status_t stream_indirect_make(stream_device_t *device, stream_indirect_work_t *work,
                                   stream_indirect_t **made);
// Puts it on the stream, and on the list; the issuer's.
keel_status_t stream_indirect_run(stream_queue_t *queue, stream_indirect_t *indirect,
                                  stream_indirect_t **list);
// Those of the list have ended on the stream.
void stream_indirects_return(stream_queue_t *queue, stream_indirect_t **list);

// run.c: the state of a run.

// Only the first failure counts. Consumes.
void stream_run_fail(stream_run_t *run, keel_status_t status);
// An operation of the host has ended.
void stream_run_done(stream_run_t *run);
// Has the run go on when all that was issued is over, too: one more of `pending`, which the caller
// has counted, ends then. The issuer's.
void stream_run_park(stream_run_t *run);
// All is issued, or nothing more will be: ends the run when the stream is there. The issuer's.
void stream_run_finish(stream_run_t *run);
// As stream_hooks_t.
bool stream_run_over(stream_segment_t *segment);
void stream_run_lost(stream_segment_t *segment);
// Where the device reports of the recording that `execute` runs, or of the submission: one place
// for all of its commands. A run that has one may fail when all seemed well, so it promises
// nothing.
keel_status_t stream_run_report(stream_run_t *run, const keel_cmd_execute_t *execute,
                                uint64_t *address);
// Memory that host and device can read and write until the run ends.
keel_status_t stream_stage(stream_run_t *run, uint64_t size, void **data, uint64_t *address);
// In front of work that may take long: frees that were issued behind the last event get an event of
// their own, so that allocas need not wait for the work. The issuer's.
void stream_run_mark_frees(stream_run_t *run);

// alloca.c

// Runs an alloca or dealloca. *waits: it goes on by stream_run_done. The issuer's.
keel_status_t stream_alloca(stream_run_t *run, keel_cmd_alloca_t *c, bool *waits);
// It will not go on: takes back what it was granted.
void stream_alloca_drop(keel_cmd_alloca_t *c);
keel_status_t stream_dealloca(stream_run_t *run, keel_cmd_alloca_t *c);

// host.c: what a stream cannot do.

// Kinds of commands that the host does, and those of them that begin on the host.
#define STREAM_HOST_KINDS                                                                          \
    (1u << KEEL_CMD_READ | 1u << KEEL_CMD_WRITE | 1u << KEEL_CMD_HOST_CALL |                       \
     1u << KEEL_CMD_ALLOCA | 1u << KEEL_CMD_ACROSS)
static inline bool stream_host_is(uint32_t kind)
{
    return kind == KEEL_CMD_READ || kind == KEEL_CMD_HOST_CALL;
}
// Kinds of commands that take no time of the stream's.
#define STREAM_BRIEF_KINDS                                                                         \
    (1u << KEEL_CMD_BARRIER | 1u << KEEL_CMD_ALLOCA | 1u << KEEL_CMD_DEALLOCA |                    \
     1u << KEEL_CMD_HOST_CALL)
// Begins a call or a read; it ends by stream_run_done.
void stream_host_begin(stream_run_t *run, keel_command_t *command);
// Begins a write: its copies are on the stream.
keel_status_t stream_host_write(stream_run_t *run, keel_command_t *command);

// across.c: copies to and from memory of other devices.

// As keel_device_ops_t.device_peers.
bool stream_device_peers(keel_device_t *device, keel_device_t *other);
// Issues a copy, or has it made by others, which ends by stream_run_done. The issuer's.
keel_status_t stream_across(stream_run_t *run, keel_cmd_across_t *c, stream_step_t *step);

// peek.c: what the host reads of the device's memory.

// Whether the host must read memory before the command can be issued; whether it must for one of
// the recording's, or the submission's.
bool stream_command_peeks(const stream_device_t *device, const keel_command_t *command);
bool stream_recording_peeks(const stream_device_t *device, const keel_recording_t *recording);
bool stream_submission_peeks(const stream_device_t *device, const keel_submission_t *submission);
// Reads what `ref` names, up to three words. STREAM_STEP_DONE: it is in run->peek->words. Else the
// run is parked until it is. The issuer's.
keel_status_t stream_peek(stream_run_t *run, const keel_cmd_execute_t *execute,
                          const keel_ref_t *ref, stream_step_t *step);

// stamp.c: times of commands, for a trace. Where stream_run_is_traced says so.

// Whether the commands of a run are to have times.
static inline bool stream_run_is_traced(const stream_run_t *run)
{
    return trace_is_on() && !trace_is_paused() && stream_run_device(run)->traced;
}
// Around each command; without the second one, which comes only if the command was issued, it is
// not recorded. The issuer's.
void stream_stamp_begin(stream_run_t *run) KEEL_COLD;
void stream_stamp_end(stream_run_t *run, const keel_cmd_execute_t *execute,
                      const keel_command_t *command) KEEL_COLD;
// Relates the device's clock to the host's. Waits for the device. To be called when it is opened,
// which gives the clock its number, and closed.
void stream_clock_trace(stream_device_t *device) KEEL_COLD;

// stamped.c

// All that was issued is over: records when.
void stream_stamps_record(stream_run_t *run) KEEL_COLD;

// issue.c

// Issues a command of the submission, or of the recording that `execute` runs. The issuer's.
keel_status_t stream_issue(stream_run_t *run, const keel_cmd_execute_t *execute,
                           const keel_command_t *command, stream_step_t *step);

#endif
