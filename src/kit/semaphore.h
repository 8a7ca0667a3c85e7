// SPDX-License-Identifier: Apache-2.0
// Semaphores: what all kinds have in common, and waiters on their points.
//
//     kind       its value is kept                        made by
//     timeline   in the host's memory (timeline.h)        keel_semaphore_create
//     ledger     by a queue, a point per submission       keel_queue_create
//                (ledger.h)
//     outside    by another API as well (outside.h)       keel_semaphore_import of a descriptor
//     remote     where a device reads and writes it       keel_semaphore_create, where the driver
//                (remote.h); in an object of another      has semaphore_create; the import of that
//                API; or in memory of several             object; the two calls with what is
//                processes (shared.h)                     shared
//
// Each kind has a table, semaphore_ops_t, and a struct that begins with keel_semaphore_t. No other
// file asks which kind a semaphore is of.
//
// One rule holds for all kinds and needs no table: a point up to `value` has been reached. The word
// may lag behind, so a point beyond it says nothing; the table knows.
//
// A waiter is a record of the caller's that is told once when its point is reached or fails. It is
// told without locks held, by the thread that signals.
//
// A point that is not reached yet may hang on a promise (promise.h): something on a device that
// queues of that device can wait for without the host, and that the host can poll. A waiter for
// work of that same device is told of the promise at once.
#ifndef KEEL_SRC_KIT_SEMAPHORE_H_
#define KEEL_SRC_KIT_SEMAPHORE_H_

#include <keel/driver/object.h>

#include "base/heap.h"
#include "base/lock.h"
#include "kit/promise.h"

typedef struct waiter_t waiter_t;

// `failure` is borrowed, NULL if the point was reached, or has ended for a waiter of ends. The
// waiter is no longer linked and may be reused or freed.
typedef void (*waiter_fn)(waiter_t *waiter, keel_status_t failure);

struct waiter_t {
    heap_node_t node; // key: the value; `next` also links waiters that are about to be told
    waiter_fn fire;
    bool linked;  // guarded by the semaphore's lock
    bool hangs;   // on a timeline: on a promise that will not do; it is in `hanging` then
    bool for_all; // KEEL_UP_TO: on a ledger it waits for the value, not for the point
    bool ended;   // KEEL_ENDED: it is told of no failure
    bool asks;    // its thread does not poll: what promises the point must see to its end
    const keel_device_t *early; // a promise of this device will do; NULL: none will
    promise_t *promise;         // told early: what the point hangs on; retained
};

// A signal of a submission, until that has ended.
typedef struct keel_signal_t {
    keel_point_t point;
    promise_t *promise; // of the driver, who keeps it; NULL: not promised
    struct keel_signal_t *next, *previous;
    uint64_t after; // the submission has waited for this value of the same semaphore; for promises
                    // that may fail
    bool listed;    // in the list of what the semaphore is promised
    bool overtaken; // a signal of a larger value came that was not ordered
    bool native;    // the device makes it or fails it by itself (remote.h)
} signal_t;

// Whether the waiter takes the promise, of a signal to `value`, for its point. If the promise may
// fail, a signal of a smaller value may be enough for the waiter, and come true.
static inline bool promise_does(const promise_t *promise, uint64_t value, const waiter_t *waiter)
{
    bool fails =
        promise->may_fail && (waiter->ended || waiter->for_all || waiter->node.key != value);
    return promise_serves(promise, waiter->early) && !fails;
}

typedef enum point_state_t {
    POINT_PENDING,
    POINT_REACHED,
    POINT_FAILED,
    POINT_PROMISED, // to a waiter that takes a promise for it: waiter->promise
} point_state_t;

