// SPDX-License-Identifier: Apache-2.0
// The Metal driver. docs/metal.md says how the model maps to Metal's. The files, from the bottom
// up: each calls only those above it in this list.
//
//     messages.c    Metal from plain C
//     memory.c      memory of the device: pieces of MTLBuffers, found by their addresses
//     mapping.c     pages that are mapped for them
//     buffer.c      buffers: allocating, flushing
//     external.c    and those that others have, too
//
//     compile.c     what Apple's compiler does
//     builtin.c     kernels of the driver's own
//     cross.c       MSL of SPIR-V
//     module.c      MTLLibrary and pipelines
//     executable.c  entry points and variables (variables.c)
//
//     queue.c       MTLCommandQueue
//     event.c       events of the program's as semaphores
//     stop.c        cancelling what was committed
//     worker.c      the thread of a device
//     demand.c      whether promises are worth their messages
//     slots.c       promises, and where the GPU writes that they came true
//     ahead.c       submissions that do not wait for the host, but go ahead of promises
//
//     words.c       words of a run that the host and the GPU see
//     staging.c     memory of a run, likewise
//     used.c        buffers that the open encoder has made resident
//     settings.c    what else it has
//     guard.c       dispatches that do nothing if what they went ahead of has failed
//     samples.c     times of encoders, by the GPU's clock
//     encoder.c     command buffers and their encoders; fences and barriers
//     promise.c     promises that runs make
//     transfer.c    fills, updates and copies
//     arguments.c   argument buffers, and blocks that are too large for an encoder
//     dispatch.c    kernels and their arguments
//     stamp.c       timestamps, and times of commands in a trace
//     indirect.c    stretches of recordings that are encoded once
//     peek.c        words that the host must read and does not see
//     across.c      copies to and from other devices
//
//     commit.c      committing, and how that ended
//     run.c         a submission: what becomes of each command
//     driver.c      finding and opening devices; what they can do
#ifndef KEEL_SRC_DRIVERS_METAL_METAL_H_
#define KEEL_SRC_DRIVERS_METAL_METAL_H_

#include <keel/driver/driver.h>

#include "base/aio.h"
#include "base/lock.h"
#include "drivers/metal/messages.h"
#include "executable/cache.h"
#include "kit/chores.h"
#include "kit/poller.h"
#include "kit/run.h"
#include "kit/transfer.h"

enum {
    METAL_OUTSTANDING = 256, // command buffers of a queue; more of them block who makes one
    METAL_FENCES = 64,       // that a queue keeps for later
    METAL_TABLE = 4096,      // bytes of counts behind one guard
    METAL_USED = 32,         // places of a run's own for buffers that it has made resident
    METAL_BYTES = 4096,      // that setBytes takes
    METAL_BINDINGS = 64,     // of a kernel
    METAL_CONSTANTS = 16384, // bytes of these, or of a block of the kernel's own making
    METAL_BLOCK = 16 + 16 * METAL_BINDINGS + METAL_CONSTANTS, // bytes of the largest
    METAL_SPARE = 4,      // argument encoders that a pipeline keeps for later
    METAL_ALIGNED = 4096, // addresses of buffers, at least
    METAL_WORD = 4,       // of what blits want multiples
    METAL_FETCHES = 64,   // command buffers for ranges of managed storage, at a time
    METAL_AHEAD = 4,      // promises that a run goes ahead of without memory of their own
    METAL_SAMPLED = 8,    // counter sample buffers of a device
    METAL_SLICES = 32,    // of each; a run has one
    METAL_SLICE = 128,    // times
    METAL_COUNTED = 32,   // dispatches of a command buffer with counts that the GPU reads
    METAL_STOP = 4 * METAL_COUNTED + 4,        // of the words of a run: two of stop.c
    METAL_WORDS = (4 * METAL_COUNTED + 8) * 4, // bytes, before the table
    METAL_TYPE_SHARED = 1,                     // of the memory types of a discrete GPU
    METAL_PAGE = 16384, // of memory that Metal takes as it is; a multiple of Intel's
};

