// SPDX-License-Identifier: Apache-2.0
// Events of the program's, MTLSharedEvent, as semaphores: the value is the event's, and failure the
// host's, for an event has none (kit/remote.h).
//
//     out   the command buffer that does the work signals it, or the host, when the work has ended
//     in    a listener wakes the device's thread for these, which looks at the value
//
// A command buffer that waited for an event of others would hold up its queue for as long as they
// like. So queues wait for it by way of the host.
//
// A listener cannot be taken back: its block may be called when the semaphore, and the device, are
// long gone. What it carries is a note of its own, which the semaphore leaves when it goes.
#include <stdlib.h>

#include "base/memory.h"
#include "base/status.h"
#include "drivers/metal/queue/queue.h"
#include "kit/object.h"
#include "kit/timeline.h"

// A value that a listener is for. Memory of the C library's, as it may outlive the device.
typedef struct note_t {
    _Atomic uint32_t refs;          // of the block's copies, and of the thread that makes it
    struct note_t *next;            // of the event
    struct metal_event_t *awaiting; // NULL: it has been called, or the event is gone
    uint64_t value;
} note_t;

typedef struct metal_event_t {
    remote_t remote; // first
    const metal_api_t *api;
    metal_device_t *device; // retained by the semaphore
    id event;               // retained
    lock_t lock;            // for signals of the host's: one compares and writes at a time
    note_t *notes;          // under notes_lock
    _Atomic bool deaf;      // there is no memory for a note
} metal_event_t;

// For all that blocks and events know of each other.
static lock_t notes_lock;

static metal_event_t *event_of(remote_t *remote)
{
    return (metal_event_t *)(void *)remote;
}

static void note_release(note_t *note)
{
    // acq_rel: all uses by others come before the end.
    if (atomic_fetch_sub_explicit(&note->refs, 1, memory_order_acq_rel) == 1) free(note);
}

// For Metal, which copies the block.
static void note_keep(metal_block_t *to, const metal_block_t *from)
{
    note_t *note = from->user;
    to->user = note;
    // relaxed: the block that is copied has a reference.
    atomic_fetch_add_explicit(&note->refs, 1, memory_order_relaxed);
}

static void note_drop(metal_block_t *block)
{
    note_release(block->user);
}

// Under the lock.
static void note_leave(note_t *note)
{
    note_t **at = &note->awaiting->notes;
    while (*at != note) at = &(*at)->next;
    *at = note->next;
    note->awaiting = NULL;
}

// On a thread of Metal's.
static void event_came(metal_block_t *block, id object, uint64_t value)
{
    (void)object, (void)value;
    note_t *note = block->user;
    lock_enter(&notes_lock); // while it is held, the event does not go
    if (note->awaiting) {
        poller_wake(&note->awaiting->device->listening.poller);
        note_leave(note);
    }
    lock_leave(&notes_lock);
}

// A note for the smallest value that is awaited; NULL: there is one, or none is awaited, or (deaf)
// there is no memory. Of a value that the host knows to be reached a note brings no news, though
// its listener may be late: the next value needs one of its own.
static note_t *note_make(metal_event_t *event)
{
    uint64_t value = remote_awaited(&event->remote);
    // acquire: pairs with the look that raises it, which makes a note for what is left.
    uint64_t known = atomic_load_explicit(&event->remote.semaphore.value, memory_order_acquire);
    note_t *note = NULL;
    lock_enter(&notes_lock);
    bool heard = value == UINT64_MAX;
    for (const note_t *n = event->notes; n; n = n->next)
        heard |= n->value > known && n->value <= value;
    if (!heard) note = calloc(1, sizeof *note);
    if (note) {
        *note = (note_t){.refs = 1, .next = event->notes, .awaiting = event, .value = value};
        event->notes = note;
    }
    lock_leave(&notes_lock);
    if (!heard && !note) atomic_store(&event->deaf, true);
    return note;
}

static const metal_noting_t noting = METAL_NOTING(note_keep, note_drop);

static void event_watch(remote_t *remote)
{
    metal_event_t *event = event_of(remote);
    const metal_api_t *api = event->api;
    poller_watch(&event->device->listening.poller, remote);
    note_t *note = note_make(event);
    if (!note) return;
    void *pool = metal_enter(api);
    metal_block_t block = metal_block_noting(api, event_came, &noting, note);
    mtl_notify(api, event->event, event->device->listening.listener, note->value, &block);
    metal_leave(api, pool);
    note_release(note);
}

// How far others are. Values that Keel has none of count as the largest.
static uint64_t event_value(const metal_event_t *event)
{
    void *pool = metal_enter(event->api);
    uint64_t value = mtl_signaled_value(event->api, event->event);
    metal_leave(event->api, pool);
    return value < SEMAPHORE_FAILED ? value : SEMAPHORE_FAILED - 1;
}

static keel_status_t event_load(remote_t *remote, uint64_t *value)
{
    metal_event_t *event = event_of(remote);
    uint64_t now = event_value(event);
    if (now > *value) *value = now;
    return atomic_load(&event->deaf) ? status_no_memory() : NULL;
}