// What a kind of semaphore does. Any thread, no lock held; none blocks. A failed semaphore stays
// failed, with its first cause.
typedef struct semaphore_ops_t {
    // How far it is by now, in *value; the cause (a new reference) if it has failed.
    keel_status_t (*value)(keel_semaphore_t *semaphore, uint64_t *value);
    // Moves the value up. An error if it is not larger, or the semaphore has failed. NULL: it has
    // one owner, who signals and fails it in his own way; then so are `fail`, `promise`, `settle`.
    keel_status_t (*signal)(keel_semaphore_t *semaphore, uint64_t value);
    // Fails all points not reached. Consumes `cause`; only the first one is kept.
    void (*fail)(keel_semaphore_t *semaphore, keel_status_t cause);

    // Links `waiter`, which has been aimed and has `fire`, to a pending point, to be told later:
    // POINT_PENDING. Else it is not linked; if the point failed, *failure is a new reference to the
    // cause.
    point_state_t (*watch)(keel_semaphore_t *semaphore, waiter_t *waiter, keel_status_t *failure);
    // Unlinks it. False if it is not linked: it was told, or is being told by another thread.
    bool (*unwatch)(keel_semaphore_t *semaphore, waiter_t *waiter);
    // What the pending point at `value` hangs on, or with `all` the last of what all up to there
    // do: a new reference, NULL if nothing. Hosts poll it, or ask after it before they sleep;
    // queues of its device wait for it without the host.
    promise_t *(*promised)(keel_semaphore_t *semaphore, uint64_t value, bool all);

    // A signal will come when signal->promise does.
    void (*promise)(signal_t *signal);
    // Its submission has ended, well or with `failure` (borrowed): makes the signal, or fails the
    // semaphore. Returns why the signal could not be made, most often since it is out of order, a
    // new reference: then the caller fails the semaphore. NULL also if that had failed before.
    keel_status_t (*settle)(signal_t *signal, keel_status_t failure);

    // As keel_semaphore_export, for a kind that keel_semaphore_kind_t has. Those that cannot be
    // exported have semaphore_not_exported.
    keel_status_t (*export)(keel_semaphore_t *semaphore, keel_external_semaphore_t *external);
    // The last reference is gone: frees the struct. May be called after the device's end, and in
    // the child of a fork, where it neither locks nor calls a vendor.
    void (*destroy)(keel_semaphore_t *semaphore);

    bool one_queue; // all promises of its points are of one queue, so their numbers compare
} semaphore_ops_t;

struct keel_semaphore_t {
    keel_object_t object;
    const semaphore_ops_t *ops;
    keel_device_t *device;      // retained, by ledgers borrowed
    char *name;                 // owned
    keel_semaphore_info_t info; // for the application
    struct {
        keel_semaphore_t *next, *previous; // in keel_device_t.all_semaphores
    } link;
    _Atomic uint64_t last;    // points beyond cannot be waited for; 2^63 - 1 but in ledgers
    _Atomic uint64_t granted; // of one that has failed: up to here it was promised before the
                              // failure, and goes on

    // All points up to here were reached; and SEMAPHORE_FAILED. Written with release, after what
    // the points stand for; pairs with the acquire in point_is_past.
    _Alignas(64) _Atomic uint64_t value;
    _Atomic uint64_t next_wait;          // the smallest value awaited or promised; UINT64_MAX: none
    struct keel_status *_Atomic failure; // owned, set once; read when SEMAPHORE_FAILED is seen
    lock_t lock;                         // for what follows
    bool listed;                         // in all_semaphores; the device's lock guards it
    heap_t waiters;
    heap_t hanging; // waiters up to the last promise, which need not look at the next
    signal_t *promised, *promised_last; // values that grow; none in ledgers
};

// Set in the value of a timeline that has failed: from then on the value stands still, but for what
// was promised before.
#define SEMAPHORE_FAILED (UINT64_C(1) << 63)

// Whether it is known without taking a lock that the value was reached; false says nothing.
static inline bool value_is_past(const keel_semaphore_t *semaphore, uint64_t value)
{
    // acquire: pairs with the release of what raises the value; what was written before the signal
    // is seen after this.
    uint64_t now = atomic_load_explicit(&semaphore->value, memory_order_acquire);
    return (now & ~SEMAPHORE_FAILED) >= value;
}