// Indices of what kernels take.
enum {
    METAL_AT_BLOCK = 0,     // the block of arguments, or an argument buffer
    METAL_AT_VARIABLES = 1, // of the executable
    METAL_AT_CONSTANTS = 1, // beside an argument buffer
    METAL_AT_SIZES = 2      // of what is in it
};

// Kernels of the driver's own, for what blits do not do.
typedef enum metal_builtin_t {
    METAL_FILL, // bytes
    METAL_FILL_WORDS,
    METAL_COPY, // bytes
    METAL_COPY_WORDS,
    METAL_UPDATE, // from constants
    METAL_COUNTS, // those that are too large become 0
    METAL_GUARD,  // all become 0 if what was promised did not happen
    METAL_DONE,   // a word, the last of what was promised
    METAL_BUILTINS
} metal_builtin_t;

typedef struct metal_run_t metal_run_t;
typedef struct metal_stamp_t metal_stamp_t;

// Promises of a device; slots.c, demand.c.
typedef struct metal_promises_t {
    lock_t lock;
    struct metal_slots_t *slots; // counted; NULL: none was needed yet
    struct metal_view_t *views;  // of the slots of other devices; owned; the lock is for these, too
    _Atomic uint32_t lately;     // submissions that are still to make promises, and one more
    _Atomic uint32_t crossing;   // and to signal events
    _Atomic bool native;         // all are to, for the program has asked for handles
} metal_promises_t;

// A run that went ahead and was committed: it may be cancelled. stop.c.
typedef struct metal_stop_t {
    struct metal_stop_t *next, *previous; // of all such
    struct metal_stop_t *also;            // of those that are told at the same time
    metal_run_t *run;
    bool listed, told;
} metal_stop_t;

// Those of a device.
typedef struct metal_stops_t {
    lock_t lock;
    metal_stop_t *all;
    metal_stop_t *first; // that are being told; NULL: none
    id queue;            // for that; retained; NULL: not needed yet; whose `first` is
    _Atomic bool due;    // there may be more to tell
} metal_stops_t;

typedef struct metal_device_t {
    keel_device_t base;
    keel_device_ops_t ops;
    const metal_api_t *api;
    id device;     // retained
    bool discrete; // the GPU has memory of its own
    keel_dlpack_place_t places[3];
    bool encoded;                // argument buffers are made by encoders: they have no addresses
    char cross[512];             // the library of SPIRV-Cross; empty: the system's
    id fetches;                  // a command queue for that, retained; NULL: there is none
    lock_t fetch_turn;           // as metal_queue_t.turn
    id builtins[METAL_BUILTINS]; // pipelines, retained
    cache_t modules;             // of module.c
    runs_t runs;
    unsigned long dispatches; // METAL_CONCURRENT, or METAL_SERIAL
    bool captures;            // queues have capture scopes
    bool indirect;            // recordings are replayed by indirect commands
    bool touches;             // the GPU wants pipelines of these to be set in the encoder
    id residency; // a set of all memory, which queues have, retained; NULL: encoders name it
    metal_promises_t promises;
    metal_stops_t stops;
    struct {
        poller_t poller; // a thread that looks at events which listeners are for
        lock_t lock;     // for the next, while it is made
        id listener;     // retained; NULL: none yet
    } listening;
    struct {
        id set;                     // of counters, retained; NULL: the GPU tells no times
        id buffers[METAL_SAMPLED];  // retained
        uint32_t made, spare_count; // of the next; `lock` guards these
        uint16_t spare[METAL_SAMPLED * METAL_SLICES];
        struct {
            id event; // retained; NULL: none yet
            uint64_t value;
        } order[METAL_SAMPLED * METAL_SLICES]; // of samples and what reads them, for each slice
        _Atomic bool tried, bad;               // one was asked for; and times were missing
    } samples;
    struct {
        uint32_t traced; // its number in a trace; 0: none
        uint64_t offset; // from the host's clock to it
    } clock;
    _Atomic(keel_status_t) failed;   // why it is lost; owned
    bool losing;                     // the worker's
    lock_t lock;                     // for the list, and spare slices
    lock_t set_lock;                 // for the residency set, also while it gets messages
    struct metal_memory_t *memories; // all that buffers have; memory.c
} metal_device_t;

