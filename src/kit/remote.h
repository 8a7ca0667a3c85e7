// SPDX-License-Identifier: Apache-2.0
// Semaphores whose value and failure are kept where a device reads and writes them: in memory of
// the device, in an event that Metal shares, in a timeline semaphore of Vulkan. Queues of that
// device wait for them and signal them by themselves, with no thread of the host in between.
//
//     host, other devices                     the device
//     keel_semaphore_signal --- signal ---->  value, failure  <--> its queues wait and signal
//     keel_semaphore_fail ----- fail ------>   |      |
//     keel_wait, waits of <---- load ----------+      |
//     other devices' queues <-- remote_look <---------+  a notification, once `watch` was called
//
// The host's word, keel_semaphore_t.value, is a copy: never ahead of the device, brought up to date
// by remote_look. Waiters of the host and of other devices lie on the host's list of a timeline
// (timeline.h), and remote_look tells them.
//
// For a driver. Make a struct that begins with remote_t (mem_zalloc_aligned), call remote_init, and
// return &remote->semaphore from keel_device_ops_t.semaphore_create. Fill in the five functions
// below. Then, for each submission:
//
//   waits    submission_wait_early starts it at once if all its waits are reached or are for
//            semaphores of the device. Have the device wait for waits[i].point where
//            waits[i].waiter.promise is set and remote_here knows the semaphore. A wait that fails
//            on the device fails the submission there; remote_poll gives the cause for
//            submission_end. Waits with KEEL_ENDED come by way of the host.
//   signals  Where remote_here knows the semaphore, have the device signal signals[i].point, or
//            fail it if the submission fails, and set signals[i].native. submission_end then makes
//            none of these; it looks. All others it makes, as for any device.
//   the end  What waits on the device by itself is not known to the library: fill in queue_cancel.
//
// Order. The device writes a value with release to the whole system, after all writes of the
// submission that signals; it reads a value with acquire before the first read of one that waits.
// A signal of a value that is not larger was not ordered. A device that can tell makes neither this
// signal nor those after it in the list, and the driver calls remote_leave before submission_end,
// which fails them and the submission. A device that cannot tell ignores the signal.
//
// Failure. The first one stays, and the value stands still from then on: the device ignores later
// signals. A device whose value has room keeps failure as SEMAPHORE_FAILED in it, so that both
// change in one step. A device that has nothing to keep failure in keeps it on the host: `fail`
// then releases what waits on the device in whatever way there is, and ends it as failed.
#ifndef KEEL_SRC_KIT_REMOTE_H_
#define KEEL_SRC_KIT_REMOTE_H_

#include "kit/semaphore.h"

typedef struct remote_t remote_t;

// The driver's. Any thread, several at a time, no lock held; none of them may block. The first four
// may come at any time until the semaphore has failed: also while the device closes and after
// device_close, and when the device is lost, where they touch memory alone.
typedef struct remote_ops_t {
    // What the device has: writes *value, in which comes what the host knows; returns why it has
    // failed, a new reference, or NULL.
    // acquire: pairs with the device's release; what was written before the signal is seen after
    // this. If it has failed, *value is where it stands still.
    keel_status_t (*load)(remote_t *remote, uint64_t *value);
    // A signal of the host's: moves the value of the device up, with release to the device, and
    // lets go what waits for it there. remote_refusal if the value is not larger or has failed.
    keel_status_t (*signal)(remote_t *remote, uint64_t value);
    // The host fails it: what waits on the device for points not reached fails. `cause` is
    // borrowed. If it has failed, this does nothing.
    void (*fail)(remote_t *remote, keel_status_t cause);
    // Threads of the host or queues of other devices sleep for remote_awaited: when the device is
    // that far or has failed, remote_look must be called, by any thread that holds the semaphore
    // and no lock. The library looks by itself after this call, so what has come before needs no
    // notification. Calling remote_look too often is fine. poller_watch (poller.h) is one way.
    void (*watch)(remote_t *remote);
    // The last reference is gone: frees the struct. As semaphore_ops_t.destroy.
    void (*destroy)(remote_t *remote);
    // As semaphore_ops_t.export. NULL: it cannot be exported.
    keel_status_t (*export)(remote_t *remote, keel_external_semaphore_t *external);
    bool lasts; // one call of `watch` is enough for all waits until none is left
} remote_ops_t;

struct remote_t {
    keel_semaphore_t semaphore;
    const remote_ops_t *ops;
    promise_t promise; // what points of it hang on for queues of the device, and hosts that wait;
                       // never outlives the semaphore
    bool asked;        // threads sleep for it; guarded by the semaphore's lock
    struct {
        remote_t *next, *previous;
        bool listed;
    } poll; // in a remote_list_t
};

// Those that a thread looks at. Who has the list guards it.
typedef struct remote_list_t {
    remote_t *first, *last;
    size_t count;
} remote_list_t;

// True if it was not on the list.
bool remote_list_add(remote_list_t *list, remote_t *remote);
void remote_list_remove(remote_list_t *list, remote_t *remote); // if it is there
// Takes the first off the list, retained; NULL: there is none, or it is about to be freed, which
// removes it anyway.
remote_t *remote_list_take(remote_list_t *list);

// Makes it ready, of memory that is zero and aligned to 64. Queues of `device` wait for it by
// themselves; NULL: they wait by way of the host, as other devices' do.
void remote_init(remote_t *remote, const remote_ops_t *ops, const keel_device_t *device,
                 uint64_t initial);

// The remote_t of a semaphore that queues of the device wait for and signal by themselves; NULL: it
// is another kind, or another device's.
remote_t *remote_here(keel_semaphore_t *semaphore, const keel_device_t *device);

// The remote_t of a semaphore that has this table; NULL: it is another kind.
remote_t *remote_with(keel_semaphore_t *semaphore, const remote_ops_t *ops);

// Brings the host up to date with the device, and tells those whose points were reached or have
// failed. No lock held.
void remote_look(remote_t *remote);

// Where a point stands by now. If it failed, *failure is a new reference to the cause.
point_state_t remote_poll(const keel_point_t *point, keel_status_t *failure);

// Leaves signal number `index` of the submission, which the device has found out of order, and all
// after it to the end of the submission. For the driver, before it ends the submission.
void remote_leave(keel_submission_t *submission, uint32_t index) KEEL_COLD;

// The smallest value that is awaited here; UINT64_MAX: none. No lock held.
uint64_t remote_awaited(remote_t *remote);

// For remote_ops_t.signal: why a value cannot be signalled, never NULL.
keel_status_t remote_refusal(remote_t *remote, uint64_t value) KEEL_COLD;

#endif
