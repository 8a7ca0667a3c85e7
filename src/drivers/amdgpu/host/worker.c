// SPDX-License-Identifier: Apache-2.0
// The device's thread. It goes on with what has ended on the GPU, and ends the device when one of
// its queues has failed: HSA then stops that queue, and packets of it never end. So all queues are
// stopped, and the signals of what is in them are set by the host: their handlers are called, and
// the runs end with the failure.
#include <sched.h>

#include "base/clock.h"
#include "drivers/amdgpu/host/driver.h"
#include "drivers/amdgpu/host/record/record.h"
#include "kit/submission.h"

// Which queue went wrong HSA may not tell: so this tells where each of them was.
static keel_status_t lost_explain(amdgpu_device_t *device, keel_status_t cause)
{
    submission_names_t there = {.words = "first submissions not known complete: "};
    submission_names_t waiting = {.words = "waiting: "};
    keel_queue_t *queue = NULL;
    while ((queue = device_next_queue(&device->base, queue))) {
        uint64_t id = amdgpu_flight_first(device, queue);
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
    amdgpu_clock_inactivate(device);
}

// The device's thread is in here, and no other goes on with runs.
static void device_settle(keel_device_t *base)
{
    amdgpu_device_t *device = amdgpu_device(base);
    queues_stop(device);
    amdgpu_ends_lost(device);
    do {
        amdgpu_flights_end(device); // also of those that were written since
        amdgpu_worker(device);
        sched_yield(); // until HSA has called the handlers
    } while (atomic_load(&device->runs.handlers));
    amdgpu_worker(device);
}

static void lose(amdgpu_device_t *device)
{
    keel_status_t failed = atomic_load(&device->failed);
    if (!failed || device->losing) return;
    device->losing = true;
    keel_device_lose(&device->base, lost_explain(device, keel_status_retain(failed)),
                     device_settle);
}

uint64_t amdgpu_worker(void *device)
{
    if (!atomic_load(&amdgpu_device(device)->whole)) return KEEL_FOREVER; // a queue failed at once
    lose(device);
    runs_work(&amdgpu_device(device)->runs);
    // The GPU does not know who waits for the queue's own points, so the host looks for the ends.
    enum { LOOK_NS = 1000000 };
    bool looks = amdgpu_flights_look(device);
    looks |= amdgpu_ends_work(device);
    return looks ? clock_deadline(LOOK_NS) : KEEL_FOREVER;
}
