// SPDX-License-Identifier: Apache-2.0
// The cpu driver: workgroups on threads of the host.
//
// A node (node.c) has workers (worker.c), which take runs from its lists. A run (run.c) is a
// submission being executed: a walk over its commands that any worker can go on with. A worker
// begins a run alone, with no lock and no atomic operation per command; when a stage (what lies
// between two barriers) turns out to take long, it opens the run, and others join and claim chunks
// of it (chunk.c does the work of one) under the run's lock. The worker that ends the last
// chunk before a barrier goes on alone.
#ifndef KEEL_SRC_DRIVERS_CPU_CPU_H_
#define KEEL_SRC_DRIVERS_CPU_CPU_H_

#include <pthread.h>

#include <keel/driver/driver.h>
#include <keel/host_kernel.h>

#include "base/aio.h"
#include "base/lock.h"
#include "executable/cache.h"
#include "kit/submission.h"

enum {
    CPU_LEVELS = 5, // priorities
    CPU_MAX_BINDINGS = 128,
    CPU_MAX_CONSTANTS = 4096,
    CPU_MAX_DEPTH = 16,
    CPU_MAX_LOCAL = 1 << 20,
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
    cpu_run_t *next;  // set off by the run that just ended, to be run next without the lists
    uint32_t in_turn; // runs taken that way in a row
    bool ending;      // the thread is signalling the end of a run
    bool guest;       // no worker: a thread that runs something for itself, and must not poll
    uint64_t random;  // shuffle
    struct {
        cpu_detached_t *calls; // owned
        size_t count, capacity;
    } detached; // calls to make when the run is over
} cpu_worker_t;

// An entry point.
typedef struct cpu_kernel_t {
    keel_host_kernel_fn fn;
    _Atomic uint32_t cost; // ticks per workgroup, as last seen; 0: never
} cpu_kernel_t;

// Units of a command that are dealt out; deal.c.
typedef struct cpu_deal_t {
    _Alignas(64) const keel_command_t *command;
    const keel_commands_t *commands;
    const keel_cmd_execute_t *execute;
    uint64_t first;
    _Atomic uint64_t left; // not ended
} cpu_deal_t;

enum { CPU_DEALS = 4 };

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
    struct {
        cpu_run_t *next, *previous;
    } open_link;
    _Alignas(64) lock_t lock;
    _Atomic uint32_t open;     // there may be something to claim; polled without the lock
    _Atomic uint32_t finished; // nothing more to come
    uint32_t deal_slot;        // of the newest deal
    _Alignas(64) _Atomic uint64_t deal;
    cpu_deal_t deals[CPU_DEALS];
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
    uint32_t first_worker; // the index of its first in the device
    lock_t lock;           // for the lists
    struct {
        cpu_queue_t *first, **last; // taken in turn
    } levels[CPU_LEVELS];
    cpu_run_t *open_runs;
    _Alignas(64) _Atomic uint32_t ready_mask; // levels that have ready runs
    cpu_run_t *_Atomic handed;   // a ready run, for the worker that polls; past the lists
    _Atomic uint32_t open_count; // runs in open_runs
    _Atomic uint32_t spinning;   // workers that poll, at most one
    _Atomic uint32_t sleeping;
    _Atomic uint32_t epoch; // what sleepers sleep on
    _Atomic uint32_t stopping;
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

// node.c: the lists, and sleeping.
keel_status_t cpu_node_init(cpu_node_t *node, cpu_device_t *device, uint32_t workers);
void cpu_node_finish(cpu_node_t *node);
void cpu_node_push(cpu_node_t *node, cpu_run_t *run, bool first); // and wakes a worker
// A ready run, to be run alone, or an open one, to join; NULL: nothing to do.
cpu_run_t *cpu_node_take(cpu_node_t *node, cpu_worker_t *worker, bool *alone);
// Lets others join, if there is anything to claim. From then on the run's lock is needed.
void cpu_node_open(cpu_node_t *node, cpu_run_t *run);
void cpu_node_close(cpu_node_t *node, cpu_run_t *run); // no more
void cpu_node_rouse(cpu_node_t *node); // a worker should look: a poller or a sleeper
void cpu_node_sleep(cpu_node_t *node); // until there may be something to do
void cpu_node_stop(cpu_node_t *node);  // workers that find nothing to do end

// Whether something more urgent is ready.
static inline bool cpu_node_is_above(const cpu_node_t *node, uint32_t level)
{
    return atomic_load_explicit(&node->ready_mask, memory_order_relaxed) >> level >> 1;
}

// device.c: the queue that this thread is submitting to, which its caller keeps.
extern _Thread_local const keel_queue_t *cpu_submitting;

