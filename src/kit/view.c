// SPDX-License-Identifier: Apache-2.0
#include "kit/view.h"

#include <pthread.h>

#include "base/list.h"
#include "base/live.h"
#include "base/lock.h"
#include "base/memory.h"
#include "base/status.h"
#include "kit/label.h"
#include "kit/object.h"

typedef struct view_t {
    struct view_t *next, *previous; // of the device
    struct view_t *sibling;         // of the buffer
    struct views_t *views;          // of which it is one
    keel_device_t *device;          // borrowed: views_close comes first
    keel_buffer_t *buffer;          // owned; NULL: it was refused
} view_t;

// Those of one buffer.
struct views_t {
    keel_buffer_t *root; // borrowed
    view_t *first;
    _Atomic uint32_t pins;            // imports that are not released, and one for the root's life
    void (*destroy)(keel_buffer_t *); // what is to be done at the end, once the root is released
};

static lock_t views_guard; // for all lists of views
static pthread_once_t views_once = PTHREAD_ONCE_INIT;

static void views_lock(void)
{
    lock_enter(&views_guard);
}

static void views_unlock(void)
{
    lock_leave(&views_guard);
}

// The child of a fork finds the lock free, for devices of its own.
static void views_init(void)
{
    pthread_atfork(views_lock, views_unlock, views_unlock);
}

view_state_t view_find(keel_buffer_t *root, const keel_device_t *device, uint64_t *address)
{
    view_state_t state = VIEW_NONE;
    if (!atomic_load_explicit(&root->views, memory_order_relaxed)) return VIEW_NONE;
    lock_enter(&views_guard);
    const view_t *view = atomic_load(&root->views)->first;
    while (view && view->device != device) view = view->sibling;
    if (view) state = view->buffer ? VIEW_THERE : VIEW_REFUSED;
    if (state == VIEW_THERE) *address = atomic_load(&view->buffer->address);
    lock_leave(&views_guard);
    return state;
}

// One import less, or the root has been released. True: that was the last.
static bool views_unpin(struct views_t *views)
{
    // acq_rel: the last one frees what the others have used.
    return atomic_fetch_sub_explicit(&views->pins, 1, memory_order_acq_rel) == 1;
}

// As keel_external_buffer_t.release: a device has unlocked the memory.
static void view_unlocked(void *user)
{
    struct views_t *views = user;
    if (!views_unpin(views)) return;
    keel_buffer_t *root = views->root;
    void (*destroy)(keel_buffer_t *) = views->destroy;
    mem_free(views);
    destroy(root);
}

static keel_status_t views_of(keel_buffer_t *root, struct views_t **views)
{
    lock_enter(&views_guard);
    *views = atomic_load(&root->views);
    if (!*views && (*views = mem_zalloc(sizeof **views))) {
        (*views)->root = root;
        atomic_init(&(*views)->pins, 1);
        atomic_store(&root->views, *views);
    }
    lock_leave(&views_guard);
    return *views ? NULL : status_no_memory();
}

static keel_status_t view_import(struct views_t *views, keel_device_t *device,
                                 keel_buffer_t **buffer)
{
    keel_buffer_t *root = views->root;
    if (root->pool)
        return KEEL_ERROR(KEEL_UNSUPPORTED, "%s is of a pool, whose memory is not page-locked",
                          BUFFER_LABEL(root));
    keel_external_buffer_t external = {
        .kind = KEEL_EXTERNAL_HOST, .handle.host = atomic_load(&root->data), .size = root->size};
    keel_buffer_options_t options = {
        .usage = KEEL_USAGE_TRANSFER, .access = root->access, .name = root->name};
    // An owner who is not told when his memory is free again takes it back with the last reference:
    // then the view is unlocked at once, and not later.
    bool later = !root->external.size || root->external.release;
    if (!later) return keel_buffer_import(device, &external, &options, buffer);
    external.release = view_unlocked;
    external.user = views;
    atomic_fetch_add(&views->pins, 1);
    keel_status_t status = keel_buffer_import(device, &external, &options, buffer);
    if (status) atomic_fetch_sub(&views->pins, 1); // not the last: the root is there
    return status;
}

keel_status_t view_make(keel_buffer_t *root, keel_device_t *device, uint64_t *address)
{
    struct views_t *views;
    pthread_once(&views_once, views_init);
    KEEL_TRY(views_of(root, &views));
    view_t *view = mem_zalloc(sizeof *view);
    if (!view) return status_no_memory();
    keel_buffer_t *buffer = NULL;
    keel_status_t status = view_import(views, device, &buffer);
    *view = (view_t){.views = views, .device = device, .buffer = buffer};
    if (buffer) {
        *address = atomic_load(&buffer->address);
        buffer->staging = true;
        live_add(LIVE_BUFFER, -1); // it is a part of the other
    }
    lock_enter(&views_guard);
    LIST_ADD(device->views, view);
    view->sibling = views->first;
    views->first = view;
    lock_leave(&views_guard);
    return status;
}

static void view_free(view_t *view)
{
    keel_buffer_release(view->buffer); // its memory is unlocked now, or later
    mem_free(view);
}

bool views_end(keel_buffer_t *root, void (*destroy)(keel_buffer_t *root))
{
    struct views_t *views = atomic_load(&root->views);
    if (!views) return true;
    bool ours = object_is_ours(&root->object); // in the child of a fork no lock is taken
    views->destroy = destroy;
    if (ours) lock_enter(&views_guard);
    view_t *list = views->first;
    views->first = NULL;
    for (view_t *view = list; view && ours; view = view->sibling)
        LIST_REMOVE(view->device->views, view);
    if (ours) lock_leave(&views_guard);
    while (list) {
        view_t *view = list;
        list = view->sibling;
        view_free(view);
    }
    if (!views_unpin(views)) return false;
    mem_free(views);
    return true;
}

static void view_detach(view_t *view)
{
    view_t **link = &view->views->first;
    while (*link != view) link = &(*link)->sibling;
    *link = view->sibling;
    LIST_REMOVE(view->device->views, view);
}

void views_close(keel_device_t *device)
{
    pthread_once(&views_once, views_init); // before a lock that a fork may find taken
    for (;;) {
        lock_enter(&views_guard);
        view_t *view = device->views;
        if (view) view_detach(view);
        lock_leave(&views_guard);
        if (!view) return;
        view_free(view);
    }
}
