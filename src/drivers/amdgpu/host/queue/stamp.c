// SPDX-License-Identifier: Apache-2.0
// When packets ran, for a trace. Those of a traced device have a completion signal each, in which
// the packet processor writes when they began and ended: a slot of the trace ring where the GPU
// schedules (trace.c), and a piece of the run's memory where the host does. HSA converts these
// times to the host's.
#include <sched.h>

#include "base/clock.h"
#include "base/status.h"
#include "drivers/amdgpu/host/queue/queue.h"
#include "kit/submission.h"
#include "kit/traced.h"
#include "trace/captured.h"

enum { NS_PER_S = 1000000000 };

// A command that the host has made a packet of.
struct amdgpu_stamp_t {
    ring_slot_t slot;
    amdgpu_stamp_t *older;
    const keel_command_t *command;
    const keel_cmd_execute_t *execute;
    uint32_t part; // of the command's packets
};

void amdgpu_stamps_open(amdgpu_device_t *device)
{
    uint64_t hertz = 0;
    if (!trace_is_on()) return;
    device->hsa->hsa_system_get_info(HSA_SYSTEM_INFO_TIMESTAMP_FREQUENCY, &hertz);
    device->system_hertz = hertz ? hertz : NS_PER_S;
    // Without that libkeeltrace.so sees the packets, and records them.
    device->traced = trace_queues_leave(true);
    trace_queues_leave(false);
}

uint64_t amdgpu_boot_ns(const amdgpu_device_t *device, uint32_t node, uint64_t ticks)
{
    uint64_t time = 0, hertz = device->system_hertz;
    device->hsa->hsa_amd_profiling_convert_tick_to_system_domain(device->agents[node], ticks,
                                                                 &time);
    return hertz == NS_PER_S ? time : time / hertz * NS_PER_S + time % hertz * NS_PER_S / hertz;
}

static _Atomic uint32_t *kernel_name(const keel_command_t *command)
{
    const keel_cmd_dispatch_t *dispatch = (const void *)command;
    if (command->kind != KEEL_CMD_DISPATCH) return NULL;
    return &((amdgpu_kernel_t *)(uintptr_t)dispatch->kernel)->traced;
}

void amdgpu_command_record(const amdgpu_run_t *run, const keel_command_t *command,
                           const keel_cmd_execute_t *execute, uint32_t packet,
                           const ring_slot_t *slot)
{
    const amdgpu_device_t *device = amdgpu_run_device(run);
    const keel_submission_t *submission = &run->base.submission;
    uint32_t node = amdgpu_run_node(run);
    trace_part_t part = traced_part(execute ? execute->recording->commands : &submission->commands,
                                    command, kernel_name(command));
    part.first = packet;
    if (part.op == TRACE_OP_COPY)
        part.count = packet ? 0 : traced_bytes(command, execute ? execute->bindings : NULL);
    trace_part_boot(amdgpu_boot_ns(device, node, slot->start),
                    amdgpu_boot_ns(device, node, slot->end), submission_traced(submission), part);
}

void amdgpu_stamp(amdgpu_run_t *run, hsa_kernel_dispatch_packet_t *packet)
{
    uint64_t address;
    void *data;
    if (!run->stamps.command) return;
    keel_status_t status = amdgpu_run_piece(run, sizeof(amdgpu_stamp_t), &data, &address);
    if (status) {
        keel_status_release(status);
        trace_lose_many(1);
        return;
    }
    amdgpu_stamp_t *stamp = data;
    amdgpu_slot_reset(&stamp->slot);
    stamp->older = run->stamps.newest;
    stamp->command = run->stamps.command;
    stamp->execute = run->stamps.execute;
    stamp->part = run->stamps.packets++;
    run->stamps.newest = stamp;
    packet->completion_signal.handle = address;
}

void amdgpu_stamps_of(amdgpu_run_t *run, const keel_command_t *command,
                      const keel_cmd_execute_t *execute)
{
    bool traced = command && amdgpu_run_device(run)->traced && !trace_is_paused();
    run->stamps.command = traced ? command : NULL;
    run->stamps.execute = execute;
    run->stamps.packets = 0;
}

// The end of the run may be seen before a stamp of it that is still to be written. False: it is
// not, because the device is lost, or it is late beyond reason.
static bool stamp_await(const amdgpu_device_t *device, amdgpu_stamp_t *stamp, uint64_t deadline)
{
    while (!amdgpu_slot_is_complete(&stamp->slot)) {
        if (atomic_load(&device->failed) || keel_now_ns() >= deadline) return false;
        sched_yield();
    }
    return true;
}

bool amdgpu_stamps_record(amdgpu_run_t *run)
{
    enum { LATE_NS = 100000000 };
    const amdgpu_device_t *device = amdgpu_run_device(run);
    uint64_t deadline = run->stamps.newest ? clock_deadline(LATE_NS) : 0, lost = 0;
    for (amdgpu_stamp_t *s = run->stamps.newest; s; s = s->older) {
        if (stamp_await(device, s, deadline))
            amdgpu_command_record(run, s->command, s->execute, s->part, &s->slot);
        else
            lost++;
    }
    // Of a lost device they may not have run.
    if (lost && !atomic_load(&device->failed)) trace_lose_many(lost);
    run->stamps.newest = NULL;
    return !lost;
}
