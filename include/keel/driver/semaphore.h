// SPDX-License-Identifier: Apache-2.0
// Semaphores that a device keeps: value and failure lie where the device reads and writes them, so
// its queues wait and signal by themselves, with no thread of the host in between. Hosts and other
// devices wait for, signal and fail them by the calls of <keel/semaphore.h>. A driver whose device
// cannot do this leaves semaphore_create empty, and the host keeps all semaphores.
//
//     host, other devices                      the device
//     keel_semaphore_signal ---- signal ---->  value, failure  <--> its queues wait and signal
//     keel_semaphore_fail ------ fail ------>   |
//     keel_wait, and waits of <- load ----------+   polled, and when a submission that signals ends
//     other devices' queues
//
// What a driver does:
//
//   create   semaphore_create of the ops table makes what the device needs, and the semaphore by
//            keel_remote_create.
//   waits    queue_submit calls keel_submission_wait_remote in place of keel_submission_wait. Then
//            for each i below wait_count, if keel_submission_remote_wait(submission, i, &value)
//            finds something, the device waits until that has reached `value`. If it fails before,
//            the submission fails with the same cause, and does no work.
//   signals  For each i below signal_count, if keel_submission_remote_signal(submission, i, &value)
//            finds something, the device signals that to `value` after the last work of the
//            submission, or fails it if the submission fails; then the driver calls
//            keel_submission_end. All other signals keel_submission_end makes.
//   the end  queue_cancel is required: the library does not know what waits on the device.
//
// Order. The device signals with release, after all writes of the submission, and reads with
// acquire before the first read of a submission that waits. A signal of a value that is not larger
// was not ordered: the device makes neither this signal nor those after it in the list, and the
// driver calls keel_submission_remote_leave. Then keel_submission_end fails these semaphores and
// the submission, and says why.
//
// Failure. The first one stays, and the value stands still from then on.
#ifndef KEEL_DRIVER_SEMAPHORE_H_
#define KEEL_DRIVER_SEMAPHORE_H_

#include <keel/driver/submission.h>

// The driver's. `own` is the argument of keel_remote_create. Any thread, several at a time, with no
// lock of the library held; none of them may block. They may come at any time until `destroy`: also
// after device_close and when the device is lost, where they touch memory of the host alone.
typedef struct keel_remote_ops_t {
    // What the device has, read with acquire: writes *value, and returns why it has failed, a new
    // reference, or NULL. If it has failed, *value is where it stands still.
    keel_status_t (*load)(void *own, uint64_t *value);
    // The host signals: moves the value up, with release, and lets go what waits for it on the
    // device. False if it has failed, or the value is not larger: then nothing has changed.
    bool (*signal)(void *own, uint64_t value);
    // The host fails it: what waits on the device for points not reached fails with `cause`, which
    // is borrowed. If it has failed before, this does nothing.
    void (*fail)(void *own, keel_status_t cause);
    // The last reference is gone: frees `own`. In the child of a fork it frees memory of the host
    // and does nothing else.
    void (*destroy)(void *own);
} keel_remote_ops_t;

KEEL_EXTERN_C_BEGIN

// Makes a semaphore over what the driver has made, for semaphore_create of the ops table to return.
// `ops` is borrowed for as long as the process lives; `own` is the semaphore's, not NULL, and at
// `initial` already. KEEL_OUT_OF_MEMORY; then `own` stays the driver's. Any thread; does not block.
KEEL_API keel_status_t keel_remote_create(keel_device_t *device, const keel_remote_ops_t *ops,
                                          void *own, uint64_t initial,
                                          keel_semaphore_t **semaphore) KEEL_MUST_USE;

// As keel_submission_wait, but does not wait for semaphores that the submission's own device keeps.
// `start` finds these with keel_submission_remote_wait. A submission with deallocas waits for all
// on the host, where the library sees whether an alloca waits for it in vain.
KEEL_API void keel_submission_wait_remote(keel_submission_t *submission,
                                          void (*start)(keel_submission_t *submission));

// The `own` of the semaphore of wait number `index`, below wait_count, and the value to wait for,
// if the device has to wait for it; else NULL. From `start` until keel_submission_end, any thread;
// does not block.
KEEL_API void *keel_submission_remote_wait(const keel_submission_t *submission, uint32_t index,
                                           uint64_t *value);

// The `own` of the semaphore of signal number `index`, below signal_count, and the value to signal,
// if this device keeps it: the device must then make the signal, or fail the semaphore, before the
// submission ends. Else NULL. From `start` until keel_submission_end, by one thread at a time; does
// not block.
KEEL_API void *keel_submission_remote_signal(const keel_submission_t *submission, uint32_t index,
                                             uint64_t *value);

// Signal number `index` is out of order: leaves it and all after it to keel_submission_end, also if
// keel_submission_remote_signal has found them. To be called before that, by the same thread. Does
// not block.
KEEL_API void keel_submission_remote_leave(keel_submission_t *submission, uint32_t index) KEEL_COLD;

KEEL_EXTERN_C_END

#endif
