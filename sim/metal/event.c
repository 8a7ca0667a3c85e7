// SPDX-License-Identifier: Apache-2.0
#include "metal/event.h"

#include "metal/dispatch.h"

#include <inttypes.h>
#include <stdlib.h>
#include <time.h>

typedef struct listener_t {
    object_t object;
    void *queue; // retained
} listener_t;

// One registration. It becomes a task of the listener's queue.
typedef struct note_t {
    task_t task;
    struct note_t *next;
    uint64_t value;
    block_t *block;       // owned
    listener_t *listener; // retained
    event_t *event;       // retained, once it is a task
    uint64_t seen;        // the value when it was notified
} note_t;

typedef void (*note_fn)(block_t *block, event_t *event, uint64_t value);

event_t *event_new(class_t *class)
{
    event_t *event = object_new(class);
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&event->lock, NULL);
    pthread_cond_init(&event->raised, &monotonic);
    pthread_condattr_destroy(&monotonic);
    return event;
}

bool event_is(const void *object)
{
    const object_t *o = object;
    return o && (o->isa == &MTLEvent || o->isa == &MTLSharedEvent);
}

static void note_free(note_t *note)
{
    block_free(note->block);
    object_release(note->listener);
    free(note);
}

static void event_dealloc(void *self)
{
    event_t *event = self;
    for (note_t *note; (note = event->notes) != NULL;) {
        event->notes = note->next;
        complain("an event was released before it had value %" PRIu64 ", which a listener is for",
                 note->value);
        note_free(note);
    }
    free(event->known.covers);
}

// On the listener's queue.
static void note_run(task_t *task)
{
    note_t *note = (note_t *)task;
    hazard_sees(&note->event->known);
    ((note_fn)note->block->invoke)(note->block, note->event, note->seen);
    object_release(note->event);
    note_free(note);
}

static void note_post(note_t *note, event_t *event)
{
    note->task.run = note_run;
    note->event = object_retain(event);
    note->seen = event->value;
    dispatch_post(note->listener->queue, &note->task);
}

// The lock is held.
static void notify(event_t *event)
{
    for (note_t **at = &event->notes; *at;) {
        note_t *note = *at;
        if (note->value > event->value) {
            at = &note->next;
            continue;
        }
        *at = note->next;
        note_post(note, event);
    }
}

void event_raise(event_t *event, uint64_t value, bool by_host)
{
    pthread_mutex_lock(&event->lock);
    bool grows = value > event->value;
    if (!grows)
        complain("a signal of %" PRIu64 " leaves an event at %" PRIu64 ": values only grow", value,
                 event->value);
    if (grows) {
        event->value = value;
        pthread_cond_broadcast(&event->raised);
        if (!by_host || !settings()->lost_notes) notify(event);
    }
    pthread_mutex_unlock(&event->lock);
}

bool event_wait(event_t *event, uint64_t value, uint64_t until)
{
    struct timespec time = {(time_t)(until / 1000000000u), (long)(until % 1000000000u)};
    int late = 0;
    pthread_mutex_lock(&event->lock);
    while (event->value < value && !late) {
        if (until == UINT64_MAX)
            pthread_cond_wait(&event->raised, &event->lock);
        else
            late = pthread_cond_timedwait(&event->raised, &event->lock, &time);
    }
    bool reached = event->value >= value;
    pthread_mutex_unlock(&event->lock);
    return reached;
}

static uint64_t shared_value(event_t *self, sel_t cmd)
{
    pthread_mutex_lock(&self->lock);
    uint64_t value = self->value;
    pthread_mutex_unlock(&self->lock);
    hazard_sees(&self->known);
    return value;
}

static void shared_set_value(event_t *self, sel_t cmd, uint64_t value)
{
    hazard_raises(&self->known);
    event_raise(self, value, true);
}

static bool shared_wait(event_t *self, sel_t cmd, uint64_t value, uint64_t timeout_ms)
{
    uint64_t now = clock_ns();
    bool forever = timeout_ms > (UINT64_MAX - now) / 1000000u;
    bool reached = event_wait(self, value, forever ? UINT64_MAX : now + timeout_ms * 1000000u);
    if (reached) hazard_sees(&self->known);
    return reached;
}

static void shared_notify(event_t *self, sel_t cmd, listener_t *listener, uint64_t value,
                          const block_t *block)
{
    object_check(self, cmd, listener, &MTLSharedEventListener);
    if (!block) misuse(self, cmd, "nil where a block must be");
    note_t *note = make(sizeof *note);
    note->value = value;
    note->block = block_copy(self, cmd, block, BLOCK_OBJECT_NUMBER);
    note->listener = object_retain(listener);
    pthread_mutex_lock(&self->lock);
    if (self->value >= value) {
        note_post(note, self);
    } else {
        note->next = self->notes;
        self->notes = note;
    }
    pthread_mutex_unlock(&self->lock);
}

class_t MTLEvent = {.name = "MTLEvent", .size = sizeof(event_t), .dealloc = event_dealloc};

static method_t shared_methods[] = {
    METHOD("signaledValue", shared_value), METHOD("setSignaledValue:", shared_set_value),
    METHOD("waitUntilSignaledValue:timeoutMS:", shared_wait),
    METHOD("notifyListener:atValue:block:", shared_notify), METHODS_END};
class_t MTLSharedEvent = {.name = "MTLSharedEvent",
                          .size = sizeof(event_t),
                          .dealloc = event_dealloc,
                          .methods = shared_methods};

static void *listener_alloc(class_t *self, sel_t cmd)
{
    return object_new(&MTLSharedEventListener);
}

static void *listener_init_own(listener_t *self, sel_t cmd)
{
    self->queue = dispatch_queue_create("listener", NULL);
    return self;
}

static void *listener_init(listener_t *self, sel_t cmd, void *queue)
{
    object_check(self, cmd, queue, &OS_dispatch_queue);
    self->queue = object_retain(queue);
    return self;
}

static void listener_dealloc(void *self)
{
    object_release(((listener_t *)self)->queue);
}

static method_t listener_methods[] = {METHOD("init", listener_init_own),
                                      METHOD("initWithDispatchQueue:", listener_init), METHODS_END};
class_t MTLSharedEventListener = {.name = "MTLSharedEventListener",
                                  .size = sizeof(listener_t),
                                  .dealloc = listener_dealloc,
                                  .methods = listener_methods};
static void *listener_new(class_t *self, sel_t cmd)
{
    return listener_init_own(listener_alloc(self, cmd), cmd);
}

static method_t listener_meta_methods[] = {METHOD("alloc", listener_alloc),
                                           METHOD_MAY_FAIL("new", listener_new), METHODS_END};
static class_t listener_meta = {.name = "MTLSharedEventListener", .methods = listener_meta_methods};

void event_add(void)
{
    class_add(&MTLEvent);
    class_add(&MTLSharedEvent);
    class_add_meta(&MTLSharedEventListener, &listener_meta);
}