typedef struct metal_queue_t {
    keel_queue_t base;
    id queue;    // retained
    lock_t turn; // of the thread that opens an encoder of it, or commits
    run_queue_t runs;
    lock_t lock;             // for what is below
    id fences[METAL_FENCES]; // retained
    uint32_t fence_count;
    struct metal_memory_t *words[METAL_FENCES]; // owned
    uint32_t words_count;
    id scope;        // for a debugger, retained; NULL: none
    uint32_t scoped; // command buffers that are filled: while there are, the scope is open
} metal_queue_t;

typedef enum metal_encoder_t { METAL_NONE, METAL_BLIT, METAL_COMPUTE } metal_encoder_t;

// A promise that a run went ahead of, until the run has ended.
typedef struct metal_ahead_t {
    struct metal_promise_t *promise; // kept by the submission's wait
    metal_run_t *run;
    struct metal_ahead_t *next; // of the promise
    struct metal_view_t *view;  // of the slots of another device; NULL: none, or they are ours
    id words;                   // the slots, for this GPU; NULL: it does not see them
} metal_ahead_t;

// A submission that was started: its commands are encoded.
struct metal_run_t {
    run_t base;
    // The command buffer that is filled, or was committed.
    id command; // retained; NULL: none
    bool committed;
    id encoder; // the open one, in the keeping of the pool of who drives
    metal_encoder_t kind;
    id pipeline;  // that the encoder has; NULL: none
    id variables; // at their index; NULL: none
    struct {
        const void *code; // the pipeline that it was made for
        uint32_t size;    // of what follows; 0: something else is at these indices
        bool sizes;       // lengths are at their index
        unsigned char block[16 * METAL_BINDINGS]; // addresses and lengths
    } bound;                                      // the argument buffer that the encoder has
    unsigned long local;                          // bytes of threadgroup memory at index 0
    id used_few[METAL_USED], *used; // a table of the buffers that it has made resident: that, or
                                    // owned; NULL: none yet
    uint32_t used_room, used_count;
    const void *named;                  // of these, whose indirect commands
    const keel_cmd_execute_t *replayed; // the last one that indirect.c has seen
    id fence;                           // that orders encoders; the run's; NULL: none yet
    bool fenced;                        // an encoder of this command buffer has updated it
    // Promises that it went ahead of.
    metal_ahead_t few[METAL_AHEAD], *aheads; // `few`, or owned; NULL: none
    uint32_t ahead_count;
    bool guarded; // its grids vanish if one does not come true
    bool stuck;   // one has no event and is of another queue, or is beyond sight: the host waits
    struct {
        id buffer;
        unsigned long offset;   // in it
        uint32_t *counts, left; // there
        const uint32_t *gone;   // whether the GPU has found it cancelled; NULL: there is no table
    } table;                    // grids of guarded dispatches
    metal_stop_t stop;
    // Times of the command buffer at hand; samples.c, stamp.c.
    id samples; // of the device's; NULL: none yet
    uint16_t slice;
    uint32_t sampled, stamp_count;
    struct metal_stamp_t *stamps; // owned
    struct {
        bool wanted; // the next encoder has times: when it ends
        bool both;   // and when it begins
    } timed;
    uint64_t started_ns, ended_ns; // of the last command buffer; 0: not known
    // Memory that the host sees, in place of such that it does not see.
    struct metal_memory_t *staging; // owned
    struct metal_memory_t *chunk;   // of these: what small pieces are cut from; NULL: none
    uint64_t chunk_used;
    struct metal_memory_t *words; // of the queue's: METAL_COUNTED times four, four of peek.c, four
                                  // from METAL_STOP on, and a table
    uint32_t counted; // dispatches of this command buffer with counts that the GPU reads
    struct {
        const keel_command_t *command;
        const keel_cmd_execute_t *execute;
    } counters[METAL_COUNTED]; // whose they are
};

