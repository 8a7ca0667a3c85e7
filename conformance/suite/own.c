// SPDX-License-Identifier: Apache-2.0
// What a test owns, and its release.
#include "suite/own.h"

#include "suite/run.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

typedef struct owned_t {
    owned_kind_t kind;
    void *object;
    void (*cleanup)(void *user);
    struct owned_t *below;
} owned_t;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static owned_t *top;

static void push(owned_kind_t kind, void *object, void (*cleanup)(void *user))
{
    owned_t *owned = malloc(sizeof *owned);
    if (!owned) abort();
    pthread_mutex_lock(&lock);
    *owned = (owned_t){kind, object, cleanup, top};
    top = owned;
    pthread_mutex_unlock(&lock);
}

void own(owned_kind_t kind, void *object)
{
    if (object) push(kind, object, NULL);
}

void own_cleanup(void (*fn)(void *user), void *user)
{
    push(OWNED_CLEANUP, user, fn);
}

void own_descriptor(int fd)
{
    push(OWNED_DESCRIPTOR, (void *)(intptr_t)fd, NULL);
}

static void release(const owned_t *owned)
{
    switch (owned->kind) {
    case OWNED_DEVICE: keel_device_release(owned->object); break;
    case OWNED_QUEUE: keel_queue_release(owned->object); break;
    case OWNED_SEMAPHORE: keel_semaphore_release(owned->object); break;
    case OWNED_BUFFER: keel_buffer_release(owned->object); break;
    case OWNED_POOL: keel_pool_release(owned->object); break;
    case OWNED_EXECUTABLE: keel_executable_release(owned->object); break;
    case OWNED_RECORDING: keel_recording_release(owned->object); break;
    case OWNED_FILE: keel_file_release(owned->object); break;
    case OWNED_COMPLETION: keel_completion_release(owned->object); break;
    case OWNED_STATUS: keel_status_release(owned->object); break;
    case OWNED_MEMORY: free(owned->object); break;
    case OWNED_DESCRIPTOR: close((int)(intptr_t)owned->object); break;
    case OWNED_THREAD: thread_finish(owned->object); break;
    case OWNED_CHILD: child_finish(owned->object); break;
    case OWNED_GATE: gate_finish(owned->object); break;
    case OWNED_CLEANUP: owned->cleanup(owned->object); break;
    }
}

// Takes the newest entry for `object` out of the stack.
static owned_t *take(void *object)
{
    pthread_mutex_lock(&lock);
    owned_t **link = &top;
    while (*link && (*link)->object != object) link = &(*link)->below;
    owned_t *owned = *link;
    if (owned) *link = owned->below;
    pthread_mutex_unlock(&lock);
    return owned;
}

void drop(void *object)
{
    owned_t *owned = take(object);
    CHECK(owned);
    release(owned);
    free(owned);
}

void disown(void *object)
{
    owned_t *owned = take(object);
    CHECK(owned);
    free(owned);
}

// Threads of the test and work in flight may wait for what a test that ended early will never do.
static void unblock(void)
{
    pthread_mutex_lock(&lock);
    for (owned_t *owned = top; owned; owned = owned->below)
        if (owned->kind == OWNED_CHILD) child_finish(owned->object); // which would see what follows
    for (owned_t *owned = top; owned; owned = owned->below) {
        if (owned->kind == OWNED_GATE) gate_open(owned->object);
        if (owned->kind == OWNED_SEMAPHORE) {
            keel_status_release(keel_semaphore_fail(
                owned->object, KEEL_ERROR(KEEL_CANCELLED, "the test has failed")));
        }
    }
    pthread_mutex_unlock(&lock);
}

// In which order things go: children are stopped, clean-ups may stop threads, threads use objects,
// and work in flight may use memory, and what descriptors stand for, until its device is closed.
static int turn_of(owned_kind_t kind)
{
    switch (kind) {
    case OWNED_CHILD:
    case OWNED_CLEANUP: return 0;
    case OWNED_THREAD: return 1;
    case OWNED_MEMORY:
    case OWNED_DESCRIPTOR:
    case OWNED_GATE: return 3;
    default: return 2;
    }
}

static owned_t *take_in_turn(int turn)
{
    pthread_mutex_lock(&lock);
    owned_t **link = &top;
    while (*link && turn_of((*link)->kind) > turn) link = &(*link)->below;
    owned_t *owned = *link;
    if (owned) *link = owned->below;
    pthread_mutex_unlock(&lock);
    return owned;
}

void fixture_finish(bool failed)
{
    if (failed) unblock();
    for (int turn = 0; turn < 4; turn++) {
        for (owned_t *owned; (owned = take_in_turn(turn));) {
            release(owned);
            free(owned);
        }
    }
}
