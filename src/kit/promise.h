// SPDX-License-Identifier: Apache-2.0
// A promise: the word of a device that a point will be reached when something happens over there,
// an event on one of its streams for example. Work of the same device, or of one that it reaches,
// may wait for that instead of the point, without the host; and a host that waits for the point can
// ask after it. Only the loss of the device breaks a promise, unless it says that it may fail: then
// work that took it must find out on the device whether it came true, and do nothing if it did not.
//
// A device whose work ends by itself on threads of the library makes none.
#ifndef KEEL_SRC_KIT_PROMISE_H_
#define KEEL_SRC_KIT_PROMISE_H_

#include <keel/driver/object.h>

typedef struct promise_t promise_t;

// Any thread, no lock held.
typedef struct promise_ops_t {
    void (*destroy)(promise_t *promise); // the last reference is gone
    void (*poll)(promise_t *promise);    // looks, and ends what has come to its end; never blocks
    void (*ask)(promise_t *promise);     // a thread sleeps: it must be woken when this comes true
    uint64_t poll_ns;                    // how long polling is better than sleeping
    // The handle of the vendor's object; false: there is none of the kind. NULL: there are none.
    bool (*native)(promise_t *promise, keel_native_t kind, uint64_t *handle);
    // Whether queues of another device may wait for it. Locks may be held. NULL: none may.
    bool (*reaches)(const promise_t *promise, const keel_device_t *device);
} promise_ops_t;

struct promise_t {
    _Atomic uint32_t refs;
    const keel_device_t *device; // whose queues may wait for it; NULL: what it is for may fail
    const promise_ops_t *ops;
    uint64_t number; // those of one queue come true in this order
    bool may_fail;   // while the device lives; then only for waiters for one point's success
};

// Whether a waiter that takes promises of the device `early`, or of none, takes this one.
static inline bool promise_serves(const promise_t *promise, const keel_device_t *early)
{
    if (!early || promise->device == early) return early;
    return promise->device && promise->ops->reaches && promise->ops->reaches(promise, early);
}

static inline promise_t *promise_retain(promise_t *promise)
{
    // relaxed: the caller has a reference, or the lock under which one is held.
    atomic_fetch_add_explicit(&promise->refs, 1, memory_order_relaxed);
    return promise;
}

static inline void promise_release(promise_t *promise)
{
    // acq_rel: all uses by others come before the end.
    if (promise && atomic_fetch_sub_explicit(&promise->refs, 1, memory_order_acq_rel) == 1)
        promise->ops->destroy(promise);
}

#endif
