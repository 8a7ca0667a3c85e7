// SPDX-License-Identifier: Apache-2.0
#include "base/aio_service.h"

#include <errno.h>
#include <poll.h>
#include <unistd.h>

void aio_collect(aio_t *aio)
{
    // acquire: pairs with the release in inbox_push.
    aio_request_t *newest = atomic_exchange_explicit(&aio->inbox, NULL, memory_order_acquire);
    if (!newest) return;
    aio_request_t *oldest = NULL;
    for (aio_request_t *r = newest, *next; r; r = next) {
        next = r->next;
        r->next = oldest;
        oldest = r;
    }
    *(aio->first ? &aio->last->next : &aio->first) = oldest;
    aio->last = newest;
}

aio_request_t *aio_take(aio_t *aio)
{
    aio_request_t *request = aio->first;
    if (request) aio->first = request->next;
    return request;
}

bool aio_doze(aio_t *aio)
{
    aio_request_t *empty = NULL;
    // release: the thread that replaces the mark sees how to call.
    return atomic_compare_exchange_strong_explicit(&aio->inbox, &empty, &aio->asleep,
                                                   memory_order_release, memory_order_relaxed);
}

size_t aio_turn_size(const aio_request_t *request)
{
    uint64_t left = request->size - request->moved;
    return left < AIO_CHUNK ? (size_t)left : AIO_CHUNK;
}

int64_t aio_turn(const aio_request_t *request)
{
    unsigned char *data = request->data + request->moved;
    size_t size = aio_turn_size(request);
    off_t offset = (off_t)(request->offset + request->moved);
    for (;;) {
        ssize_t moved = request->write ? pwrite(request->fd, data, size, offset)
                                       : pread(request->fd, data, size, offset);
        if (moved >= 0) return moved;
        if (errno == EAGAIN)
            poll(&(struct pollfd){request->fd, request->write ? POLLOUT : POLLIN, 0}, 1, -1);
        else if (errno != EINTR)
            return -errno;
    }
}

void aio_turn_end(aio_t *aio, aio_request_t *request, int64_t result)
{
    if (result > 0) request->moved += (uint64_t)result;
    if (result < 0 && result != -EINTR) {
        request->done(request, (int)-result);
    } else if (request->moved == request->size) {
        request->done(request, 0);
    } else if (result == 0) {
        request->done(request, request->write ? EIO : AIO_END_OF_FILE);
    } else {
        request->next = NULL;
        *(aio->first ? &aio->last->next : &aio->first) = request;
        aio->last = request;
    }
}
