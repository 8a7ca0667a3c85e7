// SPDX-License-Identifier: Apache-2.0
// Pools: where queue-ordered allocations come from.
//
// When a queue reaches keel_op_alloca, it takes memory from the pool of the buffer. At
// keel_op_dealloca it gives the memory back. Neither blocks the thread that submits.
//
// A limit is for all buffers of a pool together. An alloca that finds no room below it waits on its
// queue, without a thread, and holds up nothing but its own submission, until buffers of the pool
// have given back enough: by a dealloca, submitted before or after, or with their last reference.
// Memory that comes back goes to the alloca that waits longest and fits. An alloca that needs more
// lets smaller ones pass, since the room it waits for may depend on them. With KEEL_POOL_FAILS an
// alloca waits only for deallocas that were submitted before they are needed, and fails with
// KEEL_RESOURCE_EXHAUSTED as soon as none is left that could help.
//
// Allocas that wait can wait for each other, and then for ever: two pieces of work that each hold
// half of a pool and ask for the other half. Give each all its memory by one submission, or a pool
// of its own, or let the pool fail. An alloca that needs memory which its own submission holds (it
// got it before, or gives it back behind a barrier) fails with KEEL_RESOURCE_EXHAUSTED. A wait ends
// with KEEL_CANCELLED when the device is closed, with the cause when it is lost.
//
// When not the limit but the device has no more memory, an alloca waits as with KEEL_POOL_FAILS:
// for deallocas of its own pool (a driver may wait for some of others that run). Either way those
// that wait fail when all deallocas left wait for them: by points of the device's submissions, or
// for values of semaphores that such submissions signal, those very values. By way of larger
// values, of the host, or of another device, this may not be known.
//
// The message of these failures names the size asked for, the bytes in use and the limit.
//
// A pool keeps memory for reuse, for buffers of any size, until keel_pool_trim or its own end. With
// a threshold it gives memory above that back earlier.
//
// Any thread may call every function.
#ifndef KEEL_POOL_H_
#define KEEL_POOL_H_

#include <keel/buffer.h>

// What an alloca does when there is no room for it below the limit of its pool.
typedef enum keel_pool_full_t {
    KEEL_POOL_WAITS, // it waits for room
    KEEL_POOL_FAILS, // it waits for deallocas that were submitted, and fails if they do not help
} keel_pool_full_t;

// How to make a pool.
typedef struct keel_pool_options_t {
    uint32_t memory;       // keel_memory_bit_t; 0: as in keel_buffer_options_t
    uint32_t usage;        // keel_usage_bit_t; 0: all but export, which pools do not support
    uint32_t node;         // which node of the device; below keel_caps_t.nodes
    keel_pool_full_t full; // what happens at the limit
    uint64_t limit;        // bytes that its buffers may hold together, each from its alloca until
                           // its dealloca has run; memory between them that fits none does not
                           // count. 0: all that the device has, and then KEEL_POOL_FAILS
    uint64_t threshold;    // bytes. While the pool has more than this from the system, it soon
                           // returns what no buffer holds; 0: nothing before keel_pool_trim
    uint64_t block_size;   // bytes, a multiple of keel_caps_t.buffer_alignment: the pool has blocks
                           // of this size only and never fragments; 0: any size (two-level
                           // segregated fit)
    const char *name;      // used in messages; may be NULL
} keel_pool_options_t;

// What keel_pool_info tells about a pool.
typedef struct keel_pool_info_t {
    keel_device_t *device;       // whose it is
    keel_pool_options_t options; // as asked for, with the defaults filled in; name "" without one
} keel_pool_info_t;

// The state of a pool at one moment; all but the last two in bytes.
typedef struct keel_pool_stats_t {
    uint64_t limit;    // from the options, or what the device has
    uint64_t used;     // what buffers hold, rounded up as the pool does
    uint64_t peak;     // the highest `used` so far
    uint64_t reserved; // what the pool has from the system, `used` included
    uint64_t buffers;  // how many buffers hold memory
    uint64_t waiting;  // how many allocas wait for room
} keel_pool_stats_t;

KEEL_EXTERN_C_BEGIN

// Makes a pool that has no memory yet. `options` may be NULL.
//
// KEEL_UNSUPPORTED without KEEL_CAP_QUEUE_ALLOCA, if the device has no such memory, or with
// KEEL_USAGE_EXPORT. KEEL_OUT_OF_RANGE for a node that does not exist. KEEL_INVALID_ARGUMENT for a
// block size that is no multiple of the alignment, a limit below one block, or a `full` that is
// none of keel_pool_full_t.
KEEL_API keel_status_t keel_pool_create(keel_device_t *device, const keel_pool_options_t *options,
                                        keel_pool_t **pool) KEEL_MUST_USE;

// Adds a reference and returns `pool`. NULL is fine.
KEEL_API keel_pool_t *keel_pool_retain(keel_pool_t *pool);

// Gives up a reference. The last one returns the pool's memory to the system. Buffers of the pool
// hold references, so it lives at least as long as they do. NULL is fine. Does not wait for work.
KEEL_API void keel_pool_release(keel_pool_t *pool);

// Returns what the pool is. This never changes, and is borrowed from the pool. Never fails.
KEEL_API const keel_pool_info_t *keel_pool_info(const keel_pool_t *pool);

// Writes the state of the pool to `stats`. Other threads may change it at once. In the child of a
// fork all but the limit are 0. Never fails.
KEEL_API void keel_pool_stats(keel_pool_t *pool, keel_pool_stats_t *stats);

// Returns memory that no buffer holds to the system, but keeps at least `keep` bytes of it. Memory
// goes back in large pieces, so more than that may stay.
//
// May block for a moment in the vendor's library, never for work of the application.
// KEEL_DEVICE_LOST if the device is lost.
KEEL_API keel_status_t keel_pool_trim(keel_pool_t *pool, uint64_t keep) KEEL_MUST_USE;

KEEL_EXTERN_C_END

#endif
