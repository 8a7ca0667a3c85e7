// SPDX-License-Identifier: Apache-2.0
// Devices, queues and runs, which every room has a part of.
#ifndef KEEL_SRC_DRIVERS_METAL_BASE_DEVICE_H_
#define KEEL_SRC_DRIVERS_METAL_BASE_DEVICE_H_

#include <keel/driver/driver.h>

#include "base/aio.h"
#include "base/lock.h"
#include "drivers/metal/base/messages.h"
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

#endif
