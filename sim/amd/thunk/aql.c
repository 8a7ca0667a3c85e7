// SPDX-License-Identifier: Apache-2.0
// The packet processor of a compute queue. Packets are taken in order and each ends before the next
// begins, which is one of the orders that packets without the barrier bit allow.
#include "amd/thunk/thunk.h"

#include <hsa/hsa_ext_amd.h>

enum { PACKET_SIZE = 64, FORMAT_PM4 = 1 };

// What became of a packet.
typedef enum { PACKET_DONE, PACKET_FAILED, PACKET_STOPPED } outcome_t;

// A signal in memory that the queue's node may touch, else NULL.
static amd_signal_t *signal_of(const queue_t *queue, hsa_signal_t signal)
{
    return map_bytes(signal.handle, sizeof(amd_signal_t), queue->node);
}

static outcome_t fail(queue_t *queue, uint64_t error)
{
    queue_fail(queue, error);
    return PACKET_FAILED;
}

static uint64_t error_of(fault_kind_t kind)
{
    switch (kind) {
    case FAULT_INSTRUCTION: return QUEUE_ERROR_INSTRUCTION;
    case FAULT_TRAP: return QUEUE_ERROR_TRAP;
    default: return QUEUE_ERROR_APERTURE;
    }
}

// Zero when a dispatch is as it should be.
static uint64_t dispatch_error(const dispatch_t *dispatch, unsigned dimensions)
{
    uint64_t items = 1;
    if (dimensions < 1 || dimensions > 3) return QUEUE_ERROR_DIMENSIONS;
    for (unsigned k = 0; k < 3; k++) {
        if (!dispatch->grid[k] || !dispatch->group[k]) return QUEUE_ERROR_DIMENSIONS;
        items *= dispatch->group[k];
        if (items > WORKGROUP_SIZE_MAX) return QUEUE_ERROR_GROUP_SIZE;
    }
    if (!dispatch->kernel) return QUEUE_ERROR_CODE;
    return dispatch->lds_size > LDS_SIZE_MAX ? QUEUE_ERROR_GROUP_MEMORY : 0;
}

static outcome_t run_dispatch(queue_t *queue, const hsa_kernel_dispatch_packet_t *packet,
                              uint64_t id)
{
    unsigned dimensions = packet->setup & 3;
    const dispatch_t dispatch = {
        .grid = {packet->grid_size_x, dimensions > 1 ? packet->grid_size_y : 1,
                 dimensions > 2 ? packet->grid_size_z : 1},
        .group = {packet->workgroup_size_x, dimensions > 1 ? packet->workgroup_size_y : 1,
                  dimensions > 2 ? packet->workgroup_size_z : 1},
        .lds_size = packet->group_segment_size,
        .scratch_size = packet->private_segment_size,
        .kernel = packet->kernel_object,
        .kernarg = (uint64_t)(uintptr_t)packet->kernarg_address,
        .packet = (uint64_t)(uintptr_t)packet,
        .queue = (uint64_t)(uintptr_t)queue->shared,
        .id = id,
    };
    log_line(LOG_PACKETS,
             "queue %llu, packet %llu: dispatch of 0x%llx, %u x %u x %u by %u x %u x %u",
             (unsigned long long)queue->id, (unsigned long long)id,
             (unsigned long long)dispatch.kernel, dispatch.grid[0], dispatch.grid[1],
             dispatch.grid[2], dispatch.group[0], dispatch.group[1], dispatch.group[2]);
    uint64_t error = dispatch_error(&dispatch, dimensions);
    if (error) return fail(queue, error);
    uint64_t generation = atomic_load(&code_generation);
    if (queue->code_generation != generation) {
        isa_forget(queue->isa);
        queue->code_generation = generation;
    }
    if (isa_dispatch(queue->isa, &dispatch)) return PACKET_DONE;
    const fault_t *fault = isa_fault(queue->isa);
    if (fault->kind == FAULT_NONE) return PACKET_STOPPED;
    if (fault->kind == FAULT_MEMORY) {
        queue_memory_fault(queue, fault->address);
        return PACKET_FAILED;
    }
    return fail(queue, error_of(fault->kind));
}

// Acquire: pairs with the release of whoever changes the signal; its writes are then to be seen.
static int64_t signal_value(const amd_signal_t *signal)
{
    return __atomic_load_n(&signal->value, __ATOMIC_ACQUIRE);
}

static outcome_t run_barrier(queue_t *queue, const hsa_barrier_and_packet_t *packet, bool all)
{
    const amd_signal_t *waits[5];
    unsigned count = 0, idle = 0;
    for (unsigned k = 0; k < 5; k++) {
        if (!packet->dep_signal[k].handle) continue;
        waits[count] = signal_of(queue, packet->dep_signal[k]);
        if (!waits[count++]) {
            queue_memory_fault(queue, packet->dep_signal[k].handle);
            return PACKET_FAILED;
        }
    }
    log_line(LOG_PACKETS, "queue %llu: barrier-%s on %u signals", (unsigned long long)queue->id,
             all ? "and" : "or", count);
    for (;;) {
        unsigned zero = 0;
        for (unsigned k = 0; k < count; k++) zero += signal_value(waits[k]) == 0;
        if (all ? zero == count : zero || !count) return PACKET_DONE;
        if (queue_idle(queue, &idle)) return PACKET_STOPPED;
    }
}

static bool holds(hsa_signal_condition32_t condition, int64_t value, int64_t wanted)
{
    switch (condition) {
    case HSA_SIGNAL_CONDITION_EQ: return value == wanted;
    case HSA_SIGNAL_CONDITION_NE: return value != wanted;
    case HSA_SIGNAL_CONDITION_LT: return value < wanted;
    default: return value >= wanted;
    }
}

