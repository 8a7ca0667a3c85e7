// SPDX-License-Identifier: Apache-2.0
// Pools: where queue-ordered allocations come from.
//
// keel_op_alloca takes memory from the pool of its buffer when the queue gets there, and
// keel_op_dealloca puts it back; neither ever blocks the caller. When a pool cannot serve an
// alloca, because of its limit or because the device has no more, the alloca waits for deallocas of
// the pool that were submitted and have not run yet. If there are none, or none of them helps, it
// fails with KEEL_RESOURCE_EXHAUSTED and names the size asked for, the bytes in use and the limit.
//
// A pool keeps memory it has got for reuse, across sizes, until it is trimmed or released, or
// beyond a threshold. All functions may be called from any thread.
#ifndef KEEL_POOL_H_
#define KEEL_POOL_H_

#include <keel/buffer.h>

typedef struct keel_pool_options_t {
    uint32_t memory; // keel_memory_bit_t; 0: as keel_buffer_options_t
    uint32_t usage;  // keel_usage_bit_t; 0: all but export
    uint32_t node;   //
    uint64_t limit;  // bytes that its buffers may hold together, each until its dealloca has run;
                     // 0: what the device has
    uint64_t threshold; // bytes taken from the system beyond which memory that comes back goes back
                        // to it soon; 0: none does before keel_pool_trim
    uint64_t block_size; // 0: any size, two-level segregated fit; else blocks of this size only,
                         // which never fragment
    const char *name;
} keel_pool_options_t;

typedef struct keel_pool_stats_t {
    uint64_t limit;
    uint64_t used;     // by buffers, rounded up as the pool does
    uint64_t peak;     // the most that `used` has been
    uint64_t reserved; // taken from the system, `used` included
    uint64_t buffers;  // that hold memory
    uint64_t waiting;  // allocas that wait for deallocas
} keel_pool_stats_t;

KEEL_EXTERN_C_BEGIN

KEEL_API keel_status_t keel_pool_create(keel_device_t *device, const keel_pool_options_t *options,
                                        keel_pool_t **pool) KEEL_MUST_USE;
KEEL_API keel_pool_t *keel_pool_retain(keel_pool_t *pool);
KEEL_API void keel_pool_release(keel_pool_t *pool);

KEEL_API void keel_pool_stats(keel_pool_t *pool, keel_pool_stats_t *stats);

// Gives memory that no buffer holds back to the system, but keeps `keep` bytes of it.
KEEL_API keel_status_t keel_pool_trim(keel_pool_t *pool, uint64_t keep) KEEL_MUST_USE;

KEEL_EXTERN_C_END

#endif
