// SPDX-License-Identifier: Apache-2.0
#include "metal/resident.h"

#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static buffer_t *buffers; // all that have memory of their own
static struct sigaction before;
static PER_THREAD const char *running;

// The threads of the GPU let no signals through but this one, and that while a kernel runs.
void resident_name(const char *kernel)
{
    if (!settings()->residency) return;
    sigset_t faults;
    sigemptyset(&faults);
    sigaddset(&faults, SIGSEGV);
    running = kernel;
    pthread_sigmask(kernel ? SIG_UNBLOCK : SIG_BLOCK, &faults, NULL);
}

// A fault of a kernel: nothing that could hold the lock runs on this thread.
static void fault(int number, siginfo_t *info, void *context)
{
    const char *at = info->si_addr;
    for (const buffer_t *b = buffers; running && b; b = b->next_resident)
        if (at >= b->gpu && at < b->gpu + b->mapped)
            die("kernel %s reaches byte %ld of a buffer of %lu bytes that is not resident: it is "
                "neither bound, nor named by useResource:usage:, nor in a residency set",
                running, (long)(at - b->gpu), b->length);
    sigaction(number, &before, NULL); // and the access faults again
    (void)context;
}

static void watch(void)
{
    struct sigaction action = {.sa_sigaction = fault, .sa_flags = SA_SIGINFO | SA_NODEFER};
    sigaction(SIGSEGV, &action, &before);
}

void resident_add(buffer_t *buffer)
{
    if (!settings()->residency) return;
    pthread_once(&once, watch);
    pthread_mutex_lock(&lock);
    buffer->next_resident = buffers;
    buffers = buffer;
    mprotect(buffer->gpu, buffer->mapped, PROT_NONE);
    pthread_mutex_unlock(&lock);
}

void resident_remove(buffer_t *buffer)
{
    if (!settings()->residency) return;
    pthread_mutex_lock(&lock);
    for (buffer_t **link = &buffers; *link; link = &(*link)->next_resident) {
        if (*link != buffer) continue;
        *link = buffer->next_resident;
        break;
    }
    pthread_mutex_unlock(&lock);
}

// Memory of the program's own is always there.
static buffer_t *buffer_in(object_t *object)
{
    buffer_t *buffer = (buffer_t *)object;
    return object->isa == &MTLBuffer && !object_is_dead(object) && buffer->mapped ? buffer : NULL;
}

void resident_open(object_t *const *objects, unsigned count)
{
    if (!settings()->residency) return;
    pthread_mutex_lock(&lock);
    for (unsigned i = 0; i < count; i++) {
        buffer_t *buffer = buffer_in(objects[i]);
        if (buffer && buffer->shown++ == 0)
            mprotect(buffer->gpu, buffer->mapped, PROT_READ | PROT_WRITE);
    }
    pthread_mutex_unlock(&lock);
}

void resident_close(object_t *const *objects, unsigned count)
{
    if (!settings()->residency) return;
    pthread_mutex_lock(&lock);
    for (unsigned i = 0; i < count; i++) {
        buffer_t *buffer = buffer_in(objects[i]);
        if (buffer && --buffer->shown == 0) mprotect(buffer->gpu, buffer->mapped, PROT_NONE);
    }
    pthread_mutex_unlock(&lock);
}
