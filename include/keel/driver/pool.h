// SPDX-License-Identifier: Apache-2.0
// Queue-ordered memory for drivers without pools of their own: slabs that the driver's buffer_alloc
// gives, cut up by the library. KEEL_CAP_QUEUE_ALLOCA.
//
//     static const keel_device_ops_t ops = {..., KEEL_SLABS_OPS};
//
// and, where the driver runs commands, keel_slabs_alloca and keel_slabs_dealloca. Any thread.
#ifndef KEEL_DRIVER_POOL_H_
#define KEEL_DRIVER_POOL_H_

#include <keel/driver/command.h>

// The four slots of the ops table.
#define KEEL_SLABS_OPS                                                                             \
    .pool_create = keel_slabs_create, .pool_destroy = keel_slabs_destroy,                          \
    .pool_stats = keel_slabs_stats, .pool_trim = keel_slabs_trim

KEEL_EXTERN_C_BEGIN

// For pool_create of the ops table, which has the contract. The library calls it, no driver does.
KEEL_API keel_status_t keel_slabs_create(keel_device_t *device, const keel_pool_options_t *options,
                                         keel_pool_t **pool) KEEL_MUST_USE;

// For pool_destroy of the ops table.
KEEL_API void keel_slabs_destroy(keel_pool_t *pool);

// For pool_stats of the ops table.
KEEL_API void keel_slabs_stats(keel_pool_t *pool, keel_pool_stats_t *stats);

// For pool_trim of the ops table.
KEEL_API keel_status_t keel_slabs_trim(keel_pool_t *pool, uint64_t keep) KEEL_MUST_USE;

// Runs a KEEL_CMD_ALLOCA, when everything before the last barrier has ended. True: it is over; the
// buffer has memory, or *status, the caller's, says why not. False: it waits for room in the pool;
// the command goes on belonging to the pool until `done` is called, once, with the request of the
// command, `context` in it and a status to consume: NULL if the buffer has memory. `done` runs on
// the thread that gives memory back, or that ends the device, with no lock held, and must not
// block. May call buffer_alloc; hold no lock.
//
// While it waits, other submissions must go on; the rest of its own may wait for it. Deallocas
// between it and the next barrier are run here, before it, so that none of them waits for it: the
// allocas and deallocas of a submission are run by one thread at a time.
KEEL_API bool keel_slabs_alloca(keel_cmd_alloca_t *command,
                                void (*done)(keel_pool_request_t *request, keel_status_t status),
                                void *context, keel_status_t *status);

// Runs a KEEL_CMD_DEALLOCA, when nothing before it uses the memory any more. Fails if the buffer
// has no memory. Does nothing if keel_slabs_alloca ran it before. Calls `done` of allocas that
// waited; hold no lock. A dealloca that is not run, for
// its submission has failed, needs nothing: the end of the submission tells the pool.
KEEL_API keel_status_t keel_slabs_dealloca(keel_cmd_alloca_t *command) KEEL_MUST_USE;

KEEL_EXTERN_C_END

#endif
