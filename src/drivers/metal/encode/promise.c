// SPDX-License-Identifier: Apache-2.0
// Promises that runs make: that the point of their submission will be reached, for those that go
// ahead of it (ahead.c).
#include "drivers/metal/queue/promise.h"
#include "base/status.h"
#include "drivers/metal/encode/encode.h"
#include "drivers/metal/queue/queue.h"

// The device may be gone.
static void promise_destroy(promise_t *base)
{
    metal_promise_t *promise = metal_promise_of(base);
    keel_status_release(promise->failure);
    promise->failure = NULL;
    metal_slots_give_back(promise);
}

static void promise_nothing(promise_t *promise)
{
    (void)promise; // a completed handler comes by itself
}

static bool promise_native(promise_t *base, keel_native_t kind, uint64_t *handle)
{
    const metal_promise_t *promise = metal_promise_of(base);
    *handle = (uintptr_t)&promise->native;
    return kind == KEEL_NATIVE_METAL_EVENT && promise->signals;
}

// To other devices of Metal's.
static bool promise_reaches(const promise_t *base, const keel_device_t *device)
{
    const metal_promise_t *promise = metal_promise_of(base);
    return promise->signals && device->ops->queue_create == metal_queue_create &&
           metal_device(device)->api == promise->slots->api;
}

static const promise_ops_t promise_ops = {.destroy = promise_destroy,
                                          .poll = promise_nothing,
                                          .ask = promise_nothing,
                                          .native = promise_native,
                                          .reaches = promise_reaches};

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

static metal_promise_t *promise_take(metal_device_t *device, bool signals)
{
    const metal_api_t *api = device->api;
    metal_promise_t *promise = metal_slots_take(device);
    if (!promise) return NULL;
    if (!promise->fence) promise->fence = mtl_new_fence(api, device->device);
    if (!promise->event && signals) promise->event = mtl_new_shared_event(api, device->device);
    if (!promise->fence) {
        metal_slots_give_back(promise);
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
    bool signals = false;
    if (!metal_demand_take(device, &signals)) return;
    metal_promise_t *promise = promise_take(device, signals);
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
    const metal_promise_t *promise = metal_promise_of(run->base.promise);
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
    metal_promise_t *promise = metal_promise_of(base);
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
