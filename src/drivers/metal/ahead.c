// SPDX-License-Identifier: Apache-2.0
// Submissions that go ahead: their command buffers are committed before what they wait for has
// ended, so that no thread of the host is between the two.
//
//     P, on one queue      work | done: slot := n | signal the slot's event to n
//     C, on another        wait for the event | guard: is the slot n? | work
//
// A command buffer that was committed cannot be taken back, and the event is raised also when P has
// died: by the host then, so that nothing waits for ever. So P proves on the GPU that it came to
// its end, by a number in a slot that it writes last. C looks at the slot before anything else: if
// the number is another, its guard makes the grids of all its dispatches empty, the last of which
// would write C's own slot. Blits have no grid, so a guarded submission uses kernels in their
// place. guard.c has that.
//
// C may be on another GPU: an event reaches that, and the pages of the slots become a buffer of its
// own there, a view. Views keep what P's device had of Metal's, which may close before C ends.
//
// On one queue a fence takes the place of the event. The host still hears of each end by a
// completed handler, and fails C with P's cause. A slot is used again when P, and all that went
// ahead of it, have ended: they keep its promise.
//
// All this costs a few messages, so a submission makes a promise only while the device has lately
// seen others that came to wait for work in flight.
#include "drivers/metal/ahead.h"
#include "base/memory.h"
#include "base/status.h"
#include "kit/submission.h"

enum { LATELY = 64 }; // submissions after one that had to wait

// Waits between devices: which device is to make promises for them is not known beforehand.
static struct {
    _Atomic uint32_t devices; // that are open
    _Atomic uint32_t lately;  // as metal_promises_t.lately
} between;

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

// How the device sees slots, for a run. NULL: it does not.
static metal_view_t *view_take(metal_device_t *device, metal_slots_t *slots)
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

static void view_give_back(metal_device_t *device, metal_view_t *view)
{
    if (!view) return;
    lock_enter(&device->promises.lock);
    view->runs--;
    lock_leave(&device->promises.lock);
}

static metal_promise_t *promise_of(const promise_t *promise)
{
    return (metal_promise_t *)(uintptr_t)promise;
}

static void promise_put(metal_promise_t *promise)
{
    metal_slots_t *slots = promise->slots;
    lock_enter(&slots->lock);
    promise->next = slots->spare;
    slots->spare = promise;
    lock_leave(&slots->lock);
    slots_release(slots);
}

// The device may be gone.
static void promise_destroy(promise_t *base)
{
    metal_promise_t *promise = promise_of(base);
    keel_status_release(promise->failure);
    promise->failure = NULL;
    promise_put(promise);
}

static void promise_nothing(promise_t *promise)
{
    (void)promise; // a completed handler comes by itself
}

static bool promise_native(promise_t *base, keel_native_t kind, uint64_t *handle)
{
    const metal_promise_t *promise = promise_of(base);
    *handle = (uintptr_t)&promise->native;
    return kind == KEEL_NATIVE_METAL_EVENT && promise->signals;
}

// To other devices of Metal's.
static bool promise_reaches(const promise_t *base, const keel_device_t *device)
{
    const metal_promise_t *promise = promise_of(base);
    return promise->signals && device->ops->queue_submit == metal_queue_submit &&
           metal_device(device)->api == promise->slots->api;
}

static const promise_ops_t promise_ops = {.destroy = promise_destroy,
                                          .poll = promise_nothing,
                                          .ask = promise_nothing,
                                          .native = promise_native,
                                          .reaches = promise_reaches};

// relaxed, here and in is_lately: nothing but cost hangs on these.
static void lately_set(metal_device_t *device, uint32_t lately, bool crossing)
{
    atomic_store_explicit(&device->promises.lately, lately, memory_order_relaxed);
    if (crossing) atomic_store_explicit(&device->promises.crossing, LATELY, memory_order_relaxed);
}

// A wait for another device, which may be gone.
static void between_note(void)
{
    if (atomic_load_explicit(&between.devices, memory_order_relaxed) < 2) return;
    bool again = atomic_load_explicit(&between.lately, memory_order_relaxed);
    atomic_store_explicit(&between.lately, again ? 1 + LATELY : 1, memory_order_relaxed);
}

void metal_ahead_note(keel_submission_t *submission)
{
    metal_device_t *device = metal_device(submission->queue->device);
    for (uint32_t i = 0; i < submission->wait_count; i++) {
        const keel_point_t *point = &submission->waits[i].point;
        if (point_is_past(point) || metal_event_is(point->semaphore)) continue;
        // The first one tells little.
        bool again = atomic_load_explicit(&device->promises.lately, memory_order_relaxed);
        bool other = point->semaphore != submission->queue->timeline;
        lately_set(device, again ? 1 + LATELY : 1, again && other);
        if (other) between_note();
    }
}

