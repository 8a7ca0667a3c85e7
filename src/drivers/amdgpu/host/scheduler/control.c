// SPDX-License-Identifier: Apache-2.0
// A scheduler of a GPU: its queue and memory, and what the host does when it is told something.
#include <sched.h>
#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "drivers/amdgpu/device/program.h"
#include "drivers/amdgpu/host/scheduler/scheduler.h"

enum {
    CONTROL = 64, // packets of its queue: two ticks, one that tells and one that
                  // amdgpu_control_drain waits for are all there are
    HEAD = 64,    // bytes in front of what is shared: the arguments of a tick
};

static bool is_closing(amdgpu_scheduler_t *s)
{
    lock_enter(&s->lock);
    bool closing = s->closing;
    lock_leave(&s->lock);
    return closing;
}

// The GPU has told. On a thread of HSA's.
static bool told(hsa_signal_value_t value, void *data)
{
    amdgpu_control_t *control = data;
    amdgpu_device_t *device = control->device;
    (void)value;
    if (is_closing(device->scheduler)) {
        atomic_store(&control->listening, false);
        return false;
    }
    device->hsa->hsa_signal_store_screlease(control->signal, 1);
    // acq_rel: pairs with the GPU's. Behind the signal, which it may count down again from here on;
    // and only here, so that one packet of the control queue tells at a time.
    PROTOCOL_SWAP(&control->shared->telling, 0, __ATOMIC_ACQ_REL);
    helper_wake(&device->runs.worker);
    return true; // it is to be called again
}

// A packet of a kernel of the scheduler's: one group, of `items`. What these write for the host or
// for other GPUs is told by atomic operations of their own, at system scope, and lies in memory of
// the host, which the L2 does not keep.
static void packet_make(const amdgpu_control_t *control, const amdgpu_kernel_t *kernel,
                        uint16_t items, uint32_t bits, packet_t *made)
{
    const amdgpu_launch_t launch = {
        .kernel = kernel,
        .groups = {1, 1, 1},
        .group_size = {items, 1, 1},
        .local = kernel->group,
    };
    hsa_kernel_dispatch_packet_t packet;
    amdgpu_packet_make(&launch, control->memory->address, bits | AMDGPU_RELEASE_AGENT, &packet);
    packet.kernel_object = amdgpu_kernel_object(kernel, control->node);
    memcpy(made, &packet, sizeof packet);
}

// The arguments are those of a tick; the others get their own when they are put in.
static void packets_make(const amdgpu_control_t *control)
{
    const amdgpu_scheduler_t *s = control->device->scheduler;
    const uint32_t barrier = 1u << HSA_PACKET_HEADER_BARRIER;
    // Behind the tick that sends it: else one tick could tell again as soon as the host has heard,
    // and go round the ring to its own packet.
    hsa_barrier_and_packet_t tell = {
        .header = (uint16_t)(HSA_PACKET_TYPE_BARRIER_AND | barrier | AMDGPU_RELEASE_SYSTEM),
        .completion_signal = control->signal,
    };
    scheduler_t *shared = control->shared;
    // One at a time. It reads programs that the host has put into the GPU's memory.
    packet_make(control, &s->tick, 1, barrier | AMDGPU_ACQUIRE_SYSTEM, &shared->tick);
    // Behind all of its record. The first packet of that acquires for it (advance_put).
    packet_make(control, &s->advance, 1, barrier | AMDGPU_ACQUIRE_AGENT, &shared->advance);
    // Maybe the first of its record.
    packet_make(control, &s->issue, PROGRAM_WIDE, AMDGPU_ACQUIRE_SYSTEM, &shared->issue);
    packet_make(control, &s->patch, 1, 0, &shared->patch); // acquires as its dispatch does
    memcpy(&shared->tell, &tell, sizeof tell);
}

static keel_status_t shared_make(amdgpu_control_t *control)
{
    amdgpu_device_t *device = control->device;
    KEEL_TRY(blocks_acquire(&device->blocks, sizeof(scheduler_t) + HEAD, &control->memory));
    scheduler_args_t *arguments = (scheduler_args_t *)(void *)control->memory->data;
    control->shared = (scheduler_t *)(void *)(control->memory->data + HEAD);
    memset(control->memory->data, 0, sizeof(scheduler_t) + HEAD);
    arguments->scheduler = control->memory->address + HEAD;
    packets_make(control);
    return amdgpu_ring_describe(control->queue, CONTROL, &control->shared->control);
}

// Host and GPU change the same words of the host's memory by atomic operations. Over PCI Express
// these come through only where everything on the way passes them on.
static keel_status_t atomics_check(const amdgpu_control_t *control)
{
    enum { HOPS = 8 };
    const amdgpu_device_t *device = control->device;
    hsa_agent_t gpu = device->agents[control->node];
    hsa_amd_memory_pool_link_info_t links[HOPS] = {0};
    uint32_t hops = 0;
    KEEL_TRY(HSA_CALL(device->hsa, hsa_amd_agent_memory_pool_get_info, gpu, device->shared,
                      HSA_AMD_AGENT_MEMORY_POOL_INFO_NUM_LINK_HOPS, &hops));
    bool able = hops <= HOPS;
    if (able)
        KEEL_TRY(HSA_CALL(device->hsa, hsa_amd_agent_memory_pool_get_info, gpu, device->shared,
                          HSA_AMD_AGENT_MEMORY_POOL_INFO_LINK_INFO, links));
    for (uint32_t i = 0; able && i < hops; i++)
        able = links[i].atomic_support_32bit && links[i].atomic_support_64bit;
    if (able) return NULL;
    return KEEL_ERROR(KEEL_UNSUPPORTED,
                      "GPU %d cannot schedule: its link to the host carries no atomic operations",
                      device->nodes[control->node].ordinal);
}

