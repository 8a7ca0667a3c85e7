// SPDX-License-Identifier: Apache-2.0
// The cpu driver: workgroups on threads of the host.
//
// A node (node.c) has workers (worker.c), which take runs from its lists. A run (run.c) is a
// submission being executed: a walk over its commands (walk.c) that any worker can go on with. A
// worker begins a run alone, with no lock and no atomic operation per command; when a stage (what
// lies between two barriers) turns out to take long, it opens the run, and others join and claim
// chunks of it (chunk.c does the work of one) under the run's lock. The worker that ends the last
// chunk before a barrier goes on alone.
#ifndef KEEL_SRC_DRIVERS_CPU_CPU_H_
#define KEEL_SRC_DRIVERS_CPU_CPU_H_

#include <pthread.h>
#include <string.h>

#include <keel/driver/driver.h>
#include <keel/host_kernel.h>

#include "base/aio.h"
#include "base/lock.h"
#include "base/thread.h"
#include "base/topology.h"
#include "drivers/cpu/options.h"
#include "executable/cache.h"
#include "kit/across.h"
#include "kit/submission.h"

enum {
    CPU_LEVELS = 5, // priorities
    CPU_MAX_BINDINGS = 128,
    CPU_MAX_CONSTANTS = 4096,
    CPU_MAX_DEPTH = 16,
    CPU_MAX_LOCAL = KEEL_HOST_LOCAL_MEMORY,
};

typedef struct cpu_device_t cpu_device_t;
typedef struct cpu_node_t cpu_node_t;
typedef struct cpu_queue_t cpu_queue_t;
typedef struct cpu_run_t cpu_run_t;

typedef struct cpu_detached_t {
    keel_call_t call;
    keel_queue_t *queue; // retained: it keeps the device
} cpu_detached_t;

typedef struct cpu_worker_t {
    cpu_node_t *node; // borrowed
    uint32_t index;   // in the device
    pthread_t thread;
    bool started;
    void *local; // owned: workgroup memory
    uint32_t local_size;
    cpu_run_t *next;   // set off by the run that just ended, to be run next without the lists
    uint32_t in_turn;  // runs taken that way in a row
    bool ending;       // the thread is signalling the end of a run
    bool guest;        // no worker: a thread that runs something for itself, and must not poll
    uint64_t random;   // shuffle
    uint64_t yield_at; // shuffle: no earlier
    struct {
        cpu_detached_t *calls; // owned
        size_t count, capacity;
    } detached; // calls to make when the run is over
} cpu_worker_t;

// An entry point.
typedef struct cpu_kernel_t {
    keel_host_kernel_fn fn;
    _Atomic uint32_t cost;   // ticks per workgroup, as last seen; 0: never
    _Atomic uint32_t traced; // its name in a trace; 0: none so far
} cpu_kernel_t;

// Units of a command that are dealt out; deal.c.
typedef struct cpu_deal_t {
    _Alignas(64) const keel_command_t *command;
    const keel_commands_t *commands;
    const keel_cmd_execute_t *execute;
    uint64_t first;
    uint32_t number;                    // cpu_run_t.dealt
    _Alignas(64) _Atomic uint64_t left; // not ended; all write it, so it has a cache line
} cpu_deal_t;

// What is left of a deal's part for one worker; deal.c.
typedef struct cpu_share_t {
    _Alignas(64) _Atomic uint64_t word;
} cpu_share_t;

enum { CPU_DEALS = 4, CPU_MAX_SHARES = 64 };