static inline metal_device_t *metal_device(const keel_device_t *device)
{
    return (metal_device_t *)(void *)device;
}

static inline metal_queue_t *metal_queue(const keel_queue_t *queue)
{
    return (metal_queue_t *)(void *)queue;
}

static inline metal_device_t *metal_run_device(const metal_run_t *run)
{
    return metal_device(run->base.submission.queue->device);
}

// An M2 was seen to crash where two threads opened encoders, or committed, on one queue.
static inline lock_t *metal_turn(const metal_run_t *run)
{
    return &metal_queue(run->base.submission.queue)->turn;
}

static inline uint64_t metal_round_up(uint64_t value, uint64_t to)
{
    return (value + to - 1) / to * to;
}

// A place in a buffer of Metal's.
typedef struct metal_place_t {
    id buffer;
    unsigned long offset, length;
    void *data; // for the host; NULL: it does not see the same memory
} metal_place_t;

// memory.c
// A buffer of Metal's that is none of Keel's, but may be found by its address. Takes over `made`.
keel_status_t metal_memory_add(metal_device_t *device, id made, uint64_t size,
                               struct metal_memory_t **memory) KEEL_MUST_USE;
// Has queues that are made from now on see all memory, if Metal has sets for that.
void metal_residency_make(metal_device_t *device);
void metal_residency_release(metal_device_t *device); // memory may be released after it
void metal_memory_remove(metal_device_t *device, struct metal_memory_t *memory);
id metal_memory_buffer(const struct metal_memory_t *memory);
uint64_t metal_memory_address(const struct metal_memory_t *memory);
// Where memory of the device lies, by its address.
keel_status_t metal_place_at(metal_device_t *device, uint64_t address, uint64_t length,
                             metal_place_t *place) KEEL_MUST_USE;
// Where that lies which a command refers to, when everything before the last barrier was encoded.
keel_status_t metal_place(const keel_ref_t *ref, const keel_cmd_execute_t *execute,
                          metal_place_t *place) KEEL_MUST_USE;

// buffer.c
keel_status_t metal_buffer_alloc(keel_buffer_t *buffer);
void metal_buffer_free(keel_buffer_t *buffer);
keel_status_t metal_buffer_flush(keel_buffer_t *buffer, uint64_t offset, uint64_t length);
keel_status_t metal_buffer_invalidate(keel_buffer_t *buffer, uint64_t offset, uint64_t length);

// external.c
keel_status_t metal_buffer_import(keel_buffer_t *buffer);
void metal_buffer_forget(keel_buffer_t *buffer);
keel_status_t metal_buffer_export(keel_buffer_t *buffer, keel_external_buffer_t *external);
void metal_buffer_object(keel_buffer_t *root, void **object, uint64_t *offset);

// compile.c
// Retained; NULL with an error: Metal makes none.
id metal_library_make(metal_device_t *device, const char *text, id options, id *error);
id metal_library_load(metal_device_t *device, id data, id *error);   // of a metallib
id metal_state_make(metal_device_t *device, id function, id *error); // a pipeline
id metal_state_make_indirect(metal_device_t *device, id function);   // for indirect commands

// builtin.c
keel_status_t metal_builtins_make(metal_device_t *device) KEEL_MUST_USE;
void metal_builtins_release(metal_device_t *device);