// worker.c
extern _Thread_local cpu_worker_t *cpu_this_worker;
keel_status_t cpu_workers_start(cpu_node_t *node);
void cpu_workers_stop(cpu_node_t *node); // waits until they have ended

// run.c
void cpu_run_start(keel_submission_t *submission); // its waits are over
// Works on it until there is nothing to do: from the start, or joining others.
void cpu_run_drive(cpu_run_t *run, cpu_worker_t *worker, bool alone);
void cpu_run_resume(cpu_run_t *run,
                    keel_status_t status); // an operation that went on by itself has ended
// Whether there is more to claim before the next barrier. Alone, or under the lock.
bool cpu_run_has_more(const cpu_run_t *run);
void cpu_run_deal(cpu_run_t *run); // deals out the command at hand, if it is under way and may be

// chunk.c
typedef struct cpu_chunk_t {
    const keel_command_t *command;
    const keel_commands_t *commands;
    const keel_cmd_execute_t *execute; // whose binding table is used
    uint64_t first, count;             // units
    cpu_deal_t *deal;                  // whose units they are; NULL: claimed by themselves
} cpu_chunk_t;

enum { CPU_UNIT_BYTES = 256 << 10 }; // of a fill, update or copy

typedef enum cpu_outcome_t {
    CPU_ENDED,   // *status says how
    CPU_GOES_ON, // cpu_run_resume will say
} cpu_outcome_t;

cpu_outcome_t cpu_chunk_run(cpu_run_t *run, cpu_worker_t *worker, const cpu_chunk_t *chunk,
                            keel_status_t *status);
// How many units a command has; 0 if there is nothing to do.
keel_status_t cpu_command_units(const cpu_run_t *run, const keel_command_t *command,
                                uint64_t *units);
// What a unit of a command takes, in ticks, by what was seen before; 0: not known.
uint32_t cpu_command_cost(const keel_command_t *command);
void cpu_command_learn(const keel_command_t *command, uint64_t units, uint64_t took);
// The value that a branch looks at.
keel_status_t cpu_branch_value(const cpu_run_t *run, const keel_cmd_block_t *branch,
                               uint32_t *value);
// The error, said to have happened at the chunk.
keel_status_t cpu_chunk_blame(const cpu_run_t *run, const cpu_chunk_t *chunk, keel_status_t status);

// deal.c
// Deals out the rest of the command at hand, alone or under the lock. False if that cannot be done
// now, or there is not enough of it.
bool cpu_deal_publish(cpu_run_t *run, uint64_t share_ticks);
bool cpu_deal_claim(cpu_run_t *run, uint64_t workers, cpu_chunk_t *chunk); // without the lock
// Units have ended; true if they were the last: then one chunk less is in flight.
bool cpu_deal_end(cpu_deal_t *deal, uint64_t count);
// Takes back what no worker has claimed: how many units, from *next on, of *deal. They are still to
// be ended.
uint64_t cpu_deal_withdraw(cpu_run_t *run, cpu_deal_t **deal, uint64_t *next);
uint64_t cpu_deal_left(const cpu_run_t *run); // to claim

// Whether there may be something to claim.
static inline bool cpu_run_is_open(const cpu_run_t *run)
{
    // acquire: pairs with the worker that opened it.
    return atomic_load_explicit(&run->open, memory_order_acquire) || cpu_deal_left(run);
}

// placement.c: where workers go.
keel_status_t cpu_count_default(uint32_t *count);
// The processor and its cores, for people.
keel_status_t cpu_hardware(char *name, size_t size);
keel_status_t cpu_place(cpu_node_t *nodes, uint32_t node_count, const char *cpus);

// device.c
keel_status_t cpu_open(const keel_uri_t *uri, keel_device_t **device);

// memory.c, executable.c: ops.
keel_status_t cpu_buffer_alloc(keel_buffer_t *buffer);
void cpu_buffer_free(keel_buffer_t *buffer);
keel_status_t cpu_buffer_import(keel_buffer_t *buffer);
void cpu_buffer_forget(keel_buffer_t *buffer);
keel_status_t cpu_buffer_export(keel_buffer_t *buffer, keel_external_t *external);
extern const cache_class_t cpu_library_class;
uint32_t cpu_executable_rank(keel_device_t *device, keel_image_kind_t kind, const char *target);
keel_status_t cpu_executable_load(keel_device_t *device, const keel_image_t *image,
                                  keel_executable_t **executable);
void cpu_executable_unload(keel_executable_t *executable);
keel_status_t cpu_executable_global(keel_executable_t *executable, const char *name,
                                    keel_external_t *where);

#endif
