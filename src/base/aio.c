// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <unistd.h>

#include "base/aio_service.h"
#include "base/fork.h"
#include "base/futex.h"
#include "base/memory.h"
#include "base/status.h"
#include "base/thread.h"

int aio_perform(aio_request_t *request)
{
    request->moved = 0;
    while (request->moved < request->size) {
        int64_t moved = aio_turn(request);
        if (moved < 0) return (int)-moved;
        if (moved == 0) return request->write ? EIO : AIO_END_OF_FILE;
        request->moved += (uint64_t)moved;
    }
    return 0;
}

static void thread_sleep(aio_t *aio)
{
    uint32_t before = atomic_load_explicit(&aio->calls, memory_order_relaxed);
    if (!aio_doze(aio)) return;
    // relaxed: what was submitted is seen by way of the inbox.
    while (atomic_load_explicit(&aio->calls, memory_order_relaxed) == before)
        futex_wait(&aio->calls, before, KEEL_FOREVER);
}

static void thread_serve(aio_t *aio)
{
    for (;;) {
        aio_collect(aio);
        aio_request_t *request = aio_take(aio);
        if (request == &aio->stop) return;
        if (request)
            aio_turn_end(aio, request, aio_turn(request));
        else
            thread_sleep(aio);
    }
}

static void *service_run(void *argument)
{
    aio_t *aio = argument;
    aio->thread = pthread_self();
    thread_set_name(aio->thread, "keel-files");
    if (aio->ring_forbidden || !aio_ring_serve(aio)) thread_serve(aio);
    if (aio->orphaned) mem_free(aio);
    return NULL;
}

static void service_start(aio_t *aio)
{
    pthread_t thread; // the service writes it down itself, since it may be needed before we could
    int error = thread_start(&thread, NULL, service_run, aio); // no name: it may be over already
    if (!error) return;
    // acq_rel: as in inbox_push, and as in aio_collect.
    aio_request_t *request =
        atomic_exchange_explicit(&aio->inbox, &aio->absent, memory_order_acq_rel);
    while (request) {
        aio_request_t *next = request->next;
        request->done(request, error);
        request = next;
    }
}

static void service_call(aio_t *aio)
{
    if (aio->ring_fd >= 0) {
        // It cannot fail: there is never more than one call.
        (void)!write(aio->notify.write_fd, &(uint64_t){1}, sizeof(uint64_t));
        return;
    }
    _Atomic uint32_t *calls = &aio->calls;
    atomic_fetch_add_explicit(calls, 1, memory_order_relaxed);
    futex_wake(calls, 1);
}

// Adds a request and returns what was on top before.
static aio_request_t *inbox_push(aio_t *aio, aio_request_t *request)
{
    aio_request_t *top = atomic_load_explicit(&aio->inbox, memory_order_relaxed);
    // release: the request is filled in when the service takes it. acquire: pairs with aio_doze.
    do {
        request->next = top == &aio->absent || top == &aio->asleep ? NULL : top;
    } while (!atomic_compare_exchange_weak_explicit(&aio->inbox, &top, request,
                                                    memory_order_acq_rel, memory_order_relaxed));
    return top;
}

keel_status_t aio_create(aio_t **aio)
{
    *aio = mem_zalloc(sizeof **aio);
    if (!*aio) return status_no_memory();
    atomic_init(&(*aio)->inbox, &(*aio)->absent);
    (*aio)->generation = fork_generation();
    (*aio)->ring_fd = -1;
    return NULL;
}

void aio_submit(aio_t *aio, aio_request_t *request)
{
    request->moved = 0;
    const aio_request_t *top = inbox_push(aio, request);
    if (top == &aio->absent)
        service_start(aio);
    else if (top == &aio->asleep)
        service_call(aio);
}

void aio_destroy(aio_t *aio)
{
    if (!aio) return;
    if (!fork_is_ours(aio->generation)) {
        if (aio->ring_fd >= 0) {
            close(aio->ring_fd);
            notify_finish(&aio->notify);
        }
        mem_free(aio);
        return;
    }
    if (atomic_load_explicit(&aio->inbox, memory_order_relaxed) == &aio->absent) {
        mem_free(aio);
        return;
    }
    pthread_t thread = aio->thread;
    aio->orphaned = pthread_equal(thread, pthread_self());
    if (aio->orphaned) {
        pthread_detach(thread);
        aio_submit(aio, &aio->stop);
        return;
    }
    aio_submit(aio, &aio->stop);
    pthread_join(thread, NULL);
    mem_free(aio);
}