// Points are passed by address: three words by value would go by way of memory.
static inline bool point_is_past(const keel_point_t *point)
{
    return value_is_past(point->semaphore, point->value);
}

// Whether the point can be waited for: it can, unless its queue has no such submission yet, or no
// semaphore can come to the value.
static inline bool point_exists(const keel_point_t *point)
{
    // relaxed: a caller that has the value got it from a thread that knew the point was there.
    return point->value <= atomic_load_explicit(&point->semaphore->last, memory_order_relaxed);
}

// Says what the waiter waits for.
static inline void waiter_aim(waiter_t *waiter, const keel_point_t *point)
{
    waiter->node.key = point->value;
    waiter->for_all = point->until & KEEL_UP_TO;
    waiter->ended = point->until & KEEL_ENDED;
}

// As semaphore_ops_t.watch, .unwatch and .promised. What a failure is, the point says.
static inline point_state_t point_watch(const keel_point_t *point, waiter_t *waiter,
                                        keel_status_t *failure)
{
    waiter_aim(waiter, point);
    point_state_t state = point->semaphore->ops->watch(point->semaphore, waiter, failure);
    if (state != POINT_FAILED || !waiter->ended) return state;
    keel_status_release(*failure);
    *failure = NULL;
    return POINT_REACHED;
}

static inline bool point_unwatch(const keel_point_t *point, waiter_t *waiter)
{
    return point->semaphore->ops->unwatch(point->semaphore, waiter);
}

static inline promise_t *point_promise(const keel_point_t *point)
{
    return point->semaphore->ops->promised(point->semaphore, point->value, false);
}

// From now on the waiter's thread does not poll (asks). Returns what is to be asked for it, a new
// reference; NULL: nothing yet, and what is promised later is asked by itself.
promise_t *point_ask(const keel_point_t *point, waiter_t *waiter);

// For kinds. Makes the common part ready, of memory that is zero and aligned to 64.
void semaphore_init(keel_semaphore_t *semaphore, const semaphore_ops_t *ops, uint64_t initial);
// For export: KEEL_UNSUPPORTED, and why.
keel_status_t semaphore_not_exported(keel_semaphore_t *semaphore,
                                     keel_external_semaphore_t *external) KEEL_COLD;
// Looks whether the next value is there, if it is promised.
void semaphore_chase(keel_semaphore_t *semaphore, uint64_t value);

// For kinds, under semaphore->lock. Takes all waiters up to `value` out of the heaps, linked by
// node.next in the order of values.
waiter_t *waiters_take(keel_semaphore_t *semaphore, uint64_t value);
void waiters_add(keel_semaphore_t *semaphore, waiter_t *waiter);
bool waiters_remove(keel_semaphore_t *semaphore, waiter_t *waiter);
// The smallest value awaited; UINT64_MAX: none.
uint64_t waiters_first(const keel_semaphore_t *semaphore);
// Brings next_wait up to date after a change of `promised`.
void waiters_update(keel_semaphore_t *semaphore);
// Puts one that was taken out on the list of those to be told, if the promise of a signal to
// `value` will do for it, which it then has. Else false, and sets *asks if its thread does not
// poll.
bool waiter_promise(waiter_t *waiter, promise_t *promise, uint64_t value, waiter_t **told,
                    bool *asks);
static inline waiter_t *waiter_of(heap_node_t *node)
{
    return (waiter_t *)(void *)node; // of which it is the first field
}
// Without the lock: tells a list of waiters.
void waiters_fire(waiter_t *list, keel_status_t failure);
// What settle returns if a signal is refused with `refusal` (consumed, not NULL): NULL if that is
// but the failure of the semaphore itself.
keel_status_t signal_refused(const signal_t *signal, keel_status_t refusal) KEEL_COLD;
// How many the calling thread has told so far, if it is just at it: a thread that only signals is
// not to do all the work that waited for it.
uint32_t waiters_fired(void);

#endif
