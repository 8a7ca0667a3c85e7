// SPDX-License-Identifier: Apache-2.0
// Times by the GPU's own clock, for timestamps and for a trace: where an encoder begins and ends,
// in a counter sample buffer.
//
// Apple's GPUs tell no more than that, so a timestamp is an encoder of its own that does next to
// nothing; what comes after it copies the time to where it belongs. In a trace each command has an
// encoder of its own. Their clock is in ns. Others are not used: they count otherwise, and differ.
//
// Where there are none, or they tell 0 (macOS 26 has done so), a timestamp is when the command
// buffer before it has ended (GPUEndTime), and in a trace each command has a command buffer of its
// own. So before the first timestamp of a device the clock is tried, by a sample that goes nowhere.
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/status.h"
#include "drivers/metal/encode/encode.h"
#include "drivers/metal/executable/executable.h"
#include "drivers/metal/memory/memory.h"
#include "kit/submission.h"
#include "kit/traced.h"

enum { RESOLVED_AT = 256 }; // multiples of this

// One command with its times.
struct metal_stamp_t {
    const keel_command_t *command; // NULL: a timestamp
    const keel_cmd_execute_t *execute;
    bool sampled;   // its times are samples, from this one on; else those of its command buffer
    uint32_t index; // in the run's slice
};

keel_status_t metal_device_clock(keel_device_t *base, uint64_t *now_ns)
{
    metal_device_t *device = metal_device(base);
    uint64_t host = 0;
    *now_ns = keel_now_ns();
    if (!device->samples.set) return NULL; // else it is the GPU's for good, also without samples
    void *pool = metal_enter(device->api);
    mtl_timestamps(device->api, device->device, &host, now_ns);
    metal_leave(device->api, pool);
    return NULL;
}

static bool stamps_need(metal_run_t *run)
{
    if (!run->stamps) run->stamps = mem_alloc(METAL_SLICE * sizeof *run->stamps);
    return run->stamps && run->stamp_count < METAL_SLICE;
}

// Whether the command buffer at hand has room for so many times.
static bool samples_need(metal_run_t *run, uint32_t count)
{
    return metal_samples_need(run, count) && stamps_need(run);
}

// A fence is for memory. On some GPUs a sample is written later than what the encoder has done, and
// only an event waits for it.
static keel_status_t stamp_order(metal_run_t *run)
{
    metal_device_t *device = metal_run_device(run);
    const metal_api_t *api = device->api;
    id event = device->samples.order[run->slice].event;
    if (!event) event = mtl_new_shared_event(api, device->device);
    if (!event) return KEEL_ERROR(KEEL_RESOURCE_EXHAUSTED, "Metal has no event left");
    device->samples.order[run->slice].event = event; // the slice is the run's
    uint64_t value = ++device->samples.order[run->slice].value;
    KEEL_TRY(metal_encoder_hand_over(run));
    mtl_encode_signal(api, run->command, event, value);
    mtl_encode_wait(api, run->command, event, value);
    return NULL;
}

// The time goes to where the host and the GPU see it, or right to the target.
static keel_status_t stamp_resolve(metal_run_t *run, uint32_t index, const metal_place_t *target)
{
    const metal_api_t *api = metal_run_device(run)->api;
    metal_place_t at = *target;
    bool direct = target->offset % RESOLVED_AT == 0;
    if (!direct) {
        struct metal_memory_t *memory;
        KEEL_TRY(metal_stage(run, sizeof(uint64_t), &memory));
        at = (metal_place_t){metal_memory_buffer(memory), 0, sizeof(uint64_t), NULL};
    }
    KEEL_TRY(stamp_order(run));
    KEEL_TRY(metal_encoder_need(run, METAL_BLIT));
    mtl_resolve(api, run->encoder, run->samples, (metal_range_t){metal_sample_at(run, index), 1},
                at.buffer, at.offset);
    if (direct) return NULL;
    run->base.barrier = true;
    return metal_transfer_copy(run, &at, target);
}

bool metal_stamp_can(metal_run_t *run)
{
    return !run->guarded && samples_need(run, 1);
}

static keel_status_t sample_encode(metal_run_t *run)
{
    metal_device_t *device = metal_run_device(run);
    struct metal_memory_t *memory;
    KEEL_TRY(metal_stage(run, METAL_WORD, &memory)); // an encoder that does nothing has no time
    run->timed.both = false;
    run->timed.wanted = true;
    KEEL_TRY(metal_encoder_need(run, METAL_BLIT));
    mtl_fill_buffer(device->api, run->encoder, metal_memory_buffer(memory),
                    (metal_range_t){0, METAL_WORD}, 0);
    run->stamps[run->stamp_count++] = (metal_stamp_t){.sampled = true, .index = run->sampled};
    run->sampled++;
    return NULL;
}

bool metal_stamp_try(metal_run_t *run, keel_status_t *status)
{
    if (atomic_load(&metal_run_device(run)->samples.tried)) return false;
    *status = sample_encode(run);
    return !*status;
}

keel_status_t metal_stamp(metal_run_t *run, const metal_place_t *target)
{
    uint32_t index = run->sampled;
    KEEL_TRY(sample_encode(run));
    return stamp_resolve(run, index, target);
}