// A submission being executed. Touched by one worker alone, or under the lock while it is shared.
struct cpu_run_t {
    keel_submission_t base;
    cpu_run_t *next;                   // in its queue's list
    const keel_commands_t *commands;   // the submission's, or those of the recording it executes
    const keel_command_t *at;          // the next command
    const keel_cmd_execute_t *execute; // the command that executes the recording; NULL: none
    uint64_t unit,
        units;      // of `at`, if it is under way: the next one to claim and how many there are
    uint64_t claim; // how many to claim at once, while alone
    uint64_t stage_start;  // ticks
    uint32_t in_flight;    // chunks claimed and not ended
    uint32_t workers;      // that are on it
    keel_status_t failure; // owned: the first
    uint32_t loops[CPU_MAX_DEPTH];
    struct {
        const keel_command_t *first, *end, *pivot; // of a stage; pivot NULL: none
    } rotation;                                    // shuffle
    uint64_t random;                               // shuffle
    bool listed;      // in the node's list of open runs; guarded by the node's lock
    bool listed_once; // others may have come to know it
    bool held; // put back with units dealt out; in_flight counts one too many, so that an operation
               // that ends does not put it back once more
    struct {
        cpu_run_t *next, *previous;
    } open_link;
    _Alignas(64) lock_t lock;
    uint32_t deal_slot; // of the newest deal
    // Polled without the lock, so on another cache line.
    _Alignas(64) _Atomic uint32_t open; // there may be something to claim under the lock
    _Atomic uint32_t finished;          // nothing more to come
    _Atomic uint32_t dealt;             // the newest deal
    _Atomic uint32_t exhausted;         // the newest deal known to have nothing more to claim
    _Atomic uint32_t most;              // units to claim of a deal at once; a guess
    cpu_deal_t deals[CPU_DEALS];
    cpu_share_t shares[]; // of the newest deal; node->share_count of them
};

struct cpu_queue_t {
    keel_queue_t base;
    cpu_node_t *node;               // borrowed
    uint32_t level;                 // of priority
    cpu_run_t *ready, **ready_last; // guarded by the node's lock
    cpu_queue_t *next;              // in its level's list, if it has ready runs
};

struct cpu_node_t {
    cpu_device_t *device; // borrowed
    cpu_worker_t *workers;
    uint32_t worker_count; // 0: inline
    uint32_t share_count;  // of a deal: one for each worker, up to CPU_MAX_SHARES
    uint32_t first_worker; // the index of its first in the device
    lock_t lock;           // for the lists
    struct {
        cpu_queue_t *first, **last; // taken in turn
    } levels[CPU_LEVELS];
    cpu_run_t *open_runs;
    _Alignas(64) _Atomic uint32_t ready_mask; // levels that have ready runs
    cpu_run_t *_Atomic handed;   // a ready run, for the worker that polls; past the lists
    _Atomic uint32_t open_count; // runs in open_runs
    _Atomic uint32_t spinning;   // workers that poll for any work, at most one
    _Atomic uint32_t joining;    // workers that poll for a call to join a run
    _Atomic uint32_t sleeping;
    _Atomic uint32_t epoch; // what joining workers poll, and sleepers sleep on
    _Atomic uint32_t stopping;
    void (*go_on)(keel_submission_t *); // without workers: with a run whose operation has ended
};

struct cpu_device_t {
    keel_device_t base;
    cpu_node_t *nodes; // owned
    uint64_t spin_ticks, share_ticks, slice_ticks;
    bool shuffle;
    uint64_t seed;
    aio_t *aio;     // owned; NULL on inline devices
    uint32_t level; // of the processor (base/processor.h)
    cache_t libraries;
};

static inline cpu_queue_t *cpu_run_queue(const cpu_run_t *run)
{
    return (cpu_queue_t *)(void *)run->base.queue;
}

static inline cpu_node_t *cpu_run_node(const cpu_run_t *run)
{
    return cpu_run_queue(run)->node;
}

static inline cpu_device_t *cpu_run_device(const cpu_run_t *run)
{
    return cpu_run_node(run)->device;
}

// Its priority.
static inline uint32_t cpu_run_level(const cpu_run_t *run)
{
    return cpu_run_queue(run)->level;
}

// Units of a command that one worker has claimed.
typedef struct cpu_chunk_t {
    const keel_command_t *command;
    const keel_commands_t *commands;
    const keel_cmd_execute_t *execute; // whose binding table and parameters are used
    uint64_t first, count;             // units
    cpu_deal_t *deal;                  // whose units they are; NULL: claimed by themselves
} cpu_chunk_t;

enum { CPU_UNIT_BYTES = 256 << 10 }; // of a fill, update or copy

// The files, from the bottom up: each calls only files that stand before it here. Events that go up
// (an operation has ended) go by the lists of the node, or by its go_on.

// command.c

// The binding table of commands that `execute` executes; NULL: none.
static inline const keel_ref_t *cpu_table(const keel_cmd_execute_t *execute)
{
    return execute ? execute->bindings : NULL;
}

