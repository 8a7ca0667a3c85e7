// SPDX-License-Identifier: Apache-2.0
// Runs in flight. A run writes up to AMDGPU_SEGMENT packets into the ring, the last of them a
// barrier whose signal tells when all have ended. Only so many runs write at a time as there is
// room for, so there is always room in the ring.
#include "base/status.h"
#include "drivers/amdgpu/host/queue/queue.h"

keel_status_t amdgpu_signal_need(amdgpu_run_t *run)
{
    amdgpu_device_t *device = amdgpu_run_device(run);
    if (run->signal.handle) return NULL;
    lock_enter(&device->lock);
    if (device->signal_count) run->signal = device->signals[--device->signal_count];
    lock_leave(&device->lock);
    if (run->signal.handle) return NULL;
    return HSA_CALL(device->hsa, hsa_signal_create, 1, 0, NULL, &run->signal);
}

static void signal_give_back(amdgpu_run_t *run)
{
    amdgpu_device_t *device = amdgpu_run_device(run);
    if (!run->signal.handle) return;
    lock_enter(&device->lock);
    bool kept = device->signal_count < AMDGPU_SIGNALS;
    if (kept) device->signals[device->signal_count++] = run->signal;
    lock_leave(&device->lock);
    if (!kept) device->hsa->hsa_signal_destroy(run->signal);
    run->signal.handle = 0;
}

void amdgpu_signals_destroy(amdgpu_device_t *device)
{
    while (device->signal_count)
        device->hsa->hsa_signal_destroy(device->signals[--device->signal_count]);
}

void amdgpu_late_keep(amdgpu_device_t *device, block_t *list)
{
    while (list) {
        block_t *block = list;
        list = block->next;
        lock_enter(&device->lock);
        block->next = device->late;
        device->late = block;
        lock_leave(&device->lock);
    }
}

void amdgpu_flight_finish(run_t *base)
{
    amdgpu_run_t *run = (amdgpu_run_t *)(void *)base;
    amdgpu_device_t *device = amdgpu_run_device(run);
    signal_give_back(run);
    if (run->staging && blocks_return(&device->blocks, run->staging, true))
        blocks_trim(&device->blocks);
    run->staging = NULL;
    run->peek = NULL;
}

// On a thread of HSA's. The device stays until its last handler has counted down.
static bool segment_ended(hsa_signal_value_t value, void *data)
{
    amdgpu_run_t *run = data;
    amdgpu_device_t *device = amdgpu_run_device(run);
    (void)value;
    run_handed_back(&run->base);
    atomic_fetch_sub(&device->runs.handlers, 1);
    return false; // it is not to be called again
}

static void flight_list(amdgpu_run_t *run)
{
    amdgpu_device_t *device = amdgpu_run_device(run);
    lock_enter(&device->lock);
    run->flight.next = device->flights;
    run->flight.link = &device->flights;
    if (run->flight.next) run->flight.next->flight.link = &run->flight.next;
    device->flights = run;
    lock_leave(&device->lock);
}

static void flight_unlist(amdgpu_run_t *run)
{
    amdgpu_device_t *device = amdgpu_run_device(run);
    lock_enter(&device->lock);
    *run->flight.link = run->flight.next;
    if (run->flight.next) run->flight.next->flight.link = run->flight.link;
    lock_leave(&device->lock);
}

// Has HSA call the handler. If it cannot, the device's thread looks.
static void signal_watch(amdgpu_run_t *run)
{
    amdgpu_device_t *device = amdgpu_run_device(run);
    if (device->hsa->hsa_amd_signal_async_handler(run->signal, HSA_SIGNAL_CONDITION_LT, 1,
                                                  segment_ended, run) == HSA_STATUS_SUCCESS)
        return;
    lock_enter(&device->lock);
    run->unwatched = true;
    atomic_fetch_add(&device->unwatched, 1);
    lock_leave(&device->lock);
    helper_wake(&device->runs.worker);
}