// A tick rings for packets of queues of its own GPU, and what it wakes on other GPUs for theirs. So
// all of them must have the doorbells mapped, which is not so on every system. All queues of a GPU
// have theirs in one piece of memory.
static keel_status_t doorbell_check(const amdgpu_control_t *control)
{
    const amdgpu_device_t *device = control->device;
    hsa_amd_pointer_info_t info;
    hsa_agent_t *agents = NULL;
    uint32_t count = 0, found = 0;
    KEEL_TRY(
        amdgpu_agents_of(device->hsa, control->shared->control.doorbell, &info, &count, &agents));
    for (uint32_t i = 0; i < count; i++) found += amdgpu_device_has(device, agents[i]);
    mem_free(agents);
    if (found == device->node_count) return NULL;
    return KEEL_ERROR(KEEL_UNSUPPORTED,
                      "the GPUs cannot schedule: not all of them reach the doorbells of GPU %d",
                      device->nodes[control->node].ordinal);
}

keel_status_t amdgpu_control_start(amdgpu_control_t *control)
{
    amdgpu_device_t *device = control->device;
    const hsa_symbols_t *hsa = device->hsa;
    KEEL_TRY(atomics_check(control));
    KEEL_TRY(amdgpu_ring_make(device, control->node, CONTROL, &control->queue));
    // Without it ticks are later where the GPU is full; that is no reason to do without them.
    hsa->hsa_amd_queue_set_priority(control->queue, HSA_AMD_QUEUE_PRIORITY_HIGH);
    KEEL_TRY(HSA_CALL(hsa, hsa_signal_create, 1, 0, NULL, &control->signal));
    KEEL_TRY(HSA_CALL(hsa, hsa_signal_create, 1, 0, NULL, &control->drained));
    KEEL_TRY(shared_make(control));
    KEEL_TRY(doorbell_check(control));
    amdgpu_trace_start(control);
    atomic_store(&control->listening, true);
    keel_status_t status = HSA_CALL(hsa, hsa_amd_signal_async_handler, control->signal,
                                    HSA_SIGNAL_CONDITION_LT, 1, told, control);
    if (status) atomic_store(&control->listening, false);
    return status;
}

// A packet behind all others of the queue, until it has ended.
static void packet_await(amdgpu_device_t *device, hsa_queue_t *queue, hsa_signal_t signal)
{
    const hsa_symbols_t *hsa = device->hsa;
    const hsa_barrier_and_packet_t packet = {.completion_signal = signal};
    const uint32_t header = HSA_PACKET_TYPE_BARRIER_AND | 1u << HSA_PACKET_HEADER_BARRIER;
    hsa->hsa_signal_store_screlease(signal, 1);
    uint64_t number = amdgpu_packet_write(hsa, queue, &packet, header);
    hsa->hsa_signal_store_screlease(queue->doorbell_signal, (hsa_signal_value_t)number);
    amdgpu_signal_await(device, signal);
}

// One at a time, as there is one signal. When the scheduler has stopped, all have ended.
void amdgpu_control_drain(amdgpu_control_t *control, hsa_queue_t *queue)
{
    lock_enter(&control->drain_lock);
    if (control->queue && control->drained.handle && !atomic_load(&control->device->failed))
        packet_await(control->device, queue ? queue : control->queue, control->drained);
    lock_leave(&control->drain_lock);
}

// A queue may be on its way out meanwhile, and drain; or the device be lost.
static void queue_and_signal_destroy(amdgpu_control_t *control)
{
    const hsa_symbols_t *hsa = control->device->hsa;
    lock_enter(&control->drain_lock);
    if (control->queue) amdgpu_ring_destroy(control->device, control->queue);
    if (control->signal.handle) hsa->hsa_signal_destroy(control->signal);
    control->queue = NULL;
    control->signal.handle = 0;
    lock_leave(&control->drain_lock);
}

void amdgpu_control_inactivate(amdgpu_control_t *control)
{
    lock_enter(&control->drain_lock);
    if (control->queue) control->device->hsa->hsa_queue_inactivate(control->queue);
    lock_leave(&control->drain_lock);
}

void amdgpu_control_stop(amdgpu_control_t *control)
{
    // Again and again: one that was being told sets it back.
    while (atomic_load(&control->listening)) {
        control->device->hsa->hsa_signal_store_screlease(control->signal, 0);
        sched_yield();
    }
    queue_and_signal_destroy(control);
}

void amdgpu_control_clear(amdgpu_control_t *control)
{
    amdgpu_trace_stop(control);
    amdgpu_trace_clear(control);
    if (control->memory) blocks_return(&control->device->blocks, control->memory, true);
    control->memory = NULL;
    control->shared = NULL;
}

void amdgpu_control_free(amdgpu_control_t *control)
{
    if (control->drained.handle) control->device->hsa->hsa_signal_destroy(control->drained);
}