// What the processor finds at an address.
static inline unsigned char *cpu_memory(uint64_t address)
{
    return (unsigned char *)(uintptr_t)address;
}

// The number of workgroups, if it stands in memory.
keel_status_t cpu_counts_read(const keel_cmd_dispatch_t *c, const keel_cmd_execute_t *execute,
                              uint32_t counts[3]);
static inline keel_status_t cpu_dispatch_counts(const keel_cmd_dispatch_t *c,
                                                const keel_cmd_execute_t *execute,
                                                uint32_t counts[3])
{
    memcpy(counts, c->groups, sizeof c->groups);
    return c->counts_kind == KEEL_COUNTS_DIRECT ? NULL : cpu_counts_read(c, execute, counts);
}
// The value that a branch looks at.
keel_status_t cpu_branch_value(const cpu_run_t *run, const keel_cmd_block_t *branch,
                               uint32_t *value);
// Whether the processor can make a copy to or from another device by itself.
static inline bool cpu_reaches(const keel_cmd_across_t *c)
{
    return buffer_is_host(c->other);
}
// What a unit of a command takes, in ticks, by what was seen before; 0: not known.
uint32_t cpu_command_cost(const keel_command_t *command);
void cpu_command_learn(const keel_command_t *command, uint64_t units, uint64_t took);

// deal.c

// Deals out the rest of the command at hand, alone or under the lock. False if that cannot be done
// now, or there is not enough of it.
bool cpu_deal_publish(cpu_run_t *run, uint64_t share_ticks);
// Claims units for a worker, by its index in the node: of its own share, else of another's. Without
// the lock.
bool cpu_deal_claim(cpu_run_t *run, uint32_t index, cpu_chunk_t *chunk);
// Units have ended; true if they were the last: then one chunk less is in flight.
bool cpu_deal_end(cpu_run_t *run, cpu_deal_t *deal, uint64_t count);
// Ends all units that no worker has claimed, under the lock. True if they were the last.
bool cpu_deal_withdraw(cpu_run_t *run);

// Whether there may be units to claim.
static inline bool cpu_deal_is_open(const cpu_run_t *run)
{
    // acquire: pairs with the publication.
    return atomic_load_explicit(&run->dealt, memory_order_acquire) !=
           atomic_load_explicit(&run->exhausted, memory_order_relaxed);
}

// At least as many units as can be claimed. Under the lock.
static inline uint64_t cpu_deal_left(const cpu_run_t *run)
{
    if (!cpu_deal_is_open(run)) return 0;
    return atomic_load_explicit(&run->deals[run->deal_slot].left, memory_order_relaxed);
}

// Whether there may be something to claim.
static inline bool cpu_run_is_open(const cpu_run_t *run)
{
    // acquire: pairs with the worker that opened it.
    return atomic_load_explicit(&run->open, memory_order_acquire) || cpu_deal_is_open(run);
}

// walk.c: all of it alone, or under the lock.

typedef enum cpu_step_t {
    CPU_STEP_CHUNK, // work was claimed
    CPU_STEP_SHARE, // the command at hand is worth dealing out; alone only
    CPU_STEP_WAIT,  // others must end first
    CPU_STEP_ALONE, // a barrier is passed, and no other worker has work
    CPU_STEP_LEFT,  // the worker has left for something more urgent; not by cpu_walk_next
    CPU_STEP_DONE,
} cpu_step_t;

// Goes on until there is work to claim or nothing to do.
cpu_step_t cpu_walk_next(cpu_run_t *run, bool alone, cpu_chunk_t *chunk);
// Deals out the command at hand, if it is under way and may be dealt out.
void cpu_walk_deal(cpu_run_t *run);
// Consumes `status`. The first failure counts, and what is dealt out and not claimed is not run any
// more.
void cpu_walk_fail(cpu_run_t *run, keel_status_t status);

// Whether there is more to claim before the next barrier.
static inline bool cpu_walk_has_more(const cpu_run_t *run)
{
    if (run->failure) return false;
    if (run->units) return true;
    return run->at != keel_commands_end(run->commands) && !keel_command_is_barrier(run->at->kind);
}

// node.c: the lists, and sleeping.

