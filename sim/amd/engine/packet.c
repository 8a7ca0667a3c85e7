// SPDX-License-Identifier: Apache-2.0
// What the packets of a compute queue do. Their order is the business of aql.c.
#include <stdio.h>

#include "amd/engine/strict.h"

#include <hsa/hsa_ext_amd.h>

enum { FORMAT_PM4 = 1 };

// A signal in memory that the queue's node may touch, else NULL.
static amd_signal_t *signal_of(const queue_t *queue, hsa_signal_t signal)
{
    return map_bytes(signal.handle, sizeof(amd_signal_t), queue->node);
}

static outcome_t fail(queue_t *queue, const void *packet, uint64_t error)
{
    char text[320];
    // Acquire: pairs with the release of the packet's writer.
    uint16_t header = __atomic_load_n((const uint16_t *)packet, __ATOMIC_ACQUIRE);
    packet_text(queue, packet, header, text, sizeof text);
    queue_fail(queue, text, error);
    return PACKET_FAILED;
}

static outcome_t fail_signal(queue_t *queue, hsa_signal_t signal)
{
    log_line(LOG_ERROR, "queue %llu of node %u: a packet's signal, 0x%llx: no such memory",
             (unsigned long long)queue->id, queue->node, (unsigned long long)signal.handle);
    queue_memory_fault(queue, signal.handle);
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

static dispatch_t dispatch_read(const queue_t *queue, const hsa_kernel_dispatch_packet_t *packet,
                                uint64_t id)
{
    unsigned dimensions = packet->setup & 3;
    return (dispatch_t){
        .grid = {packet->grid_size_x, dimensions > 1 ? packet->grid_size_y : 1,
                 dimensions > 2 ? packet->grid_size_z : 1},
        .group = {packet->workgroup_size_x, dimensions > 1 ? packet->workgroup_size_y : 1,
                  dimensions > 2 ? packet->workgroup_size_z : 1},
        .lds_size = packet->group_segment_size,
        .scratch_size = packet->private_segment_size,
        .units = atomic_load(&queue->units),
        .gws = atomic_load(&queue->gws),
        .kernel = packet->kernel_object,
        .kernarg = (uint64_t)(uintptr_t)packet->kernarg_address,
        .packet = (uint64_t)(uintptr_t)packet,
        .queue = (uint64_t)(uintptr_t)queue->shared,
        .id = id,
        .code = atomic_load(&code_generation),
    };
}

// Both fields of a header have two bits, and one number that means nothing.
static scope_t scope_at(uint16_t header, unsigned shift)
{
    unsigned scope = header >> shift & 3;
    return scope > SCOPE_SYSTEM ? SCOPE_SYSTEM : (scope_t)scope;
}

static void acquire(const queue_t *queue, uint16_t header)
{
    node_acquire(queue->node, scope_at(header, HSA_PACKET_HEADER_SCACQUIRE_FENCE_SCOPE));
}

static void release(const queue_t *queue, uint16_t header)
{
    node_release(queue->node, scope_at(header, HSA_PACKET_HEADER_SCRELEASE_FENCE_SCOPE));
}

outcome_t packet_dispatch(queue_t *queue, isa_t *isa, const void *packet, uint64_t id)
{
    const dispatch_t dispatch = dispatch_read(queue, packet, id);
    uint16_t header = ((const hsa_kernel_dispatch_packet_t *)packet)->header;
    log_line(LOG_PACKETS,
             "queue %llu, packet %llu: dispatch of 0x%llx, %u x %u x %u by %u x %u x %u",
             (unsigned long long)queue->id, (unsigned long long)id,
             (unsigned long long)dispatch.kernel, dispatch.grid[0], dispatch.grid[1],
             dispatch.grid[2], dispatch.group[0], dispatch.group[1], dispatch.group[2]);
    uint64_t error =
        dispatch_error(&dispatch, ((const hsa_kernel_dispatch_packet_t *)packet)->setup & 3);
    if (error) return fail(queue, packet, error);
    watched_t watched;
    strict_begin(&watched, queue, packet);
    acquire(queue, header);
    if (isa_dispatch(isa, &dispatch)) {
        release(queue, header);
        strict_end(&watched, queue);
        return PACKET_DONE;
    }
    node_settle(queue->node); // what was stored before a fault arrives
    const fault_t *fault = isa_fault(isa);
    if (fault->kind == FAULT_NONE) return PACKET_STOPPED;
    if (fault->kind == FAULT_MEMORY) {
        queue_memory_fault(queue, fault->address);
        return PACKET_FAILED;
    }
    return fail(queue, packet, error_of(fault->kind));
}

// Acquire: pairs with the release of the thread that changes the signal; its writes are then
// visible.
static int64_t signal_value(const amd_signal_t *signal)
{
    return __atomic_load_n(&signal->value, __ATOMIC_ACQUIRE);
}

static outcome_t try_barrier(queue_t *queue, const hsa_barrier_and_packet_t *packet, bool all)
{
    unsigned count = 0, zero = 0;
    for (unsigned k = 0; k < 5; k++) {
        if (!packet->dep_signal[k].handle) continue;
        const amd_signal_t *signal = signal_of(queue, packet->dep_signal[k]);
        if (!signal) return fail_signal(queue, packet->dep_signal[k]);
        count++;
        zero += signal_value(signal) == 0;
    }
    if (all ? zero != count : count && !zero) return PACKET_WAITS;
    log_line(LOG_PACKETS, "queue %llu: barrier-%s on %u signals is over",
             (unsigned long long)queue->id, all ? "and" : "or", count);
    return PACKET_DONE;
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

static outcome_t try_barrier_value(queue_t *queue, const hsa_amd_barrier_value_packet_t *packet)
{
    if (!packet->signal.handle) return PACKET_DONE;
    const amd_signal_t *signal = signal_of(queue, packet->signal);
    if (!signal) return fail_signal(queue, packet->signal);
    if (!holds(packet->cond, signal_value(signal) & packet->mask, packet->value)) {
        return PACKET_WAITS;
    }
    log_line(LOG_PACKETS, "queue %llu: barrier on a value is over", (unsigned long long)queue->id);
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
        log_line(LOG_ERROR, "queue %llu of node %u: PM4 commands at 0x%llx: no such memory",
                 (unsigned long long)queue->id, queue->node, (unsigned long long)address);
        queue_memory_fault(queue, address);
        return PACKET_FAILED;
    }
    for (uint32_t k = 0; k < count; k += (words[k] >> 16 & 0x3fff) + 2) {
        unsigned operation = words[k] >> 8 & 0xff;
        if (words[k] >> 30 != 3 || (operation != PM4_NOP && operation != PM4_ACQUIRE_MEM)) {
            log_line(LOG_ERROR, "queue %llu: PM4 word %08x is not modelled",
                     (unsigned long long)queue->id, words[k]);
            return fail(queue, packet, QUEUE_ERROR_VENDOR_PACKET);
        }
        if (operation != PM4_ACQUIRE_MEM) continue;
        node_acquire(queue->node, SCOPE_SYSTEM);
        atomic_fetch_add(&code_generation, 1);
    }
    return PACKET_DONE;
}

static outcome_t try_any(queue_t *queue, const void *packet, uint16_t header)
{
    switch (header & 0xff) {
    case HSA_PACKET_TYPE_BARRIER_AND: return try_barrier(queue, packet, true);
    case HSA_PACKET_TYPE_BARRIER_OR: return try_barrier(queue, packet, false);
    case HSA_PACKET_TYPE_VENDOR_SPECIFIC:
        switch (((const uint8_t *)packet)[2]) {
        case HSA_AMD_PACKET_TYPE_BARRIER_VALUE: return try_barrier_value(queue, packet);
        case FORMAT_PM4: return run_pm4(queue, packet);
        default: return fail(queue, packet, QUEUE_ERROR_VENDOR_PACKET);
        }
    default: return fail(queue, packet, QUEUE_ERROR_PACKET);
    }
}

// Both when the packet is over: what it waited for has happened before.
outcome_t packet_try(queue_t *queue, const void *packet, uint16_t header)
{
    if (queue->watched.at != packet) strict_begin(&queue->watched, queue, packet);
    outcome_t outcome = try_any(queue, packet, header);
    if (outcome == PACKET_DONE) {
        strict_end(&queue->watched, queue);
        acquire(queue, header);
        release(queue, header);
    }
    return outcome;
}

outcome_t packet_complete(queue_t *queue, hsa_signal_t handle, uint64_t start)
{
    if (!handle.handle) return PACKET_DONE;
    amd_signal_t *signal = signal_of(queue, handle);
    if (!signal) return fail_signal(queue, handle);
    if (queue->shared->queue_properties & AMD_QUEUE_PROPERTIES_ENABLE_PROFILING) {
        signal->start_ts = start;
        signal->end_ts = gpu_ticks(queue->node);
    }
    // Who waits may free the signal as soon as it has counted down.
    uint64_t mailbox = signal->event_mailbox_ptr;
    uint32_t event = signal->event_id;
    // Release: pairs with the acquire of the thread that waits for the packet.
    int64_t value = __atomic_fetch_sub(&signal->value, 1, __ATOMIC_ACQ_REL);
    bell_ring(&memory_bell);
    if (mailbox) {
        uint64_t *box = map_bytes(mailbox, sizeof *box, queue->node);
        if (box) __atomic_store_n(box, event, __ATOMIC_RELEASE); // read after the interrupt
        event_interrupt(event);
    }
    strict_signal(queue, handle, value);
    return PACKET_DONE;
}

// What a dependency of a barrier is, for people.
static int signal_text(const queue_t *queue, hsa_signal_t handle, char *out, size_t size)
{
    const amd_signal_t *signal = signal_of(queue, handle);
    if (!handle.handle || !signal) return 0;
    return snprintf(out, size, " 0x%llx is %lld,", (unsigned long long)handle.handle,
                    (long long)signal_value(signal));
}

void packet_text(const queue_t *queue, const void *packet, uint16_t header, char *out, size_t size)
{
    char name[96];
    const hsa_barrier_and_packet_t *barrier = packet;
    const hsa_amd_barrier_value_packet_t *value = packet;
    int at = 0;
    switch (header & 0xff) {
    case HSA_PACKET_TYPE_KERNEL_DISPATCH:
        kernel_name(((const hsa_kernel_dispatch_packet_t *)packet)->kernel_object, name,
                    sizeof name);
        snprintf(out, size, "dispatch of kernel %s", name);
        return;
    case HSA_PACKET_TYPE_BARRIER_AND:
    case HSA_PACKET_TYPE_BARRIER_OR:
        at = snprintf(out, size, "barrier-%s: signals",
                      (header & 0xff) == HSA_PACKET_TYPE_BARRIER_AND ? "and" : "or");
        for (unsigned k = 0; k < 5 && (size_t)at + 48 < size; k++) {
            at += signal_text(queue, barrier->dep_signal[k], out + at, size - (size_t)at);
        }
        out[at - 1] = 0; // the last comma
        return;
    case HSA_PACKET_TYPE_VENDOR_SPECIFIC:
        if (((const uint8_t *)packet)[2] != HSA_AMD_PACKET_TYPE_BARRIER_VALUE) break;
        at = snprintf(out, size, "barrier on the value %lld: signal", (long long)value->value);
        at += signal_text(queue, value->signal, out + at, size - (size_t)at);
        out[at - 1] = 0;
        return;
    default: break;
    }
    snprintf(out, size, "packet with header %04x", header);
}
