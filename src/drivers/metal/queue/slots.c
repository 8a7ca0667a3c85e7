// SPDX-License-Identifier: Apache-2.0
// Slots of promises: where the GPU writes that one came true, with what else a promise has of
// Metal's. A device has its slots once, and views of those of other devices, which keep what these
// have there: it may close before work ends that waits for it.
#include "base/memory.h"
#include "drivers/metal/queue/promise.h"
#include "drivers/metal/queue/queue.h"

static void slots_release(metal_slots_t *slots)
{
    // acq_rel: all uses by others come before the end.
    if (slots && atomic_fetch_sub_explicit(&slots->refs, 1, memory_order_acq_rel) == 1)
        mem_free_aligned(slots);
}

// One more that waits for promises of the device. False: it is about to close.
static bool slots_use(metal_slots_t *slots)
{
    lock_enter(&slots->lock);
    bool open = !slots->closed;
    slots->users += open;
    lock_leave(&slots->lock);
    // relaxed: the caller has a promise, and so a reference.
    if (open) atomic_fetch_add_explicit(&slots->refs, 1, memory_order_relaxed);
    return open;
}

// The last one ends what the promises have of Metal's.
static void slots_leave(metal_slots_t *slots, bool closes)
{
    lock_enter(&slots->lock);
    slots->closed |= closes;
    bool last = --slots->users == 0;
    lock_leave(&slots->lock);
    for (uint32_t i = 0; last && i < METAL_SLOTS; i++) {
        mtl_release(slots->api, slots->all[i].event);
        mtl_release(slots->api, slots->all[i].fence);
    }
    if (last) mtl_release(slots->api, slots->words);
}

static bool slots_are_closed(metal_slots_t *slots)
{
    lock_enter(&slots->lock);
    bool closed = slots->closed;
    lock_leave(&slots->lock);
    return closed;
}

static void view_destroy(metal_view_t *view)
{
    if (view->words) mtl_release(view->slots->api, view->words);
    slots_leave(view->slots, false);
    slots_release(view->slots);
    mem_free(view);
}

static id words_make(metal_device_t *device, metal_slots_t *slots)
{
    return mtl_new_wrapped(device->api, device->device, slots->numbers, sizeof slots->numbers,
                           METAL_SHARED | METAL_UNTRACKED, NULL);
}

// Of another device, whose slots are in use by it. NULL: Metal does not take the pages.
static metal_view_t *view_create(metal_device_t *device, metal_slots_t *slots)
{
    const metal_api_t *api = device->api;
    metal_view_t *view = mem_zalloc(sizeof *view);
    if (!view) return NULL;
    view->slots = slots;
    view->words =
        slots->gpu == device->device ? mtl_retain(api, slots->words) : words_make(device, slots);
    return view;
}

// Under the lock: devices that have closed leave views behind.
static void views_sweep(metal_promises_t *promises)
{
    for (metal_view_t **at = &promises->views; *at;) {
        metal_view_t *view = *at;
        bool gone = !view->runs && slots_are_closed(view->slots);
        if (gone)
            *at = view->next;
        else
            at = &view->next;
        if (gone) view_destroy(view);
    }
}

// Under the lock.
static metal_view_t *view_make(metal_device_t *device, metal_slots_t *slots)
{
    metal_promises_t *promises = &device->promises;
    views_sweep(promises);
    if (!slots_use(slots)) return NULL;
    metal_view_t *view = view_create(device, slots);
    if (!view) {
        slots_leave(slots, false);
        slots_release(slots);
        return NULL;
    }
    view->next = promises->views;
    return promises->views = view;
}

metal_view_t *metal_view_take(metal_device_t *device, metal_slots_t *slots)
{
    metal_promises_t *promises = &device->promises;
    lock_enter(&promises->lock);
    metal_view_t *view = promises->views;
    while (view && view->slots != slots) view = view->next;
    if (!view) view = view_make(device, slots);
    if (view) view->runs++;
    lock_leave(&promises->lock);
    return view;
}

void metal_view_give_back(metal_device_t *device, metal_view_t *view)
{
    if (!view) return;
    lock_enter(&device->promises.lock);
    view->runs--;
    lock_leave(&device->promises.lock);
}

void metal_slots_give_back(metal_promise_t *promise)
{
    metal_slots_t *slots = promise->slots;
    lock_enter(&slots->lock);
    promise->next = slots->spare;
    slots->spare = promise;
    lock_leave(&slots->lock);
    slots_release(slots);
}

// Under the lock.
static void slots_make(metal_device_t *device)
{
    metal_slots_t *slots = device->promises.slots = mem_zalloc_aligned(sizeof *slots, METAL_PAGE);
    if (!slots) return;
    atomic_init(&slots->refs, 1);
    slots->users = 1;
    slots->api = device->api;
    slots->gpu = device->device;
    slots->words = words_make(device, slots);
    for (uint32_t i = 0; slots->words && i < METAL_SLOTS; i++) {
        metal_promise_t *promise = &slots->all[i];
        promise->slots = slots;
        promise->device = device;
        promise->slot = i;
        promise->next = slots->spare;
        slots->spare = promise;
    }
}

metal_promise_t *metal_slots_take(metal_device_t *device)
{
    lock_enter(&device->promises.lock);
    if (!device->promises.slots) slots_make(device);
    metal_slots_t *slots = device->promises.slots;
    lock_leave(&device->promises.lock);
    if (!slots) return NULL;
    lock_enter(&slots->lock);
    metal_promise_t *promise = slots->spare;
    if (promise) slots->spare = promise->next;
    lock_leave(&slots->lock);
    // relaxed: the device has a reference.
    if (promise) atomic_fetch_add_explicit(&slots->refs, 1, memory_order_relaxed);
    return promise;
}

void metal_slots_close(metal_device_t *device)
{
    metal_promises_t *promises = &device->promises;
    for (metal_view_t *view; (view = promises->views) != NULL;) {
        promises->views = view->next;
        view_destroy(view);
    }
    if (promises->slots) slots_leave(promises->slots, true);
}

void metal_slots_free(metal_device_t *device)
{
    slots_release(device->promises.slots);
}