// executable.c
typedef struct metal_kernel_t {
    struct metal_pipeline_t *code; // of the executable's module
    id variables;                  // a buffer, the executable's; NULL: there are none
    bool launched;                 // it asks Metal for the grid, and not its block
    bool bound;                    // it takes an argument buffer, and constants apart from it
    _Atomic uint32_t traced;       // its name in a trace
} metal_kernel_t;
uint32_t metal_executable_rank(keel_device_t *device, keel_image_kind_t kind, const char *target);
keel_status_t metal_executable_load(keel_device_t *device, const keel_image_t *image,
                                    keel_executable_t **executable);
void metal_executable_unload(keel_executable_t *executable);
keel_status_t metal_executable_global(keel_executable_t *executable, const char *name,
                                      keel_external_buffer_t *where);
keel_status_t metal_executable_write(keel_executable_t *executable,
                                     const keel_external_buffer_t *where, const void *data);

// queue.c
keel_status_t metal_queue_create(keel_device_t *device, const keel_queue_options_t *options,
                                 keel_queue_t **queue);
void metal_queue_destroy(keel_queue_t *queue);
// Around the making of a command buffer, where queues have scopes.
void metal_scope_begin(metal_run_t *run);
void metal_scope_end(metal_run_t *run);
// A fence for the run; NULL: there is none to be had.
id metal_fence_take(metal_run_t *run);
void metal_fence_give_back(metal_run_t *run);

// event.c
keel_status_t metal_semaphore_import(keel_device_t *device,
                                     const keel_external_semaphore_t *external, uint64_t initial,
                                     keel_semaphore_t **semaphore);
bool metal_event_is(keel_semaphore_t *semaphore);
// No encoder is open, and the run ends well if the command buffer at hand does: has that make
// signals of the run.
void metal_events_signal(metal_run_t *run);
void metal_listening_stop(metal_device_t *device); // also after a failed start

// stop.c
// Around the life of a guarded command buffer, before it is committed, and when it has ended:
// between the two the GPU can be told to leave it out.
void metal_stop_begin(metal_run_t *run);
void metal_stop_end(metal_run_t *run);
void metal_queue_cancel(keel_queue_t *queue, keel_status_t cause);
void metal_stops_go_on(metal_device_t *device); // the device's thread

// worker.c
uint64_t metal_worker(void *device); // the thread's work
// The GPU is lost: has the device's thread end the device. Others may go on with runs here. Borrows
// the status.
void metal_worker_lose(metal_device_t *device, keel_status_t status);

// demand.c, slots.c
// Around the life of a device.
void metal_demand_open(void);
void metal_demand_close(void);
void metal_slots_close(metal_device_t *device);
void metal_slots_free(metal_device_t *device);

// ahead.c
// Before a submission waits: what comes after it may have to go ahead.
void metal_ahead_note(keel_submission_t *submission);
void metal_ahead_begin(run_t *run);        // of run_ops_t
void metal_ahead_settle(metal_run_t *run); // before commands are encoded
void metal_ahead_finish(metal_run_t *run); // all is over
void metal_ahead_events(metal_run_t *run); // a command buffer begins
void metal_ahead_fences(metal_run_t *run); // its first encoder begins

// words.c
// Has the run have words, and takes them back.
keel_status_t metal_words_take(metal_run_t *run) KEEL_MUST_USE;
void metal_words_give_back(metal_run_t *run);

// staging.c
// Memory that both see, until the run has ended.
keel_status_t metal_stage(metal_run_t *run, uint64_t size,
                          struct metal_memory_t **memory) KEEL_MUST_USE;
// The same, cut from a larger piece. For the GPU to read; *data: for the host to write.
keel_status_t metal_stage_cut(metal_run_t *run, uint64_t size, metal_place_t *place,
                              void **data) KEEL_MUST_USE;
void metal_stages_release(metal_run_t *run);

// used.c
// A buffer that the open encoder has not used yet is made resident.
void metal_used_add(metal_run_t *run, id buffer);
// An encoder begins, which has no buffer resident; the run has ended.
void metal_used_forget(metal_run_t *run);
void metal_used_release(metal_run_t *run);

