// SPDX-License-Identifier: Apache-2.0
// Reference counts.
#ifndef KEEL_SRC_KIT_OBJECT_H_
#define KEEL_SRC_KIT_OBJECT_H_

#include <keel/driver/object.h>

#include "base/fork.h"

static inline void object_init(keel_object_t *object)
{
    object->generation = fork_count_; // counted from the first device on
    // release: a driver that lists what it made may have others look at it who see that it counts.
    atomic_store_explicit(&object->refs, 1, memory_order_release);
}

static inline void object_retain(keel_object_t *object)
{
    // relaxed: the caller has a reference already.
    atomic_fetch_add_explicit(&object->refs, 1, memory_order_relaxed);
}

// For a thread that found it on a list and has no reference: false if there is none left to share.
static inline bool object_hold(keel_object_t *object)
{
    uint32_t refs = atomic_load(&object->refs);
    while (refs && !atomic_compare_exchange_weak(&object->refs, &refs, refs + 1)) {
    }
    return refs;
}

// True for the last one, who destroys.
static inline bool object_release(keel_object_t *object)
{
    // acq_rel: all uses by others come before the destruction.
    return atomic_fetch_sub_explicit(&object->refs, 1, memory_order_acq_rel) == 1;
}

// The same for objects that are on no list: the only reference needs no read-modify-write to go.
static inline bool object_release_unlisted(keel_object_t *object)
{
    // acquire: as above. No other thread has one to retain it by.
    return atomic_load_explicit(&object->refs, memory_order_acquire) == 1 || object_release(object);
}

// Whether the object belongs to this process; if not, no lock of it may be taken.
static inline bool object_is_ours(const keel_object_t *object)
{
    return fork_is_ours(object->generation);
}

#endif
