// SPDX-License-Identifier: Apache-2.0
// What a submission waits for on the host: a count of operations under way, and of one share for
// the walk over its commands, which one thread does at a time. The thread that gives up the last
// share goes on with the walk. While the walk has the only one no other thread changes the count,
// so most of the time no atomic operation is needed.
#ifndef KEEL_SRC_KIT_PENDING_H_
#define KEEL_SRC_KIT_PENDING_H_

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

// Zero: there is no walk.
typedef struct pending_t {
    _Atomic uint32_t count;
} pending_t;

// The walk begins, or goes on after pending_end: it has a share, if it has none yet.
static inline void pending_begin(pending_t *pending)
{
    if (!atomic_load_explicit(&pending->count, memory_order_relaxed))
        atomic_store_explicit(&pending->count, 1, memory_order_relaxed);
}

// Counts an operation in, and out if it was not begun after all. The caller has the walk's share.
static inline void pending_add(pending_t *pending)
{
    // acquire: the store hides what has ended from the thread that goes on, which sees it by way of
    // us.
    if (atomic_load_explicit(&pending->count, memory_order_acquire) == 1)
        atomic_store_explicit(&pending->count, 2, memory_order_relaxed);
    else
        atomic_fetch_add_explicit(&pending->count, 1, memory_order_relaxed);
}

static inline void pending_drop(pending_t *pending)
{
    // acquire: as in pending_add.
    if (atomic_load_explicit(&pending->count, memory_order_acquire) == 2)
        atomic_store_explicit(&pending->count, 1, memory_order_relaxed);
    else
        atomic_fetch_sub_explicit(&pending->count, 1, memory_order_relaxed);
}

// An operation has ended, or what the walk was handed on for. True if that was the last share: then
// the caller goes on with the walk; if not, the submission may be gone.
static inline bool pending_end(pending_t *pending)
{
    // acq_rel: the thread that goes on sees what the operations did.
    return atomic_fetch_sub_explicit(&pending->count, 1, memory_order_acq_rel) == 1;
}

// For the walk: whether operations are under way.
static inline bool pending_has_any(const pending_t *pending)
{
    return atomic_load(&pending->count) > 1;
}

// For the walk, which can go no further with operations under way: whether there are none. If not,
// its share has gone, and the submission with it to the thread that is last.
static inline bool pending_is_over(pending_t *pending)
{
    // acquire: as in pending_end.
    if (atomic_load_explicit(&pending->count, memory_order_acquire) == 1) return true;
    if (!pending_end(pending)) return false;
    atomic_store_explicit(&pending->count, 1, memory_order_relaxed);
    return true;
}

#endif
