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
// place.
//
// On one queue a fence takes the place of the event. The host still hears of each end by a
// completed handler, and fails C with P's cause. A slot is used again when P, and all that went
// ahead of it, have ended: they keep its promise.
//
// All this costs a few messages, so a submission makes a promise only while the device has lately
// seen others that came to wait for work in flight.
#include "base/memory.h"
#include "base/status.h"
#include "drivers/metal/metal.h"
#include "kit/submission.h"

enum {
    SLOTS = 1024, // promises of a device at a time; a submission that finds none makes none
    COUNTS = METAL_TABLE / 12, // of a table
    CHECKED = 8,               // slots that one guard looks at
    GUARDS = 32,               // threads of a guard
    LATELY = 64,               // submissions after one that had to wait
    NEEDED = 2,                // counts that a command may take between two of metal_guard_need
};

typedef struct metal_slots_t metal_slots_t;

// A promise, and what it has on the GPU. It is used again when the last reference to it is gone.
typedef struct metal_promise_t {
    promise_t base;
    struct metal_promise_t *next; // of those to spare
    metal_slots_t *slots;
    metal_device_t *device;     // may be gone when the promise is over
    const metal_queue_t *queue; // to compare
    id event;                   // retained; NULL: not needed yet, as the next
    id fence;                   // retained
    uint64_t number;            // of its uses: what the event comes to. An event only grows, so
                                // this must not start again at 0
    uint32_t slot;              // where the GPU writes the number's low half
    bool signals;               // the event, by the GPU
    keel_metal_event_t native;  // the same, for the program
    // Guarded by the device's lock for promises.
    bool over;
    keel_status_t failure; // owned
    metal_ahead_t *first;  // those that are to be told
} metal_promise_t;

// All promises of a device. Threads that ask after a point may have one for a moment longer than
// there is the device: the last one frees them.
struct metal_slots_t {
    _Atomic uint32_t refs; // the device's, and those of promises in use
    lock_t lock;
    metal_promise_t *spare; // guarded by the lock
    metal_promise_t all[SLOTS];
};

static void slots_release(metal_slots_t *slots)
{
    // acq_rel: all uses by others come before the end.
    if (slots && atomic_fetch_sub_explicit(&slots->refs, 1, memory_order_acq_rel) == 1)
        mem_free(slots);
}

