// SPDX-License-Identifier: Apache-2.0
// The end of a device: one of its queues has failed. HSA then stops that queue, and packets of it
// never end. So all queues are stopped, and the signals of what is in them are set by the host:
// their handlers are called, and the runs end with the failure.
#include <sched.h>

#include "base/status.h"
#include "drivers/amdgpu/host/scheduler.h"
#include "kit/submission.h"

void amdgpu_device_fail(amdgpu_device_t *device, keel_status_t cause)
{
    keel_status_t none = NULL, lost = status_as(cause, KEEL_DEVICE_LOST);
    if (atomic_compare_exchange_strong(&device->failed, &none, lost))
        helper_wake(&device->runs.worker);
    else
        keel_status_release(lost);
}

// On a thread of HSA's, which also calls the handlers.
void amdgpu_queue_failed(hsa_status_t status, hsa_queue_t *queue, void *device)
{
    amdgpu_device_t *d = device;
    (void)queue;
    amdgpu_device_fail(d, hsa_status_make(d->hsa, status, "a queue of the GPU"));
}

static bool callback_comes(hsa_signal_value_t value, void *came)
{
    (void)value;
    // release: pairs with callbacks_pass, whose memory this is.
    atomic_store_explicit((_Atomic bool *)came, true, memory_order_release);
    return false; // it is not to be called again
}

// Until the thread of HSA's that calls back has left what it was in. If there is no memory for
// that, it is taken to have.
static void callbacks_pass(const hsa_symbols_t *hsa)
{
    _Atomic bool came = false;
    hsa_signal_t now;
    if (hsa->hsa_signal_create(0, 0, NULL, &now) != HSA_STATUS_SUCCESS) return;
    bool comes = hsa->hsa_amd_signal_async_handler(now, HSA_SIGNAL_CONDITION_LT, 1, callback_comes,
                                                   &came) == HSA_STATUS_SUCCESS;
    while (comes && !atomic_load_explicit(&came, memory_order_acquire)) sched_yield();
    hsa->hsa_signal_destroy(now);
}

void amdgpu_ring_destroy(amdgpu_device_t *device, hsa_queue_t *queue)
{
    // HSA's last word on a queue that has failed goes into a signal, behind amdgpu_queue_failed.
    // hsa_queue_destroy writes there, too, and waits for an answer. If it covers that word, it
    // never returns.
    if (atomic_load(&device->failed)) callbacks_pass(device->hsa);
    device->hsa->hsa_queue_destroy(queue);
}

keel_status_t amdgpu_lost_cause(amdgpu_device_t *device)
{
    keel_status_t ended = atomic_load(&device->base.ended), failed = atomic_load(&device->failed);
    return failed ? keel_status_retain(ended ? ended : failed) : NULL;
}

// The oldest submission of the queue whose packets are in its ring; 0: none are.
static uint64_t flight_first(amdgpu_device_t *device, const keel_queue_t *queue)
{
    uint64_t first = 0;
    lock_enter(&device->lock);
    for (const amdgpu_run_t *run = device->flights; run; run = run->flight.next)
        if (run->base.submission.queue == queue && (!first || run->base.submission.id < first))
            first = run->base.submission.id;
    lock_leave(&device->lock);
    return first;
}

// Which queue went wrong HSA may not tell: so this tells where each of them was.
static keel_status_t lost_explain(amdgpu_device_t *device, keel_status_t cause)
{
    submission_names_t there = {.words = "first submissions not known complete: "};
    submission_names_t waiting = {.words = "waiting: "};
    keel_queue_t *queue = NULL;
    while ((queue = device_next_queue(&device->base, queue))) {
        uint64_t id = flight_first(device, queue);
        submission_names_t *names = id ? &there : &waiting;
        if (!id) id = submission_first(queue);
        if (id) submission_names_add(names, queue, id);
    }
    return keel_status_wrap(cause, "device '%s' is lost%s%s", device->base.name, there.text,
                            waiting.text);
}

static void queues_stop(amdgpu_device_t *device)
{
    keel_queue_t *queue = NULL;
    while ((queue = device_next_queue(&device->base, queue)))
        device->hsa->hsa_queue_inactivate(amdgpu_queue(queue)->queue);
    amdgpu_scheduler_t *s = device->scheduler;
    for (uint32_t i = 0; s && i < s->control_count; i++) amdgpu_control_inactivate(&s->controls[i]);
    amdgpu_side_inactivate(device);
}

static void flights_end(amdgpu_device_t *device)
{
    lock_enter(&device->lock);
    for (const amdgpu_run_t *run = device->flights; run; run = run->flight.next)
        device->hsa->hsa_signal_store_screlease(run->signal, 0);
    lock_leave(&device->lock);
}

// The device's thread is in here, and no other goes on with runs.
static void device_settle(keel_device_t *base)
{
    amdgpu_device_t *device = amdgpu_device(base);
    queues_stop(device);
    amdgpu_scheduler_lost(device);
    do {
        flights_end(device); // also of those that were written since
        amdgpu_worker(device);
        sched_yield(); // until HSA has called the handlers
    } while (atomic_load(&device->runs.handlers));
    amdgpu_worker(device);
}

void amdgpu_lose(amdgpu_device_t *device)
{
    keel_status_t failed = atomic_load(&device->failed);
    if (!failed || device->losing) return;
    device->losing = true;
    keel_device_lose(&device->base, lost_explain(device, keel_status_retain(failed)),
                     device_settle);
}