// settings.c
void metal_settings_forget(metal_run_t *run); // an encoder begins, which has nothing
void metal_pipeline_set(metal_run_t *run, id pipeline);
// Threadgroup memory at index 0, until another pipeline is set.
void metal_local_set(metal_run_t *run, unsigned long bytes);
// Something else was set where kernels find their arguments.
void metal_indices_taken(metal_run_t *run);

// guard.c
// Has room for the grids of a command; before anything of it is set.
keel_status_t metal_guard_need(metal_run_t *run) KEEL_MUST_USE;
// A dispatch, behind the guard if there is one.
void metal_launch(metal_run_t *run, metal_size_t groups, metal_size_t threads);
// The same for indirect commands.
void metal_launch_commands(metal_run_t *run, id commands, uint32_t begin, uint32_t count);

// samples.c
void metal_samples_find(metal_device_t *device);
void metal_samples_release(metal_device_t *device);
// Whether the command buffer at hand has room for so many times.
bool metal_samples_need(metal_run_t *run, uint32_t count);
void metal_samples_give_back(metal_run_t *run);
// The place of a sample of the run in the buffer.
unsigned long metal_sample_at(const metal_run_t *run, uint32_t index);
id metal_sampled_encoder(metal_run_t *run, metal_encoder_t kind); // with timed.wanted

// encoder.c
// An encoder of that kind, with room for a command buffer, behind what the last barrier is for.
keel_status_t metal_encoder_need(metal_run_t *run, metal_encoder_t kind) KEEL_MUST_USE;
// Ends the open encoder: others follow it.
keel_status_t metal_encoder_hand_over(metal_run_t *run) KEEL_MUST_USE;
void metal_encoder_end(metal_run_t *run); // the same, and no other follows

// promise.c
// Around the end of the last encoder of a run that ends well if the command buffer at hand does:
// promises that, if it is worth it.
void metal_promise_begin(metal_run_t *run);
void metal_promise_signal(metal_run_t *run);                        // that has one
void metal_promise_kept(promise_t *promise, keel_status_t failure); // of run_ops_t

// transfer.c
// A command other than a dispatch that the GPU does.
keel_status_t metal_transfer(metal_run_t *run, const keel_command_t *command,
                             const keel_cmd_execute_t *execute) KEEL_MUST_USE;
// Copies between places of one length, behind what the last barrier is for.
keel_status_t metal_transfer_copy(metal_run_t *run, const metal_place_t *source,
                                  const metal_place_t *target) KEEL_MUST_USE;
// Writes bytes to a place.
keel_status_t metal_transfer_bytes(metal_run_t *run, const void *bytes,
                                   const metal_place_t *target) KEEL_MUST_USE;
// Has the GPU read counts: three words that a dispatch may take, and one that is not 0 if they were
// too large.
keel_status_t metal_transfer_counts(metal_run_t *run, const metal_place_t *source,
                                    const metal_place_t *target) KEEL_MUST_USE;

// arguments.c
// Bytes at an index of the open encoder, by a buffer if they are too many.
keel_status_t metal_bytes_set(metal_run_t *run, const void *bytes, uint32_t size,
                              unsigned long index) KEEL_MUST_USE;
// What a kernel with an argument buffer takes, out of the block of the other kernels.
keel_status_t metal_arguments_set(metal_run_t *run, const keel_cmd_dispatch_t *command,
                                  const keel_cmd_execute_t *execute,
                                  const unsigned char *block) KEEL_MUST_USE;
// The same in memory, for a GPU of tier 2: the argument buffer, and behind it, from these bytes on,
// the constants and the lengths of what is bound.
typedef struct metal_layout_t {
    uint32_t constants, sizes;
    uint32_t bytes; // of all
} metal_layout_t;
metal_layout_t metal_arguments_layout(const keel_cmd_dispatch_t *command);
void metal_arguments_write(const keel_cmd_dispatch_t *command, const unsigned char *block,
                           unsigned char *data, uint64_t address); // of `data`, for the GPU