static keel_status_t event_signal(remote_t *remote, uint64_t value)
{
    metal_event_t *event = event_of(remote);
    void *pool = metal_enter(event->api);
    lock_enter(&event->lock);
    bool grows = mtl_signaled_value(event->api, event->event) < value;
    if (grows) mtl_set_signaled_value(event->api, event->event, value);
    lock_leave(&event->lock);
    metal_leave(event->api, pool);
    return grows ? NULL : remote_refusal(remote, value);
}

static void event_fail(remote_t *remote, keel_status_t cause)
{
    (void)remote, (void)cause; // the host knows, and nothing on the GPU waits
}

static keel_status_t event_export(remote_t *remote, keel_external_semaphore_t *external)
{
    if (external->kind != KEEL_SEMAPHORE_NATIVE)
        return semaphore_not_exported(&remote->semaphore, external);
    external->handle.object = event_of(remote)->event;
    return NULL;
}

static void event_free(metal_event_t *event)
{
    const metal_api_t *api = event->api;
    void *pool = metal_enter(api);
    mtl_release(api, event->event);
    metal_leave(api, pool);
    mem_free_aligned(event);
}

static void event_destroy(remote_t *remote)
{
    metal_event_t *event = event_of(remote);
    if (!object_is_ours(&remote->semaphore.object)) {
        mem_free_aligned(event);
        return;
    }
    poller_forget(&event->device->listening.poller, remote);
    lock_enter(&notes_lock);
    while (event->notes) note_leave(event->notes);
    lock_leave(&notes_lock);
    event_free(event);
}

static const remote_ops_t event_ops = {
    .load = event_load,
    .signal = event_signal,
    .fail = event_fail,
    .watch = event_watch,
    .destroy = event_destroy,
    .export = event_export,
};

bool metal_event_is(keel_semaphore_t *semaphore)
{
    return remote_with(semaphore, &event_ops);
}

void metal_events_signal(metal_run_t *run)
{
    const metal_api_t *api = metal_run_device(run)->api;
    keel_submission_t *submission = &run->base.submission;
    if (run->guarded) return;
    // Signals are made in the order of their list: the host makes those behind one of its own.
    for (uint32_t i = 0; i < submission->signal_count; i++) {
        signal_t *signal = &submission->signals[i];
        keel_semaphore_t *semaphore = signal->point.semaphore;
        remote_t *remote = remote_with(semaphore, &event_ops);
        if (!remote || event_of(remote)->api != api) return;
        if (timeline_poll(semaphore, signal->point.value, NULL) != POINT_PENDING) return;
        mtl_encode_signal(api, run->command, event_of(remote)->event, signal->point.value);
        signal->native = true;
    }
}

// What listeners need, which the device has once.
static keel_status_t listening_start(metal_device_t *device)
{
    const metal_api_t *api = device->api;
    KEEL_TRY(poller_start(&device->listening.poller));
    lock_enter(&device->listening.lock);
    if (!device->listening.listener)
        device->listening.listener = mtl_new(api, api->objc_getClass("MTLSharedEventListener"));
    bool made = device->listening.listener;
    lock_leave(&device->listening.lock);
    if (made) return NULL;
    return KEEL_ERROR(KEEL_RESOURCE_EXHAUSTED, "Metal has no listener left");
}

void metal_listening_stop(metal_device_t *device)
{
    poller_stop(&device->listening.poller);
    mtl_release(device->api, device->listening.listener);
    device->listening.listener = NULL;
}

static keel_status_t object_check(const metal_api_t *api, const keel_external_semaphore_t *external)
{
    id object = external->handle.object;
    if (external->kind != KEEL_SEMAPHORE_NATIVE)
        return KEEL_ERROR(KEEL_UNSUPPORTED, "Metal takes no semaphore by a descriptor: import an "
                                            "MTLSharedEvent, KEEL_SEMAPHORE_NATIVE");
    if (!object) return KEEL_ERROR(KEEL_INVALID_ARGUMENT, "external->handle.object is NULL");
    if (mtl_responds(api, object, api->selectors.notify)) return NULL;
    return KEEL_ERROR(KEEL_INVALID_ARGUMENT, "external->handle.object is no MTLSharedEvent");
}

static keel_status_t event_create(metal_device_t *device, id object, uint64_t initial,
                                  keel_semaphore_t **semaphore)
{
    metal_event_t *event = mem_zalloc_aligned(sizeof *event, _Alignof(metal_event_t));
    if (!event) return status_no_memory();
    event->api = device->api;
    event->device = device;
    event->event = mtl_retain(device->api, object);
    uint64_t value = event_value(event);
    if (value < initial) {
        event_free(event);
        return KEEL_ERROR(KEEL_INVALID_ARGUMENT,
                          "options->initial is %llu; the MTLSharedEvent is at %llu",
                          (unsigned long long)initial, (unsigned long long)value);
    }
    remote_init(&event->remote, &event_ops, NULL, value);
    *semaphore = &event->remote.semaphore;
    return NULL;
}

keel_status_t metal_semaphore_import(keel_device_t *base, const keel_external_semaphore_t *external,
                                     uint64_t initial, keel_semaphore_t **semaphore)
{
    metal_device_t *device = metal_device(base);
    void *pool = metal_enter(device->api);
    keel_status_t status = object_check(device->api, external);
    if (!status) status = listening_start(device);
    if (!status) status = event_create(device, external->handle.object, initial, semaphore);
    metal_leave(device->api, pool);
    return status;
}
