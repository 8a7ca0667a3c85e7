// SPDX-License-Identifier: Apache-2.0
// What the GPU did by itself, for a trace: it tells that in slots of a trace ring (device/ring.h),
// one for each scheduler.
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/status.h"
#include "drivers/amdgpu/host/scheduler/scheduler.h"
#include "trace/captured.h"

enum {
    RING_HEAD = sizeof(trace_ring_t), // bytes in front of the slots: the ring itself
    RING_TAKEN = RING_TEXT_END + 1,   // the kind of a slot that was recorded
};

static const char *const zones[RING_ZONE_COUNT] = {"keel_tick", "keel_advance"};
static const char *const values[RING_VALUE_COUNT] = {"submissions"};
static const char *const messages[RING_MESSAGE_COUNT] = {
    "a submission waits for room in its queue, packets", "a command cannot be issued, fault"};

void amdgpu_trace_start(amdgpu_control_t *control)
{
    amdgpu_device_t *device = control->device;
    uint64_t count = device->trace_slots;
    if (!device->traced) return;
    keel_status_t status = blocks_acquire(&device->blocks, RING_HEAD + count * sizeof(ring_slot_t),
                                          &control->ring_memory);
    if (status) {
        log_say(KEEL_LOG_WARNING, "amdgpu: what the GPU schedules is not traced: %s",
                keel_status_message(status));
        keel_status_release(status);
        return;
    }
    block_t *memory = control->ring_memory;
    ring_slot_t *slots = (ring_slot_t *)(void *)(memory->data + RING_HEAD);
    for (uint64_t i = 0; i < count; i++) amdgpu_slot_reset(&slots[i]);
    control->ring = (trace_ring_t *)(void *)memory->data;
    *control->ring = (trace_ring_t){
        .slots = memory->address + RING_HEAD, .mask = count - 1, .paused = trace_is_paused()};
    control->shared->trace = memory->address;
}

static ring_slot_t *slot_at(const amdgpu_control_t *control, uint64_t number)
{
    trace_ring_t *ring = control->ring;
    ring_slot_t *slots = (ring_slot_t *)(void *)(control->ring_memory->data + RING_HEAD);
    return &slots[number & ring->mask];
}

// A name of the scheduler's: "amdgpu://0: scheduler 0: NAME".
static uint32_t own_name(const amdgpu_control_t *control, const char *name)
{
    char text[256];
    snprintf(text, sizeof text, "%s: scheduler %u: %s", control->device->base.name, control->number,
             name);
    return trace_name(text);
}

static void zone_record(amdgpu_control_t *control, const ring_slot_t *slot)
{
    const amdgpu_device_t *device = control->device;
    char queue[32];
    snprintf(queue, sizeof queue, "scheduler %u", control->number);
    const trace_part_t part = {.name = trace_name(zones[slot->number]), .count = 1};
    const trace_work_t work = {trace_queue(&control->traced, device->base.name, queue, NULL), 0};
    trace_part_boot(amdgpu_boot_ns(device, control->node, slot->start),
                    amdgpu_boot_ns(device, control->node, slot->end), work, part);
}

static void message_record(amdgpu_control_t *control, const ring_slot_t *slot)
{
    char text[128];
    snprintf(text, sizeof text, "%s: %llu", messages[slot->number], (unsigned long long)slot->end);
    trace_mark_boot(own_name(control, text),
                    amdgpu_boot_ns(control->device, control->node, slot->start));
}

// A text of several slots, up to `write`, once all are complete: how many that are; 0: not yet.
static uint64_t text_record(amdgpu_control_t *control, uint64_t number, uint64_t write)
{
    char text[RING_TEXTS * RING_TEXT_SIZE + 1] = "";
    uint64_t count = 0;
    for (bool last = false; !last; count++) {
        ring_slot_t *slot = slot_at(control, number + count);
        if (number + count == write || count == RING_TEXTS || !amdgpu_slot_is_complete(slot))
            return 0;
        last = slot->kind == RING_TEXT_END;
        memcpy(text + count * RING_TEXT_SIZE, ((ring_text_t *)(void *)slot)->text, RING_TEXT_SIZE);
    }
    uint64_t start = slot_at(control, number)->start;
    trace_mark_boot(own_name(control, text), amdgpu_boot_ns(control->device, control->node, start));
    return count;
}

static void operation_record(const ring_slot_t *slot)
{
    const amdgpu_run_t *run = (const amdgpu_run_t *)(uintptr_t)slot->user;
    if (!run) return; // forgotten
    const keel_cmd_execute_t *execute = amdgpu_step_execute(run, slot->step);
    const keel_commands_t *list =
        execute ? execute->recording->commands : &run->base.submission.commands;
    amdgpu_command_record(run, keel_commands_at(list, slot->number), execute, 0, slot);
}

