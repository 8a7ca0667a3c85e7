// SPDX-License-Identifier: Apache-2.0
// Buffers, pools and staging of a device, and giving memory back to the vendor.
#ifndef KEEL_SRC_DRIVERS_STREAM_MEMORY_MEMORY_H_
#define KEEL_SRC_DRIVERS_STREAM_MEMORY_MEMORY_H_

#include "drivers/stream/queue/queue.h"

// settle.c

// Has the vendor notice what was freed on streams and has come to its end; with `only`, on that
// queue alone, which goes away. Blocks for a moment, never for what an application runs. Entered.
keel_status_t stream_device_settle(stream_device_t *device, stream_queue_t *only);

// free.c

// Gives something back to the vendor, on the thread for that. `waits`: the vendor waits for the
// device then. NULL is fine. On a lost device, and in the child of a fork, nothing is given back.
void stream_free(stream_device_t *device, bool waits, stream_give_t *give, void *what);
// The same for a chore of the caller's, which calls stream_chore_end when it has called the vendor;
// `more`: it does more after that.
void stream_chore_add(stream_device_t *device, chore_t *chore);
void stream_chore_end(stream_device_t *device, bool more);
// As chores_may_t: whether the device has nothing to do, and queues are held up.
bool stream_may_free(void *device, uint64_t waited);

// shared.c: memory that other processes may map. Entered.

typedef struct stream_shared_t {
    uint64_t handle;
    uint64_t address;
    uint64_t size;           // rounded up; 0: there is none
    uint64_t reserved, room; // the addresses that were reserved: start and bytes
} stream_shared_t;

// Makes `size` bytes at an address with that alignment; 0: any.
keel_status_t stream_shared_create(stream_device_t *device, uint64_t size, uint64_t alignment,
                                   stream_shared_t *shared);

// Maps the first `size` bytes behind a descriptor, which stays the caller's. KEEL_INVALID_ARGUMENT
// if it is no memory of a GPU, KEEL_OUT_OF_RANGE if it has fewer bytes.
keel_status_t stream_shared_import(stream_device_t *device, int fd, uint64_t size,
                                   stream_shared_t *shared);

void stream_shared_destroy(stream_device_t *device, const stream_shared_t *shared);

// buffer.c

// Whether a root is memory of the application that was page-locked in several pieces, as pages that
// it shares with another import were locked before. The vendor's calls fill and copy within one
// piece; a kernel goes across.
bool stream_buffer_is_parted(const keel_buffer_t *root);

// staging.c

// Page-locked memory, and where the device sees it. Given back by `free_host`. Entered.
keel_status_t stream_host_alloc(stream_device_t *device, uint64_t size, void **data,
                                uint64_t *address);
// A block of at least that size. Entered.
static inline keel_status_t stream_block_acquire(stream_device_t *device, uint64_t size,
                                                 block_t **block)
{
    return blocks_acquire(&device->blocks, size, block);
}
// Gives a list of blocks back, to be used again.
void stream_blocks_return(stream_device_t *device, block_t *blocks);
extern const blocks_ops_t stream_blocks_ops;

// pool.c

// In the kit's books as the driver's part of a pool.
typedef struct stream_pool_t {
    struct stream_pool_t *next, *previous; // of the device
    keel_pool_t *base;                     // whose it is
    stream_device_t *device;               // borrowed: the pool keeps it
    stream_pool_h handle;                  // owned; NULL: the kit's slabs
    uint64_t number;                       // no other pool of the device has, or had
    uint64_t threshold;                    // bytes; beyond that memory goes back
    bool limited; // to less than the device has; if not, the vendor says when there is no more
} stream_pool_t;

keel_status_t stream_pool_create(keel_device_t *device, const keel_pool_options_t *options,
                                 keel_pool_t **pool);
void stream_pool_destroy(keel_pool_t *pool);
void stream_pool_stats(keel_pool_t *pool, keel_pool_stats_t *stats);
keel_status_t stream_pool_trim(keel_pool_t *pool, uint64_t keep);
// The vendor's pool behind one; NULL: it has none.
stream_pool_t *stream_pool_vendor(const keel_pool_t *pool);
// A free of the pool's memory begins: counts it, and has the keeper look at the threshold.
void stream_pool_free_begin(stream_pool_t *pool);
// Takes the memory from a buffer: its handle, to be freed.
uint64_t stream_pool_memory_take(keel_buffer_t *buffer);
// Gives back what is beyond thresholds; while the device is busy, after frees only.
void stream_pools_relieve(stream_device_t *device, bool busy);
// Gives back all that no buffer holds; slabs are then on their way. Entered; blocks as
// stream_device_settle does. No lock may be held.
void stream_pools_empty(stream_device_t *device);
// The same, and blocks until all that is on its way back has come. Not for threads that issue: what
// gives memory back may wait for those.
void stream_memory_gather(stream_device_t *device);
uint64_t stream_pools_reserved(stream_device_t *device); // bytes, by all pools; entered
// Some memory is about to go back, `own` bytes of it of a pool that is going: what is in use now
// may be the most there was, for between two such moments it only grows. Entered.
void stream_peak_note(stream_device_t *device, uint64_t own);

// buffer.c

extern const pages_ops_t stream_pages_ops;
keel_status_t stream_buffer_alloc(keel_buffer_t *buffer);
void stream_buffer_free(keel_buffer_t *buffer);
keel_status_t stream_buffer_import(keel_buffer_t *buffer);
void stream_buffer_forget(keel_buffer_t *buffer);
keel_status_t stream_buffer_export(keel_buffer_t *buffer, keel_external_buffer_t *external);

#endif