// Under the lock.
static void promises_make(metal_device_t *device)
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

void metal_promises_open(void)
{
    atomic_fetch_add_explicit(&between.devices, 1, memory_order_relaxed);
}

void metal_promises_close(metal_device_t *device)
{
    metal_promises_t *promises = &device->promises;
    atomic_fetch_sub_explicit(&between.devices, 1, memory_order_relaxed);
    for (metal_view_t *view; (view = promises->views) != NULL;) {
        promises->views = view->next;
        view_destroy(view);
    }
    if (promises->slots) slots_leave(promises->slots, true);
}

void metal_promises_free(metal_device_t *device)
{
    slots_release(device->promises.slots);
}

// Whether to make a promise at all, or to signal an event, counted down.
static bool is_lately(_Atomic uint32_t *left, uint32_t above)
{
    uint32_t count = atomic_load_explicit(left, memory_order_relaxed);
    if (count <= above) return false;
    atomic_store_explicit(left, count - 1, memory_order_relaxed);
    return true;
}

// Behind all that the run has done: writes the number of the promise.
static keel_status_t done_encode(metal_run_t *run, const metal_promise_t *promise)
{
    metal_device_t *device = metal_run_device(run);
    const metal_api_t *api = device->api;
    const uint32_t number = (uint32_t)promise->number;
    run->base.barrier = true;
    KEEL_TRY(metal_encoder_need(run, METAL_COMPUTE));
    metal_pipeline_set(run, device->builtins[METAL_DONE]);
    mtl_set_buffer(api, run->encoder, promise->slots->words, promise->slot * sizeof(uint32_t), 0);
    mtl_set_bytes(api, run->encoder, &number, sizeof number, 1);
    metal_launch(run, (metal_size_t){1, 1, 1}, (metal_size_t){1, 1, 1});
    mtl_update_fence(api, run->encoder, promise->fence);
    return NULL;
}