extern THREAD_LOCAL cpu_worker_t *cpu_this_worker; // that this thread is; NULL: none
// The queue that this thread is submitting to, which its caller keeps.
extern THREAD_LOCAL const keel_queue_t *cpu_submitting;
keel_status_t cpu_node_init(cpu_node_t *node, cpu_device_t *device, uint32_t workers);
void cpu_node_finish(cpu_node_t *node);
void cpu_node_push(cpu_node_t *node, cpu_run_t *run, bool first); // and wakes a worker
// A ready run, to be run alone, or an open one, to join; NULL: nothing to do.
cpu_run_t *cpu_node_take(cpu_node_t *node, cpu_worker_t *worker, bool *alone);
// Lets others join, if there is anything to claim. From then on the run's lock is needed.
void cpu_node_open(cpu_node_t *node, cpu_run_t *run);
void cpu_node_close(cpu_node_t *node, cpu_run_t *run); // no more
// Takes the only worker off a run whose deal has units left, and closes it. False if others are on
// it, or there are none left.
bool cpu_node_leave(cpu_node_t *node, cpu_run_t *run);
void cpu_node_rouse(cpu_node_t *node); // a worker should look: a poller or a sleeper
void cpu_node_call(cpu_node_t *node);  // workers should join: all that poll, or a sleeper
void cpu_node_sleep(cpu_node_t *node); // until there may be something to do
void cpu_node_stop(cpu_node_t *node);  // workers that find nothing to do end

// Whether something more urgent is ready.
static inline bool cpu_node_is_above(const cpu_node_t *node, uint32_t level)
{
    return atomic_load_explicit(&node->ready_mask, memory_order_relaxed) >> level >> 1;
}

// chunk.c

typedef enum cpu_outcome_t {
    CPU_ENDED,   // *status says how
    CPU_GOES_ON, // by itself; the run goes on when it has ended
} cpu_outcome_t;

cpu_outcome_t cpu_chunk_run(cpu_run_t *run, cpu_worker_t *worker, const cpu_chunk_t *chunk,
                            keel_status_t *status);

// run.c

void cpu_run_start(keel_submission_t *submission); // its waits are over
// Works on it until there is nothing to do: from the start, or joining others.
void cpu_run_drive(cpu_run_t *run, cpu_worker_t *worker, bool alone);
// On a node without workers: goes on with a run that waited for an operation, on this thread.
void cpu_run_go_on(keel_submission_t *submission);

// worker.c

keel_status_t cpu_workers_start(cpu_node_t *node);
void cpu_workers_stop(cpu_node_t *node); // waits until they have ended

// placement.c: where workers go.
keel_status_t cpu_count_default(uint32_t *count);
// The processors that `cpus` of the options names; for NULL and "any" those that the process has.
keel_status_t cpu_set(const char *cpus, topology_set_t *set);
keel_status_t cpu_place(cpu_node_t *nodes, uint32_t node_count, const char *cpus);

// info.c: what the device is.
// The processor and its cores, for people.
keel_status_t cpu_hardware(char *name, size_t size);
keel_status_t cpu_info(const cpu_options_t *options, keel_device_info_t *info);

// memory.c, executable.c: ops.
keel_status_t cpu_buffer_alloc(keel_buffer_t *buffer);
void cpu_buffer_free(keel_buffer_t *buffer);
keel_status_t cpu_buffer_import(keel_buffer_t *buffer);
void cpu_buffer_forget(keel_buffer_t *buffer);
keel_status_t cpu_buffer_export(keel_buffer_t *buffer, keel_external_buffer_t *external);
extern const cache_class_t cpu_library_class;
uint32_t cpu_executable_rank(keel_device_t *device, keel_image_kind_t kind, const char *target);
keel_status_t cpu_executable_load(keel_device_t *device, const keel_image_t *image,
                                  keel_executable_t **executable);
void cpu_executable_unload(keel_executable_t *executable);
keel_status_t cpu_executable_global(keel_executable_t *executable, const char *name,
                                    keel_external_buffer_t *where);
keel_status_t cpu_executable_write(keel_executable_t *executable,
                                   const keel_external_buffer_t *where, const void *data);

// device.c
keel_status_t cpu_open(const keel_uri_t *uri, keel_device_t **device);

#endif
