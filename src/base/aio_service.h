// SPDX-License-Identifier: Apache-2.0
// What the two engines of base/aio.h share, io_uring (aio_uring.c) and a thread (aio.c). For aio*.c
// alone.
//
// Requests arrive in the inbox, a stack without locks. Two marks stand in it in place of requests:
// `absent` as long as there is no service thread, and `asleep` while that thread waits for a call.
// The thread that replaces a mark by a request must do what it stands for: start the service
// thread, or call it. Until then the service does not look into the inbox; afterwards the debtor
// touches the aio_t no more, for its request may have ended, and the aio_t with it.
#ifndef KEEL_SRC_BASE_AIO_SERVICE_H_
#define KEEL_SRC_BASE_AIO_SERVICE_H_

#include <pthread.h>
#include <stdatomic.h>

#include "base/aio.h"
#include "base/notify.h"

struct aio_t {
    aio_request_t *_Atomic inbox; // newest first, ended by NULL; or a mark
    aio_request_t absent, asleep; // the marks: nothing but addresses
    aio_request_t stop;           // tells the service to leave
    uint32_t generation;          // of fork
    bool ring_forbidden;          // have pread and pwrite do the work
    // Written by the service thread before it first sleeps or ends a request.
    pthread_t thread;
    int ring_fd;            // owned; -1: there is no ring, and no notify
    notify_t notify;        // calls the service out of the ring
    _Atomic uint32_t calls; // ... or out of a sleep on this, where they are counted
    // The service thread's own.
    aio_request_t *first, *last; // from the inbox, oldest first, waiting for a turn
    bool orphaned;               // destroyed by the service thread, which frees it when it leaves
};

// The rest is for the service thread.

// Moves what is in the inbox to the end of the queue. Not while asleep.
void aio_collect(aio_t *aio);

// Takes the first request out of the queue, for a turn; NULL: there is none.
aio_request_t *aio_take(aio_t *aio);

// Marks the service as asleep, unless there is something in the inbox.
bool aio_doze(aio_t *aio);

// How many bytes the next turn of a request is to move.
size_t aio_turn_size(const aio_request_t *request);

// Has a turn with pread or pwrite: the bytes moved, or an errno negated.
int64_t aio_turn(const aio_request_t *request);

// Ends a turn with such a result: the request ends, or goes to the end of the queue for another.
void aio_turn_end(aio_t *aio, aio_request_t *request, int64_t result);

#if KEEL_HAVE_URING
// Serves until told to stop. False, at once, if io_uring cannot be used here.
bool aio_ring_serve(aio_t *aio);
#else
static inline bool aio_ring_serve(aio_t *aio)
{
    return false;
}
#endif

#endif