// dispatch.c
// With room for a command buffer.
keel_status_t metal_dispatch(metal_run_t *run, const keel_cmd_dispatch_t *command,
                             const keel_cmd_execute_t *execute) KEEL_MUST_USE;
// Counts that the GPU has read were too large: the run has failed.
void metal_counts_settle(metal_run_t *run);
// Whether the GPU reads the counts, and not the host.
bool metal_dispatch_counts(const keel_cmd_dispatch_t *command, const keel_cmd_execute_t *execute);
// Whether the host must read what commands before it write.
bool metal_dispatch_reads(const keel_cmd_dispatch_t *command);

// The block of arguments of a dispatch.
keel_status_t metal_block_make(const keel_cmd_dispatch_t *command,
                               const keel_cmd_execute_t *execute, const uint32_t groups[3],
                               unsigned char *block, uint32_t *size) KEEL_MUST_USE;
// Threadgroup memory that the dispatch adds, as Metal takes it.
unsigned long metal_local_of(const keel_cmd_dispatch_t *command);
// Whether its groups have no more threads than `most`, which a pipeline takes.
bool metal_threads_fit(const keel_cmd_dispatch_t *command, unsigned long most);

// stamp.c
keel_status_t metal_device_clock(keel_device_t *device, uint64_t *now_ns);
void metal_clock_trace(metal_device_t *device); // for a trace: at the begin, and at the end
// Whether the GPU can write a timestamp in the command buffer at hand; and has it do so.
bool metal_stamp_can(metal_run_t *run);
// Before it does: true if a sample was encoded, whose end is to tell whether the clock is good.
bool metal_stamp_try(metal_run_t *run, keel_status_t *status);
keel_status_t metal_stamp(metal_run_t *run, const metal_place_t *target) KEEL_MUST_USE;
// In place of that, when what comes before has ended.
uint64_t metal_stamp_late(const metal_run_t *run);
bool metal_is_traced(const metal_run_t *run); // each command has times of its own
// Around a command, for a trace. False: it has to wait, for its command buffer must be its own.
bool metal_trace_begin(metal_run_t *run) KEEL_MUST_USE;
void metal_trace_end(metal_run_t *run, const keel_command_t *command,
                     const keel_cmd_execute_t *execute);
void metal_stamps_settle(metal_run_t *run); // a command buffer has ended well
void metal_stamps_give_back(metal_run_t *run);

// indirect.c
// Whether the device replays recordings so.
void metal_indirect_find(metal_device_t *device, bool wanted);
keel_status_t metal_recording_prepare(keel_recording_t *recording, keel_queue_t *queue);
void metal_recording_discard(keel_recording_t *recording);
// With room for a command buffer. False: the command is to be encoded as it is. True: it was, and
// what follows it up to run->inner.
bool metal_indirect(metal_run_t *run, const keel_command_t *command,
                    const keel_cmd_execute_t *execute, keel_status_t *status);

// peek.c
// The words that the host must read for a command and does not see. RUN_GOES_ON: it has them, or
// needs none.
run_outcome_t metal_peek(metal_run_t *run, const keel_command_t *command,
                         const keel_cmd_execute_t *execute, keel_status_t *status);
// Whether the host must read any for it.
bool metal_reads_words(const keel_command_t *command, const keel_cmd_execute_t *execute);

// across.c
bool metal_device_peers(keel_device_t *device, keel_device_t *other);
keel_status_t metal_across(run_t *run, const keel_cmd_across_t *command,
                           run_across_t *how) KEEL_MUST_USE; // of run_ops_t

// commit.c
// Commits what was encoded, if anything was, and the run waits for it; gives it up if the run has
// failed.
void metal_commit(run_t *run);
// The command buffer has ended, and this is how.
void metal_settle(run_t *run);

// run.c
void metal_queue_submit(keel_queue_t *queue, keel_submission_t *submission);
extern const run_ops_t metal_run_ops;

#endif