static metal_promise_t *promise_of(promise_t *promise)
{
    return (metal_promise_t *)(void *)promise;
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

static const promise_ops_t promise_ops = {promise_destroy, promise_nothing, promise_nothing, 0,
                                          promise_native};

// relaxed, here and in is_lately: nothing but cost hangs on these.
static void lately_set(metal_device_t *device, uint32_t lately, bool crossing)
{
    atomic_store_explicit(&device->promises.lately, lately, memory_order_relaxed);
    if (crossing) atomic_store_explicit(&device->promises.crossing, LATELY, memory_order_relaxed);
}

void metal_ahead_note(keel_submission_t *submission)
{
    metal_device_t *device = metal_device(submission->queue->device);
    for (uint32_t i = 0; i < submission->wait_count; i++) {
        const keel_point_t *point = &submission->waits[i].point;
        if (point_is_past(point)) continue;
        // The first one tells little.
        bool again = atomic_load_explicit(&device->promises.lately, memory_order_relaxed);
        bool other = point->semaphore != submission->queue->timeline;
        lately_set(device, again ? 1 + LATELY : 1, again && other);
    }
}

// Under the lock.
static void promises_make(metal_device_t *device)
{
    metal_promises_t *promises = &device->promises;
    const unsigned long size = SLOTS * sizeof(uint32_t);
    metal_slots_t *slots = promises->slots = mem_zalloc(sizeof *slots);
    if (!slots) return;
    atomic_init(&slots->refs, 1);
    promises->words =
        mtl_new_buffer(device->api, device->device, size, METAL_SHARED | METAL_UNTRACKED);
    for (uint32_t i = 0; promises->words && i < SLOTS; i++) {
        metal_promise_t *promise = &slots->all[i];
        promise->slots = slots;
        promise->device = device;
        promise->slot = i;
        promise->next = slots->spare;
        slots->spare = promise;
    }
}

void metal_promises_close(metal_device_t *device)
{
    metal_promises_t *promises = &device->promises;
    for (uint32_t i = 0; promises->slots && i < SLOTS; i++) {
        mtl_release(device->api, promises->slots->all[i].event);
        mtl_release(device->api, promises->slots->all[i].fence);
    }
    mtl_release(device->api, promises->words);
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
    mtl_set_buffer(api, run->encoder, device->promises.words, promise->slot * sizeof(uint32_t), 0);
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
    if (!run_is_last(&run->base) || run->counted || run->base.visits) return;
    // relaxed: work that was submitted before the program has asked may be without.
    bool native = atomic_load_explicit(&device->promises.native, memory_order_relaxed);
    bool lately = is_lately(&device->promises.lately, 1);
    if (!lately && !native) return;
    bool crosses = is_lately(&device->promises.crossing, 0);
    metal_promise_t *promise = promise_take(device, crosses || native);
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

void metal_promise_kept(promise_t *base, keel_status_t failure)
{
    metal_promise_t *promise = promise_of(base);
    metal_device_t *device = promise->device;
    lock_enter(&device->promises.lock);
    promise->over = true;
    promise->failure = keel_status_retain(failure);
    metal_ahead_t *first = promise->first;
    lock_leave(&device->promises.lock);
    if (failure && promise->signals) event_raise(device->api, promise);
    for (metal_ahead_t *next; first; first = next) {
        next = first->next; // its run may go with this
        run_ahead_done(&first->run->base);
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
    lock_enter(&promise->device->promises.lock);
    bool over = promise->over;
    if (!over) {
        *ahead = (metal_ahead_t){.promise = promise, .run = run, .next = promise->first};
        promise->first = ahead;
        run_ahead_begin(&run->base);
    }
    lock_leave(&promise->device->promises.lock);
    if (!over) lately_set(promise->device, 1 + LATELY, !is_own(run, promise));
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
    for (uint32_t i = 0; i < run->ahead_count; i++) {
        const metal_promise_t *promise = run->aheads[i].promise;
        if (run->guarded)
            run->stuck |= !promise->signals && !is_own(run, promise);
        else if (promise->failure)
            run_fail(&run->base, keel_status_retain(promise->failure));
    }
}

void metal_ahead_finish(metal_run_t *run)
{
    if (run->aheads != run->few) mem_free(run->aheads);
}

void metal_ahead_events(metal_run_t *run)
{
    for (uint32_t i = 0; run->guarded && i < run->ahead_count; i++) {
        const metal_promise_t *promise = run->aheads[i].promise;
        if (promise->signals && !is_own(run, promise))
            mtl_encode_wait(promise->device->api, run->command, promise->event, promise->number);
    }
}

void metal_ahead_fences(metal_run_t *run)
{
    for (uint32_t i = 0; run->guarded && i < run->ahead_count; i++) {
        const metal_promise_t *promise = run->aheads[i].promise;
        if (is_own(run, promise))
            mtl_wait_for_fence(promise->device->api, run->encoder, promise->fence);
    }
}

// What keel_guard takes at index 1.
typedef struct guard_t {
    uint32_t words, count;
    uint32_t index[CHECKED], number[CHECKED];
} guard_t;

// Has the counts of a table vanish if one of `count` promises from `first` on did not come true.
static void guard_encode(metal_run_t *run, uint32_t first, uint32_t count)
{
    metal_device_t *device = metal_run_device(run);
    guard_t guard = {.words = 3 * COUNTS, .count = count};
    for (uint32_t i = 0; i < count; i++) {
        guard.index[i] = run->aheads[first + i].promise->slot;
        guard.number[i] = (uint32_t)run->aheads[first + i].promise->number;
    }
    mtl_set_bytes(device->api, run->encoder, &guard, sizeof guard, 1);
    mtl_dispatch(device->api, run->encoder, (metal_size_t){1, 1, 1}, (metal_size_t){GUARDS, 1, 1});
}

// The first one is the run's own; more of them are staged.
static keel_status_t table_next(metal_run_t *run)
{
    const metal_api_t *api = metal_run_device(run)->api;
    struct metal_memory_t *memory;
    bool first = !run->table.buffer;
    if (first) {
        KEEL_TRY(metal_words_take(run));
        memory = run->words;
    } else {
        KEEL_TRY(metal_stage(run, METAL_TABLE, &memory));
    }
    run->table.buffer = metal_memory_buffer(memory);
    run->table.offset = first ? METAL_WORDS : 0;
    char *contents = mtl_contents(api, run->table.buffer);
    run->table.counts = (uint32_t *)(void *)(contents + run->table.offset);
    run->table.left = COUNTS;
    return NULL;
}

keel_status_t metal_guard_need(metal_run_t *run)
{
    metal_device_t *device = metal_run_device(run);
    const metal_api_t *api = device->api;
    if (!run->guarded || run->table.left >= NEEDED) return NULL;
    KEEL_TRY(table_next(run));
    metal_pipeline_set(run, device->builtins[METAL_GUARD]);
    mtl_set_buffer(api, run->encoder, run->table.buffer, run->table.offset, 0);
    mtl_set_buffer(api, run->encoder, device->promises.words, 0, 2);
    run->variables = NULL; // these were there
    for (uint32_t i = 0; i < run->ahead_count; i += CHECKED) {
        uint32_t left = run->ahead_count - i;
        guard_encode(run, i, left < CHECKED ? left : CHECKED);
    }
    mtl_memory_barrier(api, run->encoder, METAL_SCOPE_BUFFERS);
    return NULL;
}

// Three words that the guard may clear. Answers where they are in the table's buffer.
static unsigned long table_put(metal_run_t *run, uint32_t first, uint32_t second, uint32_t third)
{
    uint32_t at = 3 * (COUNTS - run->table.left--);
    run->table.counts[at] = first;
    run->table.counts[at + 1] = second;
    run->table.counts[at + 2] = third;
    return run->table.offset + at * sizeof(uint32_t);
}

void metal_launch(metal_run_t *run, metal_size_t groups, metal_size_t threads)
{
    const metal_api_t *api = metal_run_device(run)->api;
    if (!run->guarded) {
        mtl_dispatch(api, run->encoder, groups, threads);
        return;
    }
    unsigned long at =
        table_put(run, (uint32_t)groups.width, (uint32_t)groups.height, (uint32_t)groups.depth);
    mtl_dispatch_indirect(api, run->encoder, run->table.buffer, at, threads);
}

void metal_launch_commands(metal_run_t *run, id commands, uint32_t begin, uint32_t count)
{
    const metal_api_t *api = metal_run_device(run)->api;
    if (!run->guarded) {
        mtl_execute(api, run->encoder, commands, (metal_range_t){begin, count});
        return;
    }
    unsigned long at = table_put(run, begin, count, 0); // no commands, if that becomes 0
    mtl_execute_counted(api, run->encoder, commands, run->table.buffer, at);
}
