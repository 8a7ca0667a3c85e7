// SPDX-License-Identifier: Apache-2.0
// When commands ran, by the device's own clock, for a trace: the core's timestamp kernel runs
// before and after each. Where nothing else was put on the stream in between, the end of one
// command is the begin of the next.
#include <stddef.h>

#include "base/clock.h"
#include "base/status.h"
#include "drivers/stream/run/stamp.h"

static uint64_t queue_load(const stream_run_t *run)
{
    return atomic_load_explicit(&stream_run_queue(run)->load, memory_order_relaxed);
}

// One with room for two more times; NULL: there is no memory.
static stream_stamps_t *stamps_reserve(stream_run_t *run)
{
    stream_stamps_t *stamps = run->stamps;
    if (stamps && stamps->count < STAMPS && stamps->times_count + 2 <= 2 * STAMPS) return stamps;
    void *data;
    uint64_t address;
    keel_status_t status = stream_stage(run, sizeof *stamps, &data, &address);
    if (status) {
        keel_status_release(status);
        return NULL;
    }
    stamps = data;
    stamps->older = run->stamps;
    stamps->address = address + offsetof(stream_stamps_t, times);
    stamps->times_count = stamps->count = 0;
    stamps->open = false;
    run->stamps = stamps;
    return stamps;
}

// Has the device write the time. Without it the command is not recorded, and that is all.
static bool time_put(stream_run_t *run, stream_stamps_t *stamps)
{
    stream_device_t *device = stream_run_device(run);
    uint64_t at = stamps->address + stamps->times_count * sizeof *stamps->times;
    builtin_timestamp_t arguments = stream_timestamp_make(device, at);
    stream_launch_t launch;
    stream_builtin_launch(device, STREAM_TIMESTAMP, &arguments, sizeof arguments, &launch);
    keel_status_t status =
        stream_device_note(device, stream_launch(stream_run_queue(run), &launch));
    if (status) {
        keel_status_release(status);
        return false;
    }
    stamps->times_count++;
    stamps->load = queue_load(run);
    return true;
}

void stream_stamp_begin(stream_run_t *run)
{
    stream_stamps_t *stamps = run->stamps;
    if (stamps && stamps->open) return; // it goes on with a command
    stamps = stamps_reserve(run);
    if (!stamps) return;
    bool joins = stamps->count && stamps->load == queue_load(run);
    stamps->open = joins || time_put(run, stamps);
}

void stream_stamp_end(stream_run_t *run, const keel_cmd_execute_t *execute,
                      const keel_command_t *command)
{
    stream_stamps_t *stamps = run->stamps;
    if (!stamps || !stamps->open) return;
    stamps->open = false;
    uint32_t begin = stamps->times_count - 1;
    if (stamps->load == queue_load(run) || !time_put(run, stamps)) return; // it was nothing
    stamps->of[stamps->count++] = (stamped_t){execute, command, begin};
}

void stream_clock_trace(stream_device_t *device)
{
    enum { TRIES = 5 };
    uint64_t best = UINT64_MAX, device_ns = 0, host_ns = 0;
    for (int i = 0; i < TRIES; i++) {
        uint64_t now_ns, before = keel_now_ns();
        keel_status_t status = stream_device_clock(&device->base, &now_ns);
        uint64_t took = keel_now_ns() - before;
        keel_status_release(status);
        if (status || took >= best) continue;
        best = took;
        device_ns = now_ns;
        host_ns = before + took / 2;
    }
    if (best == UINT64_MAX) return;
    if (!device->traced) device->traced = trace_clock_make();
    if (device->traced) trace_pair(device->traced, device_ns, host_ns, best / 2);
}
