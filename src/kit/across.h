// SPDX-License-Identifier: Apache-2.0
// Copies between devices: which device makes them, and how.
//
//     the other side's memory            the copy is made by
//     the host sees it                   the device of the submission: it is as good as its own
//     is of a peer (device_peers)        the device of the submission, by the vendor's own way
//     neither, and the other device      the other device, by a submission of its own
//       reaches ours in such a way
//     none of these                      both: pieces go through memory that the host sees
//
// The driver makes those of the first two kinds by itself, and visits the other device meanwhile:
// that does not close before it has left. The others are made here, by submissions that the two
// devices get. The driver's own submission is under way until they have ended, so it need not do
// more than wait.
#ifndef KEEL_SRC_KIT_ACROSS_H_
#define KEEL_SRC_KIT_ACROSS_H_

#include "kit/submission.h"

// The best way for copies between the two. The same device is its own peer. Any thread.
keel_reach_how_t device_reach(keel_device_t *a, keel_device_t *b);

// Whether the host sees the memory at once, with nothing to flush or invalidate.
static inline bool buffer_is_host(const keel_buffer_t *buffer)
{
    const uint32_t host = KEEL_MEMORY_HOST_VISIBLE | KEEL_MEMORY_HOST_COHERENT;
    return (buffer->memory & host) == host;
}

// Where the host finds what `ref` names in such a buffer. NULL: it has no memory now.
static inline unsigned char *ref_host(const keel_ref_t *ref)
{
    // relaxed: as in bind_find.
    unsigned char *data = atomic_load_explicit(&ref->buffer->root->data, memory_order_relaxed);
    return data ? data + ref->buffer->offset + ref->offset : NULL;
}

// Whether there is a way between the device and a buffer of another one.
bool across_is_served(keel_device_t *device, const keel_buffer_t *other);

// Keeps a device from closing until device_leave. False if it has ended: *why is a new reference to
// the cause. Does not block; what happens in between must end without the application.
bool device_visit(keel_device_t *device, keel_status_t *why);
void device_leave(keel_device_t *device);
// Waits until there is no visitor, for a device that has ended.
void device_wait_alone(keel_device_t *device);

// Frees the staging that the device has kept, when no copy needs it any more.
void device_drop_staging(keel_device_t *device);

// The copy has ended; `status` is consumed.
typedef void across_fn(keel_submission_t *submission, keel_cmd_across_t *c, keel_status_t status);

// Makes a copy that the driver cannot make by itself. All that the submission has begun before is
// over. Calls `done` once, here or later, on any thread, with no lock held. Does not block.
void across_begin(keel_submission_t *submission, keel_cmd_across_t *c, across_fn *done);

#endif
