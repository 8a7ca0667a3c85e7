// SPDX-License-Identifier: Apache-2.0
// The host's side of the schedulers that run on the GPUs of a device (device/scheduler.h).
//
//     control.c     the queue and memory of one, and what it tells
//     scheduler.c   those of a device: their start and end, and their queues
//     piece.c       memory that is shared as long as the device is there: of cells, of queues
//     cause.c       why something failed, by numbers
//     trace.c       what the GPU did by itself, for a trace
//     semaphore.c   semaphores as cells
//     shelf.c       blocks of pools, which the GPU takes by itself
//     behind.c      which submissions wait for others on the GPU
//     pool.c        pools with such blocks
#ifndef KEEL_SRC_DRIVERS_AMDGPU_HOST_SCHEDULER_SCHEDULER_H_
#define KEEL_SRC_DRIVERS_AMDGPU_HOST_SCHEDULER_SCHEDULER_H_

#include "drivers/amdgpu/device/protocol.h"
#include "drivers/amdgpu/device/shelf.h"
#include "drivers/amdgpu/host/program/program.h"
#include "kit/pool.h"

enum {
    AMDGPU_DEVICE_ROOM = AMDGPU_RING / 2, // packets of a queue that are the scheduler's
};

typedef struct amdgpu_piece_t amdgpu_piece_t; // of shared memory: 64 bytes
typedef struct amdgpu_cause_t amdgpu_cause_t; // why something failed
typedef struct amdgpu_shelf_t amdgpu_shelf_t; // shelf.c

// The cell of a semaphore, in a list of the scheduler's.
typedef struct amdgpu_cell_t amdgpu_cell_t;
struct amdgpu_cell_t {
    cell_t *cell; // in memory of the host; the GPU writes there
    amdgpu_cell_t *next, **link;
};

// A scheduler of a GPU, and how it and the host reach each other.
typedef struct amdgpu_control_t {
    amdgpu_device_t *device;
    scheduler_t *shared;       // in memory of the host; the GPU writes there. NULL: not yet
    uint32_t node, number;     // the GPU that it runs on; among those of the device
    block_t *memory;           // owned: of `shared`, and of its arguments
    hsa_queue_t *queue;        // owned; NULL: the scheduler has stopped
    hsa_signal_t signal;       // owned: what the GPU wakes the host by
    _Atomic bool listening;    // the handler of the signal is there
    lock_t drain_lock;         // for the next, and for the end of the queue
    hsa_signal_t drained;      // owned: of a packet that is waited for
    struct trace_ring_t *ring; // NULL: nothing is traced
    block_t *ring_memory;      // owned
    uint64_t dropped;          // of the trace, for want of room in the ring
    _Atomic uint32_t traced;   // its number as a queue of the trace; 0: none
} amdgpu_control_t;

// Those of a device, as many for each GPU, and what they share.
typedef struct amdgpu_scheduler_t {
    amdgpu_control_t controls[AMDGPU_NODES * AMDGPU_CONTROLS]; // of the first GPU, of the second
    uint32_t control_count;
    uint32_t each;                       // for a GPU
    bool lost;                           // the worker's: all that the GPU had has been ended
    _Atomic uint32_t turn[AMDGPU_NODES]; // queues of a GPU, so far: its schedulers take turns
    amdgpu_kernel_t tick, advance, issue, patch;
    lock_t queues_lock;      // for the next; held while they are drained
    amdgpu_queue_t *queues;  // of the device, from their adoption until nothing runs there
    lock_t shelves_lock;     // for the next
    amdgpu_shelf_t *shelves; // of pools
    _Atomic uint32_t shelf_count;
    lock_t runs_lock;   // for changes of `runs`, besides the other; locks of pools come behind it
    lock_t lock;        // for what is below, and tick_ask
    bool closing;       // no tick is asked for any more
    amdgpu_run_t *runs; // that are the GPU's
    block_t *pages;     // owned: what pieces are cut from
    // Pieces that came back. Cells stay cells: one may be in a list of the GPU's still.
    amdgpu_piece_t *spare_cells, *spare_queues, *spare_handles;
    amdgpu_cause_t *causes; // owned: by number less 1
    uint64_t cause_capacity;
    uint64_t cause_next;  // those before it are taken
    amdgpu_cell_t *cells; // those of semaphores
} amdgpu_scheduler_t;

// The scheduler for records of a queue.
static inline amdgpu_control_t *amdgpu_control_of(const keel_queue_t *queue)
{
    return amdgpu_queue(queue)->control;
}

// control.c
keel_status_t amdgpu_control_start(amdgpu_control_t *control) KEEL_MUST_USE;
// Until the last packet of a queue, NULL: of its own, has ended.
void amdgpu_control_drain(amdgpu_control_t *control, hsa_queue_t *queue);
// Has the GPU take no more packets of it: the device is lost. Also while it is being stopped.
void amdgpu_control_inactivate(amdgpu_control_t *control);
void amdgpu_control_stop(amdgpu_control_t *control); // also after a failed start
// Gives back its memory, when it has stopped and the worker, who looks there, is gone.
void amdgpu_control_clear(amdgpu_control_t *control);
// The rest, when the device has no queues any more: those of a lost one may have a packet that
// counts down a signal of this.
void amdgpu_control_free(amdgpu_control_t *control);