// Records what stands at a number, if it is complete; returns how many slots to go on.
static uint64_t slot_record(amdgpu_control_t *control, uint64_t number, uint64_t write)
{
    ring_slot_t *slot = slot_at(control, number);
    uint64_t count = 1;
    if (!amdgpu_slot_is_complete(slot)) return 1;
    switch (slot->kind) {
    case RING_OPERATION: operation_record(slot); break;
    case RING_ZONE: zone_record(control, slot); break;
    case RING_MESSAGE: message_record(control, slot); break;
    case RING_VALUE:
        trace_count_boot(own_name(control, values[slot->number]),
                         amdgpu_boot_ns(control->device, control->node, slot->start),
                         (double)slot->end);
        break;
    case RING_TEXT:
    case RING_TEXT_END: count = slot->step ? 0 : text_record(control, number, write); break;
    default: break;
    }
    for (uint64_t i = 0; i < count; i++) slot_at(control, number + i)->kind = RING_TAKEN;
    return count ? count : 1;
}

// What was dropped is not in the trace, which says so.
static void dropped_count(amdgpu_control_t *control)
{
    uint64_t dropped = PROTOCOL_SWAP(&control->ring->dropped, 0, __ATOMIC_RELAXED);
    if (dropped && !trace_is_paused()) trace_lose_many(dropped);
    control->dropped += dropped;
}

void amdgpu_trace_follow(amdgpu_control_t *control)
{
    if (!control->ring_memory) return;
    // Not control->ring, which the loss of the device sets.
    trace_ring_t *ring = (trace_ring_t *)(void *)control->ring_memory->data;
    uint32_t paused = trace_is_paused();
    // relaxed: pairs with who takes slots, who may see it a little later.
    PROTOCOL_STORE(&ring->paused, paused, __ATOMIC_RELAXED);
}

void amdgpu_trace_flush(amdgpu_control_t *control)
{
    trace_ring_t *ring = control->ring;
    if (!ring) return;
    lock_enter(&control->device->scheduler->lock);
    amdgpu_trace_follow(control);
    lock_leave(&control->device->scheduler->lock);
    // acq_rel: pairs with the GPU's. Either it asks again, or this sees what it has written.
    PROTOCOL_SWAP(&ring->asking, 0, __ATOMIC_ACQ_REL);
    uint64_t write = PROTOCOL_LOAD(&ring->write, __ATOMIC_ACQUIRE), read = ring->read;
    for (uint64_t n = read; n < write;) n += slot_record(control, n, write);
    for (; read != write && slot_at(control, read)->kind == RING_TAKEN; read++)
        amdgpu_slot_reset(slot_at(control, read));
    // release: pairs with who takes slots.
    PROTOCOL_STORE(&ring->read, read, __ATOMIC_RELEASE);
    dropped_count(control);
}

// Whether it is of a run that has ended.
static bool is_over(const ring_slot_t *slot)
{
    if (slot->kind != RING_OPERATION) return false;
    const amdgpu_run_t *run = (const amdgpu_run_t *)(uintptr_t)slot->user;
    return run && run->over;
}

void amdgpu_trace_forget(amdgpu_control_t *control, uint64_t records)
{
    trace_ring_t *ring = control->ring;
    if (!ring || !records) return;
    for (const record_t *r; records; records = r->next) {
        r = PROTOCOL_AT(const record_t, records);
        ((amdgpu_run_t *)(uintptr_t)r->user)->over = true;
    }
    uint64_t write = PROTOCOL_LOAD(&ring->write, __ATOMIC_ACQUIRE), lost = 0;
    for (uint64_t n = ring->read; n != write; n++) {
        ring_slot_t *slot = slot_at(control, n);
        if (!is_over(slot)) continue;
        PROTOCOL_STORE(&slot->user, 0, __ATOMIC_RELAXED); // the packet processor leaves it alone
        lost++;
    }
    if (lost && !trace_is_paused()) trace_lose_many(lost);
}

void amdgpu_trace_stop(amdgpu_control_t *control)
{
    amdgpu_trace_flush(control);
    if (control->dropped)
        log_say(KEEL_LOG_WARNING,
                "amdgpu: %llu operations and messages of the GPU are not in the trace: its ring "
                "of %u was full (trace_slots)",
                (unsigned long long)control->dropped, control->device->trace_slots);
    control->dropped = 0;
    control->ring = NULL;
}

void amdgpu_trace_clear(amdgpu_control_t *control)
{
    if (control->ring_memory) blocks_return(&control->device->blocks, control->ring_memory, true);
    control->ring_memory = NULL;
}