bool metal_is_traced(const metal_run_t *run)
{
    return trace_is_on() && !trace_is_paused() && metal_run_device(run)->clock.traced;
}

bool metal_trace_begin(metal_run_t *run)
{
    run->timed.wanted = run->timed.both = false;
    if (!metal_is_traced(run)) return true;
    run->timed.wanted = run->timed.both = samples_need(run, 2);
    return run->timed.both || (!run->base.now && !run->base.before);
}

void metal_trace_end(metal_run_t *run, const keel_command_t *command,
                     const keel_cmd_execute_t *execute)
{
    bool begun = !run->timed.wanted; // it has an encoder, or its command buffer is its own
    run->timed.wanted = false;
    if (!begun || !run->base.now || !metal_is_traced(run) || !stamps_need(run)) return;
    run->stamps[run->stamp_count++] = (metal_stamp_t){
        .command = command, .execute = execute, .sampled = run->timed.both, .index = run->sampled};
    if (run->timed.both) run->sampled += 2;
}

static void stamp_trace(const metal_run_t *run, const metal_stamp_t *stamp, uint64_t start,
                        uint64_t end)
{
    const keel_cmd_execute_t *execute = stamp->execute;
    const keel_commands_t *commands =
        execute ? execute->recording->commands : &run->base.submission.commands;
    _Atomic uint32_t *kernel = NULL;
    if (stamp->command->kind == KEEL_CMD_DISPATCH) {
        const keel_cmd_dispatch_t *dispatch = (const void *)stamp->command;
        kernel = &((metal_kernel_t *)(uintptr_t)dispatch->kernel)->traced;
    }
    trace_part_t part = traced_part(commands, stamp->command, kernel);
    if (part.op == TRACE_OP_COPY)
        part.count = traced_bytes(stamp->command, execute ? execute->bindings : NULL);
    trace_part_timed((trace_times_t){metal_run_device(run)->clock.traced, start, end},
                     submission_traced(&run->base.submission), part);
}

static bool is_time(uint64_t time)
{
    return time != 0 && time != UINT64_MAX;
}

// Whether the GPU's clock is used from now on. The first sample that is missing decides.
static void clock_judge(metal_device_t *device, bool good)
{
    atomic_store(&device->samples.tried, true);
    if (!good && !atomic_exchange(&device->samples.bad, true))
        log_say(KEEL_LOG_WARNING, "the GPU samples no times: the host takes them from here on");
}

static void stamp_settle(metal_run_t *run, const metal_stamp_t *stamp, const uint64_t *times)
{
    const uint64_t offset = metal_run_device(run)->clock.offset; // of the clocks
    bool good = stamp->sampled && times && is_time(times[stamp->index]);
    if (stamp->sampled) clock_judge(metal_run_device(run), good);
    if (!stamp->command) return;
    if (good)
        stamp_trace(run, stamp, times[stamp->index], times[stamp->index + 1]);
    else
        stamp_trace(run, stamp, run->started_ns + offset, run->ended_ns + offset);
}

// Metal's times are on the host's clock, in seconds.
static uint64_t ns_of(double seconds)
{
    return seconds > 0 ? (uint64_t)(seconds * 1e9) : 0;
}

void metal_stamps_settle(metal_run_t *run)
{
    const metal_api_t *api = metal_run_device(run)->api;
    const uint64_t *times = NULL;
    run->started_ns = ns_of(mtl_start_time(api, run->command));
    run->ended_ns = ns_of(mtl_end_time(api, run->command));
    if (run->sampled)
        times = mtl_bytes(
            api, mtl_resolve_range(api, run->samples,
                                   (metal_range_t){metal_sample_at(run, 0), run->sampled}));
    for (uint32_t i = 0; i < run->stamp_count; i++) stamp_settle(run, &run->stamps[i], times);
}

uint64_t metal_stamp_late(const metal_run_t *run)
{
    uint64_t now = 0;
    if (metal_run_device(run)->samples.set) {
        keel_status_release(metal_device_clock(run->base.submission.queue->device, &now));
        return now;
    }
    now = keel_now_ns();
    bool is_sane = run->ended_ns <= now && now - run->ended_ns < 1000000000u;
    return is_sane ? run->ended_ns : now;
}

void metal_stamps_give_back(metal_run_t *run)
{
    metal_samples_give_back(run);
    mem_free(run->stamps);
    run->stamps = NULL;
    run->stamp_count = run->sampled = 0;
    run->timed.wanted = run->timed.both = false; // one that failed may have left it so
    run->ended_ns = 0;
}

void metal_clock_trace(metal_device_t *device)
{
    uint64_t device_ns = 0, before = keel_now_ns();
    if (!trace_is_on() || !device->device) return;
    keel_status_release(metal_device_clock(&device->base, &device_ns));
    uint64_t half = (keel_now_ns() - before) / 2;
    if (!device->clock.traced) {
        device->clock.traced = trace_clock_make();
        device->clock.offset = device_ns - (before + half);
    }
    if (device->clock.traced) trace_pair(device->clock.traced, device_ns, before + half, half);
}