// scheduler.c
// With so many schedulers for each GPU.
keel_status_t amdgpu_scheduler_start(amdgpu_device_t *device, uint32_t each) KEEL_MUST_USE;
// For device_close, while the worker is still there, and behind its end; and the rest, when no
// semaphore is left.
void amdgpu_scheduler_stop(amdgpu_device_t *device);
void amdgpu_scheduler_clear(amdgpu_device_t *device);
void amdgpu_scheduler_free(amdgpu_device_t *device);
// Has a tick look at what the host has changed; nothing, if the device is closed.
void amdgpu_scheduler_ask(amdgpu_control_t *control);
// The host has changed the value of a cell: has those look who wait for it.
void amdgpu_scheduler_wake(amdgpu_device_t *device, cell_t *cell);
// What a scheduler needs of a queue of a GPU; nothing where the host schedules.
keel_status_t amdgpu_scheduler_adopt(amdgpu_device_t *device, amdgpu_queue_t *queue,
                                     uint32_t node) KEEL_MUST_USE;
// The queue is about to be destroyed: waits until nothing runs there any more. When it is gone, its
// memory goes as well.
void amdgpu_scheduler_leave(amdgpu_queue_t *queue);
void amdgpu_scheduler_forget(amdgpu_queue_t *queue);

// piece.c
// A cell, to be filled in but for its cause.
keel_status_t amdgpu_cell_take(amdgpu_device_t *device, amdgpu_cell_t *cell) KEEL_MUST_USE;
void amdgpu_cell_give_back(amdgpu_device_t *device, amdgpu_cell_t *cell);
// What the GPU knows of a buffer of a pool.
keel_status_t amdgpu_handle_take(amdgpu_device_t *device, handle_t **handle) KEEL_MUST_USE;
void amdgpu_handle_give_back(amdgpu_device_t *device, handle_t *handle);
// What the GPU knows of a queue.
keel_status_t amdgpu_shared_queue_take(amdgpu_device_t *device, ring_queue_t **queue) KEEL_MUST_USE;
void amdgpu_shared_queue_give_back(amdgpu_device_t *device, ring_queue_t *queue);
// Keeps a block that the GPU may still write to, until the device goes.
void amdgpu_page_keep(amdgpu_scheduler_t *scheduler, block_t *block);

// cause.c
keel_status_t amdgpu_causes_init(amdgpu_scheduler_t *scheduler) KEEL_MUST_USE;
void amdgpu_causes_free(amdgpu_scheduler_t *scheduler);
// The number of a cause, which it retains. Under the scheduler's lock, and so is what makes it the
// number of a listed cell or record: else it may be taken for free.
uint64_t amdgpu_cause_note(amdgpu_scheduler_t *scheduler, keel_status_t cause);
// A new reference to the cause of a number that such a one has; 0: NULL.
keel_status_t amdgpu_cause_get(amdgpu_device_t *device, uint64_t number);
// The host fails a cell that is listed. The GPU is not told.
void amdgpu_cell_fail(amdgpu_device_t *device, cell_t *cell, keel_status_t cause);
void amdgpu_cell_list(amdgpu_scheduler_t *scheduler, amdgpu_cell_t *cell);
void amdgpu_cell_unlist(amdgpu_scheduler_t *scheduler, amdgpu_cell_t *cell);

// trace.c
// Gives a scheduler a trace ring, if the device is traced; before it runs.
void amdgpu_trace_start(amdgpu_control_t *control);
// Tells the GPU whether the trace is paused. Under the scheduler's lock, so that who looks last at
// the trace also writes last.
void amdgpu_trace_follow(amdgpu_control_t *control);
// Records what is complete, of runs that have not been ended. The device's thread.
void amdgpu_trace_flush(amdgpu_control_t *control);
// The runs of a list of records (record_t) have ended, and are about to go: what the packet
// processor has not closed of them so far is lost, and refers to them no more. Goes over the ring
// once. Behind a flush.
void amdgpu_trace_forget(amdgpu_control_t *control, uint64_t records);
// A flush for the last time, which says what was dropped; and gives back the memory.
void amdgpu_trace_stop(amdgpu_control_t *control);
void amdgpu_trace_clear(amdgpu_control_t *control);

// semaphore.c
keel_status_t amdgpu_semaphore_create(keel_device_t *device, uint64_t initial,
                                      keel_semaphore_t **semaphore);
// The cell of a semaphore that the device keeps; NULL: it does not.
cell_t *amdgpu_cell_of(keel_semaphore_t *semaphore, const keel_device_t *device);

// shelf.c
// Gives a pool a shelf. If there is no memory for one, the host cuts up that of the pool.
void amdgpu_shelf_make(amdgpu_device_t *device, const keel_pool_options_t *options,
                       keel_pool_t *pool);
// NULL: the host cuts up its memory.
shelf_t *amdgpu_shelf_of(const keel_pool_t *pool);
// Has buffers know of the memory that the GPU has given them, before a point is shown that says so.
void amdgpu_shelves_look(amdgpu_device_t *device);
// Tries allocas of the host's that wait for blocks. The device's thread.
void amdgpu_shelves_work(amdgpu_device_t *device);

// behind.c
// As behind_find (kit/behind.h), with those that wait on the GPU.
void amdgpu_behind_find(keel_device_t *device, points_t *points, pool_found_t *found, void *user);

// pool.c
// Pools whose buffers have handles, in which the GPU reads the addresses of their memory; of blocks
// of one size, with a shelf of them.
keel_status_t amdgpu_pool_create(keel_device_t *device, const keel_pool_options_t *options,
                                 keel_pool_t **pool);

#endif