// One to spare; NULL: there is none.
static metal_promise_t *promise_get(metal_device_t *device)
{
    lock_enter(&device->promises.lock);
    if (!device->promises.slots) promises_make(device);
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

static metal_promise_t *promise_take(metal_device_t *device, bool signals)
{
    const metal_api_t *api = device->api;
    metal_promise_t *promise = promise_get(device);
    if (!promise) return NULL;
    if (!promise->fence) promise->fence = mtl_new_fence(api, device->device);
    if (!promise->event && signals) promise->event = mtl_new_shared_event(api, device->device);
    if (!promise->fence) {
        promise_put(promise);
        return NULL;
    }
    promise->base =
        (promise_t){.refs = 1, .device = &device->base, .ops = &promise_ops, .may_fail = true};
    promise->number++;
    promise->signals = signals && promise->event;
    promise->native = (keel_metal_event_t){promise->event, promise->number};
    promise->over = false;
    promise->first = NULL;
    return promise;
}

void metal_promise_begin(metal_run_t *run)
{
    metal_device_t *device = metal_run_device(run);
    // relaxed: work that was submitted before the program has asked may be without.
    bool native = atomic_load_explicit(&device->promises.native, memory_order_relaxed);
    bool lately = is_lately(&device->promises.lately, 1);
    bool others = is_lately(&between.lately, 1);
    if (!lately && !others && !native) return;
    bool crosses = is_lately(&device->promises.crossing, 0);
    metal_promise_t *promise = promise_take(device, crosses || others || native);
    if (!promise) return;
    promise->queue = metal_queue(run->base.submission.queue);
    keel_status_t status = done_encode(run, promise);
    if (!status) {
        run->base.promise = &promise->base;
        return;
    }
    keel_status_release(status); // it promises nothing then
    promise_release(&promise->base);
}

void metal_promise_signal(metal_run_t *run)
{
    const metal_promise_t *promise = promise_of(run->base.promise);
    if (promise->signals)
        mtl_encode_signal(promise->device->api, run->command, promise->event, promise->number);
}

// Nothing is to wait for ever for what has died before it could signal.
static void event_raise(const metal_api_t *api, const metal_promise_t *promise)
{
    id event = promise->event;
    void *pool = metal_enter(api);
    if (mtl_signaled_value(api, event) < promise->number)
        mtl_set_signaled_value(api, event, promise->number);
    metal_leave(api, pool);
}

// Has a run know that a promise is over. Its device may be another, and stays meanwhile.
static void ahead_end(metal_ahead_t *ahead)
{
    runs_t *runs = ahead->run->base.runs;
    atomic_fetch_add(&runs->handlers, 1);
    run_ahead_done(&ahead->run->base);
    atomic_fetch_sub(&runs->handlers, 1);
}

void metal_promise_kept(promise_t *base, keel_status_t failure)
{
    metal_promise_t *promise = promise_of(base);
    metal_device_t *device = promise->device;
    lock_enter(&promise->slots->lock);
    promise->over = true;
    promise->failure = keel_status_retain(failure);
    metal_ahead_t *first = promise->first;
    lock_leave(&promise->slots->lock);
    if (failure && promise->signals) event_raise(device->api, promise);
    for (metal_ahead_t *next; first; first = next) {
        next = first->next; // its run may go with this
        ahead_end(first);
    }
    promise_release(base);
}

static bool is_own(const metal_run_t *run, const metal_promise_t *promise)
{
    return promise->queue == metal_queue(run->base.submission.queue);
}

// One promise that the run went ahead of. False: it is over, with its failure or without.
static bool ahead_begin(metal_run_t *run, metal_ahead_t *ahead, metal_promise_t *promise)
{
    metal_device_t *device = metal_run_device(run);
    metal_slots_t *slots = promise->slots;
    bool foreign = slots != device->promises.slots;
    metal_view_t *view = foreign ? view_take(device, slots) : NULL;
    lock_enter(&slots->lock);
    bool over = promise->over;
    if (!over) {
        id words = foreign ? (view ? view->words : NULL) : slots->words;
        *ahead = (metal_ahead_t){promise, run, promise->first, view, words};
        promise->first = ahead;
        run_ahead_begin(&run->base);
        lately_set(promise->device, 1 + LATELY, !is_own(run, promise)); // it is there still
    }
    lock_leave(&slots->lock);
    if (!over && foreign) between_note();
    if (over) view_give_back(device, view);
    if (over && promise->failure) run_fail(&run->base, keel_status_retain(promise->failure));
    return !over;
}

void metal_ahead_begin(run_t *base)
{
    metal_run_t *run = (metal_run_t *)(void *)base;
    const keel_submission_t *submission = &base->submission;
    uint32_t count = 0;
    run->aheads = NULL;
    run->ahead_count = 0;
    run->guarded = run->stuck = false;
    run->replayed = NULL; // of another submission
    for (uint32_t i = 0; i < submission->wait_count; i++)
        count += submission->waits[i].waiter.promise != NULL;
    if (!count) return;
    run->aheads = count <= METAL_AHEAD ? run->few : mem_alloc(count * sizeof *run->aheads);
    if (!run->aheads) run_fail(base, status_no_memory());
    for (uint32_t i = 0; run->aheads && i < submission->wait_count; i++) {
        promise_t *promise = submission->waits[i].waiter.promise;
        metal_ahead_t *ahead = &run->aheads[run->ahead_count];
        if (promise && ahead_begin(run, ahead, promise_of(promise))) run->ahead_count++;
    }
}

void metal_ahead_settle(metal_run_t *run)
{
    run->guarded = run->base.leads;
    run->stuck = false;
    run->table.left = 0;
    run->table.buffer = NULL;
    run->table.gone = NULL;
    for (uint32_t i = 0; i < run->ahead_count; i++) {
        const metal_promise_t *promise = run->aheads[i].promise;
        if (run->guarded)
            run->stuck |= !run->aheads[i].words || (!promise->signals && !is_own(run, promise));
        else if (promise->failure)
            run_fail(&run->base, keel_status_retain(promise->failure));
    }
}

void metal_ahead_finish(metal_run_t *run)
{
    for (uint32_t i = 0; i < run->ahead_count; i++)
        view_give_back(metal_run_device(run), run->aheads[i].view);
    if (run->aheads != run->few) mem_free(run->aheads);
}

void metal_ahead_events(metal_run_t *run)
{
    for (uint32_t i = 0; run->guarded && i < run->ahead_count; i++) {
        const metal_promise_t *promise = run->aheads[i].promise;
        if (promise->signals && !is_own(run, promise))
            mtl_encode_wait(promise->slots->api, run->command, promise->event, promise->number);
    }
}

void metal_ahead_fences(metal_run_t *run)
{
    for (uint32_t i = 0; run->guarded && i < run->ahead_count; i++) {
        const metal_promise_t *promise = run->aheads[i].promise;
        if (is_own(run, promise))
            mtl_wait_for_fence(promise->slots->api, run->encoder, promise->fence);
    }
}