// One that HSA does not watch and that has ended; NULL: there is none.
static amdgpu_run_t *flight_ended(amdgpu_device_t *device)
{
    amdgpu_run_t *run;
    lock_enter(&device->lock);
    for (run = device->flights; run; run = run->flight.next)
        if (run->unwatched && device->hsa->hsa_signal_load_scacquire(run->signal) < 1) break;
    if (run) {
        run->unwatched = false;
        atomic_fetch_sub(&device->unwatched, 1);
    }
    lock_leave(&device->lock);
    return run;
}

bool amdgpu_flights_look(amdgpu_device_t *device)
{
    amdgpu_run_t *run;
    while (atomic_load(&device->unwatched) && (run = flight_ended(device))) segment_ended(0, run);
    return atomic_load(&device->unwatched);
}

void amdgpu_flights_end(amdgpu_device_t *device)
{
    lock_enter(&device->lock);
    for (const amdgpu_run_t *run = device->flights; run; run = run->flight.next)
        device->hsa->hsa_signal_store_screlease(run->signal, 0);
    lock_leave(&device->lock);
}

uint64_t amdgpu_flight_first(amdgpu_device_t *device, const keel_queue_t *queue)
{
    uint64_t first = 0;
    lock_enter(&device->lock);
    for (const amdgpu_run_t *run = device->flights; run; run = run->flight.next)
        if (run->base.submission.queue == queue && (!first || run->base.submission.id < first))
            first = run->base.submission.id;
    lock_leave(&device->lock);
    return first;
}

void amdgpu_flight_commit(run_t *base)
{
    amdgpu_run_t *run = (amdgpu_run_t *)(void *)base;
    amdgpu_device_t *device = amdgpu_run_device(run);
    hsa_queue_t *queue = amdgpu_queue(run->base.submission.queue)->queue;
    const hsa_barrier_and_packet_t packet = {.completion_signal = run->signal};
    // It reads nothing. What it releases is all that the packets before it have written, which the
    // host and other GPUs may see when the signal tells.
    const uint32_t header =
        HSA_PACKET_TYPE_BARRIER_AND | 1u << HSA_PACKET_HEADER_BARRIER | AMDGPU_RELEASE_SYSTEM;
    if (!run->packets || run->flying) return;
    run->flying = true;
    run_begin(&run->base);
    atomic_fetch_add(&device->runs.handlers, 1);
    device->hsa->hsa_signal_store_screlease(run->signal, 1);
    flight_list(run);
    signal_watch(run);
    uint64_t number = amdgpu_packet_write(device->hsa, queue, &packet, header);
    device->hsa->hsa_signal_store_screlease(queue->doorbell_signal, (hsa_signal_value_t)number);
    // seq_cst, as are the lock and who sets it: either this sees that the device has failed, or who
    // ends what is listed finds the run.
    if (atomic_load(&device->failed)) device->hsa->hsa_signal_store_screlease(run->signal, 0);
}

static void blocks_leave(amdgpu_run_t *run, bool late)
{
    amdgpu_device_t *device = amdgpu_run_device(run);
    if (late)
        amdgpu_late_keep(device, run->blocks);
    else if (run->blocks && blocks_return(&device->blocks, run->blocks, true))
        blocks_trim(&device->blocks);
    run->blocks = NULL;
}

void amdgpu_flight_settle(run_t *base)
{
    amdgpu_run_t *run = (amdgpu_run_t *)(void *)base;
    amdgpu_device_t *device = amdgpu_run_device(run);
    if (!run->flying) return;
    flight_unlist(run);
    run->flying = false;
    run->packets = 0;
    run->behind = false;
    run->base.before = run->base.now = run->base.barrier = false;
    blocks_leave(run, !amdgpu_stamps_record(run));
    keel_status_t failed = amdgpu_lost_cause(device);
    if (failed) run_fail(&run->base, failed);
}
