// SPDX-License-Identifier: Apache-2.0
// Queue-ordered memory on the host's side: slabs got by the driver's buffer_alloc, cut by the
// allocators of src/memory. Drivers without pools of their own use these as their pool ops, and the
// two calls below to run alloca and dealloca.
#ifndef KEEL_SRC_KIT_POOL_H_
#define KEEL_SRC_KIT_POOL_H_

#include <keel/driver/driver.h>

#include "kit/points.h"
#include "kit/shelf.h"

keel_status_t pool_create(keel_device_t *device, const keel_pool_options_t *options,
                          keel_pool_t **pool);
void pool_destroy(keel_pool_t *pool);
void pool_stats(keel_pool_t *pool, keel_pool_stats_t *stats);
keel_status_t pool_trim(keel_pool_t *pool, uint64_t keep);

// A pool that keeps the books only: limits, waiting and statistics. The driver gives a buffer its
// memory once pool_alloca has granted it, `capacity` bytes, and sets `resident`; it takes it back
// before pool_dealloca. `reclaim` (no lock held) is for buffers that go away without one; if it is
// NULL, the pool is one of slabs after all. The driver frees the pool by pool_destroy.
keel_status_t pool_create_books(void (*reclaim)(keel_buffer_t *buffer), void *driver,
                                keel_pool_t **pool);
void *pool_driver(const keel_pool_t *pool); // `driver` of above; NULL for others

// For drivers whose device looks up addresses by itself, when its waits are over: words that it
// reads. `take` gives one for a buffer; no lock is held by either.
typedef struct pool_words_t {
    keel_status_t (*take)(const keel_buffer_t *buffer, pool_word_t **word);
    void (*give_back)(keel_device_t *device, pool_word_t *word);
} pool_words_t;
// A pool of slabs whose buffers may have such words; NULL: they have none.
keel_status_t pool_create_words(const pool_words_t *words, keel_pool_t **pool);
// The word of a buffer of such a pool, from now on until the buffer goes: the address of its
// memory, between alloca and dealloca, else 0.
keel_status_t pool_word(const keel_buffer_t *buffer, pool_word_t **word) KEEL_MUST_USE;

// Gives such a pool a shelf, before it is used: its device takes blocks by itself. `block_size` is
// that of its options. False: there is no memory for that.
bool pool_shelve(keel_pool_t *pool, const shelf_ops_t *ops, void *shelf,
                 uint64_t block_size) KEEL_MUST_USE;
void *pool_shelf(const keel_pool_t *pool); // NULL: it has none
// The device may have taken blocks, or given them back: buffers get what they have by now.
// `retry`: allocas that wait for blocks are tried, whose `done` it calls. Any thread, no lock held.
void pool_catch_up(keel_pool_t *pool, bool retry);
// What is wrong if the device finds that a buffer has memory already; or, `given`, has none to give
// back.
keel_status_t pool_mismatch(const keel_buffer_t *buffer, bool given) KEEL_MUST_USE;

// The device has ended, which keel_device_t.ended says already: allocas that wait for memory of the
// pool fail with `cause` (borrowed). Calls their `done`, so no lock may be held.
void pool_cancel(keel_pool_t *pool, keel_status_t cause);
// The same for the requests of submissions that were cancelled.
void pool_withdraw(keel_pool_t *pool);

// Tells of each submission of the device that waits for what is signalled at `points`, directly or
// over others that do, and adds what it signals to them. It does not end meanwhile.
typedef void pool_found_t(void *user, const keel_submission_t *submission);
typedef void pool_behind_t(keel_device_t *device, points_t *points, pool_found_t *found,
                           void *user);
// Lets the pool find out by `behind` whether deallocas wait for the very allocas that wait for
// them. Before the first alloca; the first one that it is given stays.
void pool_follow(keel_pool_t *pool, pool_behind_t *behind);
// Looks whether that is so now, and fails the allocas. Calls their `done`, so no lock may be held.
void pool_look(keel_pool_t *pool);
// The same for all pools of a device, after a submission that may close such a circle
// (submission_may_close).
void pools_look(keel_device_t *device);

// The pool behind `after` (NULL: the first) that is not about to be destroyed, retained; `after` is
// released.
keel_pool_t *pools_next(keel_device_t *device, keel_pool_t *after);

typedef enum pool_result_t {
    POOL_DONE,    // the buffer has memory, or *status says why not
    POOL_WAITING, // request->done is called later, by the thread that frees memory
} pool_result_t;

// Runs an alloca. `request` is used only while it waits; done, context and order are set. It waits
// as the options of the pool say, but not for what its own submission keeps until it is served.
pool_result_t pool_alloca(keel_buffer_t *buffer, keel_pool_request_t *request,
                          keel_status_t *status);

// Runs an alloca whose memory is another buffer's (keel_cmd_alloca_t.memory), which the pool has
// nothing to do with but to know of it.
keel_status_t pool_lend(keel_cmd_alloca_t *c);

// That a buffer may lie at an address of the device.
keel_status_t pool_place_check(const keel_buffer_t *buffer, uint64_t address);

// What each dealloca begins with; sets `settled`. True: the pool's memory is to be given back.
// False: it is over, and *status says how: the memory was another buffer's, or others have it.
bool pool_dealloca_starts(keel_cmd_alloca_t *c, keel_status_t *status);

// For drivers that run commands one after the other, before an alloca: a dealloca behind it in the
// same stage that can be run, and is to be run first, as others may need it while the alloca waits.
// NULL: none is left.
keel_cmd_alloca_t *pool_dealloca_beside(const keel_cmd_alloca_t *alloca);

// The device has no memory for it: adds what was asked for and what the pool has.
keel_status_t pool_refuse(const keel_buffer_t *buffer, keel_status_t status);

// A dealloca was submitted; it ran; it never will. Each submitted one ends as one of the other two.
void pool_dealloca_submitted(keel_buffer_t *buffer);
keel_status_t pool_dealloca(keel_buffer_t *buffer); // fails if the buffer has no memory
// The same in two halves, for drivers that work ahead: the buffer has no memory from the first on,
// but the memory is given to others only by the second. To allocas of the same order, if that is
// not NULL and the pool keeps the books only, from the first.
keel_status_t pool_dealloca_begin(keel_buffer_t *buffer, const void *order,
                                  keel_pool_piece_t *piece);
void pool_dealloca_end(keel_buffer_t *buffer, keel_pool_piece_t *piece);
// An alloca that was granted came to nothing.
void pool_alloca_undo(keel_buffer_t *buffer);
// The same for want of memory. True if a dealloca of the pool is on its way: then `request` waits
// for it, as for a limit, and is granted anew.
bool pool_alloca_again(keel_buffer_t *buffer, keel_pool_request_t *request);
void pool_dealloca_dropped(keel_buffer_t *buffer);

// Takes the memory of a buffer that goes away.
void pool_reclaim(keel_buffer_t *buffer);

#endif
