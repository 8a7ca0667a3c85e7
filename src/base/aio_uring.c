// SPDX-License-Identifier: Apache-2.0
#include "base/aio_service.h"

#if KEEL_HAVE_URING

#include <errno.h>
#include <liburing.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"

// One entry is for the call, the others are for requests: so there is always one to be had.
enum { ENTRIES = 64, REQUESTS = ENTRIES - 1 };

// All of it belongs to the service thread: no other thread enters the ring.
typedef struct ring_t {
    aio_t *aio;
    struct io_uring uring;
    unsigned in_flight; // requests
    bool asleep;        // the mark is in the inbox, and the kernel watches for a call
} ring_t;

// Orders the use of a ring before that of a later one at the same address. The kernel has done so
// already, but ThreadSanitizer does not see how liburing maps and unmaps memory.
static _Atomic uint32_t rings_closed;

// Whether the kernel really lets us: it may be too old, and a sandbox may forbid any of the calls.
static bool ring_probe(ring_t *ring)
{
    struct io_uring_cqe *completion;
    if (!(ring->uring.features & IORING_FEAT_RW_CUR_POS)) return false; // as old as plain reads
    io_uring_prep_nop(io_uring_get_sqe(&ring->uring));
    if (io_uring_submit(&ring->uring) != 1) return false;
    if (io_uring_wait_cqe(&ring->uring, &completion) < 0) return false;
    io_uring_cqe_seen(&ring->uring, completion);
    return true;
}

static bool ring_open(ring_t *ring)
{
    aio_t *aio = ring->aio;
    if (io_uring_queue_init(ENTRIES, &ring->uring, 0) < 0) return false;
    atomic_load_explicit(&rings_closed, memory_order_acquire);
    // A child of fork has no use for it.
    io_uring_ring_dontfork(&ring->uring);
    keel_status_t failure = NULL;
    if (ring_probe(ring) && !(failure = notify_init(&aio->notify))) {
        aio->ring_fd = ring->uring.ring_fd;
        return true;
    }
    keel_status_release(failure);
    io_uring_queue_exit(&ring->uring);
    return false;
}

static void ring_close(ring_t *ring)
{
    atomic_fetch_add_explicit(&rings_closed, 1, memory_order_release);
    io_uring_queue_exit(&ring->uring);
    notify_finish(&ring->aio->notify);
}

static void ring_listen(ring_t *ring)
{
    struct io_uring_sqe *entry = io_uring_get_sqe(&ring->uring);
    io_uring_prep_poll_add(entry, ring->aio->notify.read_fd, POLLIN);
    io_uring_sqe_set_data(entry, NULL);
    ring->asleep = true;
}

static void ring_answer(ring_t *ring)
{
    uint64_t calls;
    if (read(ring->aio->notify.read_fd, &calls, sizeof calls) == sizeof calls)
        ring->asleep = false;
    else
        ring_listen(ring);
}

static void ring_begin(ring_t *ring, aio_request_t *request)
{
    unsigned char *data = request->data + request->moved;
    unsigned size = (unsigned)aio_turn_size(request);
    uint64_t offset = request->offset + request->moved;
    if (offset > INT64_MAX) { // to the kernel, the largest of these means the file's position
        aio_turn_end(ring->aio, request, -EINVAL);
        return;
    }
    struct io_uring_sqe *entry = io_uring_get_sqe(&ring->uring);
    if (request->write)
        io_uring_prep_write(entry, request->fd, data, size, offset);
    else
        io_uring_prep_read(entry, request->fd, data, size, offset);
    io_uring_sqe_set_data(entry, request);
    ring->in_flight++;
}

// Gives the kernel what fits. False when it is time to leave.
static bool ring_fill(ring_t *ring)
{
    while (ring->in_flight < REQUESTS) {
        aio_request_t *request = aio_take(ring->aio);
        if (!request) break;
        if (request == &ring->aio->stop) return false;
        ring_begin(ring, request);
    }
    return true;
}

// Tells the kernel of all that is prepared and waits until `count` operations have ended, though
// not always.
static void ring_enter(ring_t *ring, unsigned count)
{
    int result = io_uring_submit_and_wait(&ring->uring, count);
    if (result >= 0 || result == -EINTR || result == -EAGAIN || result == -EBUSY) return;
    // The kernel may still write into buffers of requests that cannot be waited for any more.
    log_say(KEEL_LOG_ERROR, "io_uring_enter worked before and now fails: %s", strerror(-result));
    abort();
}

static void ring_reap(ring_t *ring)
{
    struct io_uring_cqe *completion;
    while (io_uring_peek_cqe(&ring->uring, &completion) == 0) {
        aio_request_t *request = io_uring_cqe_get_data(completion);
        int64_t result = completion->res;
        io_uring_cqe_seen(&ring->uring, completion);
        if (request) {
            ring->in_flight--;
            // It comes from descriptors with O_NONBLOCK, in file systems that cannot heed it.
            if (result == -EAGAIN) result = aio_turn(request);
            aio_turn_end(ring->aio, request, result);
        } else {
            ring_answer(ring);
        }
    }
}

bool aio_ring_serve(aio_t *aio)
{
    ring_t ring = {.aio = aio};
    if (!ring_open(&ring)) return false;
    for (;;) {
        if (!ring.asleep) aio_collect(aio);
        if (!ring_fill(&ring)) break;
        if (!ring.asleep && !aio->first && aio_doze(aio)) ring_listen(&ring);
        ring_enter(&ring, ring.asleep || ring.in_flight == REQUESTS);
        ring_reap(&ring);
    }
    ring_close(&ring);
    return true;
}

#endif