static outcome_t run_barrier_value(queue_t *queue, const hsa_amd_barrier_value_packet_t *packet)
{
    unsigned idle = 0;
    if (!packet->signal.handle) return PACKET_DONE;
    const amd_signal_t *signal = signal_of(queue, packet->signal);
    if (!signal) {
        queue_memory_fault(queue, packet->signal.handle);
        return PACKET_FAILED;
    }
    log_line(LOG_PACKETS, "queue %llu: barrier on a value", (unsigned long long)queue->id);
    while (!holds(packet->cond, signal_value(signal) & packet->mask, packet->value)) {
        if (queue_idle(queue, &idle)) return PACKET_STOPPED;
    }
    return PACKET_DONE;
}

// The runtime uses command buffers of the older kind to invalidate caches.
static outcome_t run_pm4(queue_t *queue, const uint32_t *packet)
{
    enum { PM4_NOP = 0x10, PM4_ACQUIRE_MEM = 0x58 };
    uint64_t address = (packet[2] & ~3u) | (uint64_t)(packet[3] & 0xffff) << 32;
    uint32_t count = packet[4] & 0xfffff;
    const uint32_t *words = map_bytes(address, 4ull * count, queue->node);
    if (!words) {
        queue_memory_fault(queue, address);
        return PACKET_FAILED;
    }
    for (uint32_t k = 0; k < count; k += (words[k] >> 16 & 0x3fff) + 2) {
        unsigned operation = words[k] >> 8 & 0xff;
        if (words[k] >> 30 != 3 || (operation != PM4_NOP && operation != PM4_ACQUIRE_MEM)) {
            log_line(LOG_ERROR, "queue %llu: PM4 word %08x is not modelled",
                     (unsigned long long)queue->id, words[k]);
            return fail(queue, QUEUE_ERROR_VENDOR_PACKET);
        }
        if (operation == PM4_ACQUIRE_MEM) atomic_fetch_add(&code_generation, 1);
    }
    return PACKET_DONE;
}

static outcome_t run_packet(queue_t *queue, void *packet, uint16_t header, uint64_t id)
{
    switch (header & 0xff) {
    case HSA_PACKET_TYPE_KERNEL_DISPATCH: return run_dispatch(queue, packet, id);
    case HSA_PACKET_TYPE_BARRIER_AND: return run_barrier(queue, packet, true);
    case HSA_PACKET_TYPE_BARRIER_OR: return run_barrier(queue, packet, false);
    case HSA_PACKET_TYPE_VENDOR_SPECIFIC:
        switch (((const uint8_t *)packet)[2]) {
        case HSA_AMD_PACKET_TYPE_BARRIER_VALUE: return run_barrier_value(queue, packet);
        case FORMAT_PM4: return run_pm4(queue, packet);
        default: return fail(queue, QUEUE_ERROR_VENDOR_PACKET);
        }
    default: return fail(queue, QUEUE_ERROR_PACKET);
    }
}

// Every packet has its completion signal in the same place.
static outcome_t complete(queue_t *queue, hsa_signal_t handle, uint64_t start)
{
    if (!handle.handle) return PACKET_DONE;
    amd_signal_t *signal = signal_of(queue, handle);
    if (!signal) {
        queue_memory_fault(queue, handle.handle);
        return PACKET_FAILED;
    }
    if (queue->shared->queue_properties & AMD_QUEUE_PROPERTIES_ENABLE_PROFILING) {
        signal->start_ts = start;
        signal->end_ts = clock_ticks();
    }
    // Who waits may free the signal as soon as it has counted down.
    uint64_t mailbox = signal->event_mailbox_ptr;
    uint32_t event = signal->event_id;
    // Release: pairs with the acquire of whoever waits for the packet.
    __atomic_fetch_sub(&signal->value, 1, __ATOMIC_ACQ_REL);
    if (mailbox) {
        uint64_t *box = map_bytes(mailbox, sizeof *box, queue->node);
        if (box) __atomic_store_n(box, event, __ATOMIC_RELEASE); // read after the interrupt
        event_interrupt(event);
    }
    return PACKET_DONE;
}

void aql_run(queue_t *queue)
{
    uint64_t read = 0, rung = UINT64_MAX, count = queue->size / PACKET_SIZE;
    bool awake = false;
    unsigned idle = 0;
    for (;;) {
        // Acquire, here and below: pairs with the releases of whoever writes packets.
        uint64_t doorbell = __atomic_load_n(queue->doorbell, __ATOMIC_ACQUIRE);
        awake = awake || doorbell != rung;
        rung = doorbell;
        // Packets up to the number in the doorbell are there, even if the index is seen late.
        bool announced = doorbell != UINT64_MAX && doorbell >= read;
        if (!announced && read >= __atomic_load_n(queue->write_index, __ATOMIC_ACQUIRE))
            awake = false;
        uint8_t *packet = queue->ring + read % count * PACKET_SIZE;
        uint16_t header = __atomic_load_n((uint16_t *)packet, __ATOMIC_ACQUIRE);
        if (!awake || (header & 0xff) == HSA_PACKET_TYPE_INVALID) {
            if (queue_idle(queue, &idle)) return;
            continue;
        }
        idle = 0;
        uint64_t start = clock_ticks();
        if (run_packet(queue, packet, header, read) != PACKET_DONE) return;
        hsa_signal_t done = ((hsa_barrier_and_packet_t *)packet)->completion_signal;
        __atomic_store_n((uint16_t *)packet, HSA_PACKET_TYPE_INVALID, __ATOMIC_RELEASE);
        // Release: whoever sees the index may write the packet anew.
        __atomic_store_n(queue->read_index, ++read, __ATOMIC_RELEASE);
        if (complete(queue, done, start) != PACKET_DONE) return;
    }
}
