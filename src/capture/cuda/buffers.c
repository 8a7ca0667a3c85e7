// SPDX-License-Identifier: Apache-2.0
#include "capture/cuda/buffers.h"

#include <pthread.h>
#include <time.h>

#include "base/memory.h"
#include "capture/cuda/cupti.h"

enum {
    SIZE = 1 << 20,
    SPARE_MOST = 16,   // are kept for the next request
    WAITING_MOST = 512 // wait to be looked at
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t given = PTHREAD_COND_INITIALIZER;
// All under the lock.
static buffer_t *spare, *first, **last = &first;
static size_t spare_count, waiting_count;

static buffer_t *buffer_find(void)
{
    pthread_mutex_lock(&lock);
    buffer_t *buffer = spare;
    bool refused = waiting_count >= WAITING_MOST;
    if (refused) buffer = NULL;
    if (buffer) {
        spare = buffer->next;
        spare_count--;
    }
    pthread_mutex_unlock(&lock);
    return buffer || refused ? buffer : mem_alloc(sizeof *buffer + SIZE);
}

void buffers_request(uint8_t **bytes, size_t *size, size_t *record_limit)
{
    buffer_t *buffer = buffer_find();
    *bytes = buffer ? buffer->bytes : NULL;
    *size = buffer ? SIZE : 0;
    *record_limit = 0; // as many as have room
}

void buffers_complete(void *context, uint32_t stream, uint8_t *bytes, size_t size, size_t used)
{
    if (!bytes || !size) return;
    buffer_t *buffer = (buffer_t *)(void *)(bytes - offsetof(buffer_t, bytes));
    *buffer = (buffer_t){.used = used};
    if (cupti.dropped(context, stream, &buffer->dropped) != CUPTI_SUCCESS) buffer->dropped = 0;
    pthread_mutex_lock(&lock);
    *last = buffer;
    last = &buffer->next;
    waiting_count++;
    pthread_cond_signal(&given);
    pthread_mutex_unlock(&lock);
}

buffer_t *buffers_take(void)
{
    pthread_mutex_lock(&lock);
    buffer_t *buffer = first;
    if (buffer) {
        first = buffer->next;
        if (!first) last = &first;
        waiting_count--;
    }
    pthread_mutex_unlock(&lock);
    return buffer;
}

void buffers_return(buffer_t *buffer)
{
    pthread_mutex_lock(&lock);
    bool kept = spare_count < SPARE_MOST;
    if (kept) {
        buffer->next = spare;
        spare = buffer;
        spare_count++;
    }
    pthread_mutex_unlock(&lock);
    if (!kept) mem_free(buffer);
}

void buffers_wait(uint64_t most_ns)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    uint64_t ns = (uint64_t)until.tv_nsec + most_ns;
    until.tv_sec += (time_t)(ns / 1000000000u);
    until.tv_nsec = (long)(ns % 1000000000u);
    pthread_mutex_lock(&lock);
    // Once is enough: the caller looks again anyhow.
    if (!first) pthread_cond_timedwait(&given, &lock, &until);
    pthread_mutex_unlock(&lock);
}

void buffers_forget(void)
{
    lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    given = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
    first = NULL;
    last = &first;
    waiting_count = 0;
}
