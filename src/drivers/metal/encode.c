// SPDX-License-Identifier: Apache-2.0
// What the GPU does for a run, in encoders of one command buffer. Nothing relies on Metal's
// tracking of hazards: a barrier between dispatches is a memory barrier. Between encoders, each of
// which waits for the one before, it is a fence. An encoder stays open until another kind is
// needed, or a barrier comes between blits.
#include <string.h>

#include "base/status.h"
#include "drivers/metal/metal.h"
#include "kit/submission.h"

enum {
    GROUP = 256,          // threads of a group of the driver's own kernels, at most
    STEP = 32,            // and a multiple of this
    GROUPS = 1024,        // at most; each thread then takes several units
    MANY_BYTES = 1 << 18, // from so many on, bytes are staged and copied
    SMALL_COPY = 1 << 16  // up to so many bytes a kernel copies where a compute encoder is open
};

static keel_status_t exhausted(const char *what)
{
    return KEEL_ERROR(KEEL_RESOURCE_EXHAUSTED, "Metal has no %s left", what);
}

static void encoder_end(metal_run_t *run)
{
    if (run->kind == METAL_NONE) return;
    mtl_end_encoding(metal_run_device(run)->api, run->encoder);
    run->kind = METAL_NONE;
    run->encoder = NULL;
}

// A command buffer to encode into.
static keel_status_t command_need(metal_run_t *run)
{
    const metal_api_t *api = metal_run_device(run)->api;
    if (run->command) return NULL;
    metal_scope_begin(run);
    run->command =
        mtl_retain(api, mtl_command_buffer(api, metal_queue(run->base.submission.queue)->queue));
    run->committed = run->fenced = run->base.barrier = false;
    if (!run->command) {
        metal_scope_end(run);
        return exhausted("command buffer");
    }
    metal_ahead_events(run);
    return NULL;
}

// They wait for the fence.
keel_status_t metal_encoder_hand_over(metal_run_t *run)
{
    if (run->kind == METAL_NONE) return NULL;
    if (!run->fence) run->fence = metal_fence_take(run);
    if (!run->fence) return exhausted("fence");
    mtl_update_fence(metal_run_device(run)->api, run->encoder, run->fence);
    run->fenced = true;
    encoder_end(run);
    return NULL;
}

static id encoder_make(metal_run_t *run, metal_encoder_t kind)
{
    const metal_device_t *device = metal_run_device(run);
    if (run->timed.wanted) return metal_stamped_encoder(run, kind);
    if (kind == METAL_BLIT) return mtl_blit_encoder(device->api, run->command);
    return mtl_compute_encoder(device->api, run->command, device->dispatches);
}

// An M2 was seen to crash where two threads opened encoders, or committed, on one queue.
static lock_t *turn_of(metal_run_t *run)
{
    return &metal_queue(run->base.submission.queue)->turn;
}

static keel_status_t encoder_open(metal_run_t *run, metal_encoder_t kind)
{
    const metal_api_t *api = metal_run_device(run)->api;
    KEEL_TRY(metal_encoder_hand_over(run));
    lock_enter(turn_of(run));
    run->encoder = encoder_make(run, kind);
    lock_leave(turn_of(run));
    if (!run->encoder) return exhausted("encoder");
    run->kind = kind;
    run->base.barrier = false;
    metal_settings_forget(run);
    if (run->fenced) mtl_wait_for_fence(api, run->encoder, run->fence);
    metal_ahead_fences(run);
    return NULL;
}

// An encoder of that kind, behind what the last barrier is for.
keel_status_t metal_encoder_need(metal_run_t *run, metal_encoder_t kind)
{
    KEEL_TRY(command_need(run));
    run->base.now = true;
    bool opens = run->kind != kind || run->timed.wanted;
    if (opens || (run->base.barrier && kind == METAL_BLIT)) {
        KEEL_TRY(encoder_open(run, kind));
    } else if (run->base.barrier) {
        mtl_memory_barrier(metal_run_device(run)->api, run->encoder, METAL_SCOPE_BUFFERS);
        run->base.barrier = false;
    }
    return metal_guard_need(run);
}

// What the kernels of builtin.c take at index 1.
typedef struct range_t {
    uint64_t count;
    uint32_t pattern, unused;
} range_t;

// A kernel of the driver's own; what it reads is bound at index 2.
static void builtin_dispatch(metal_run_t *run, metal_builtin_t kernel, const metal_place_t *target,
                             range_t range)
{
    metal_device_t *device = metal_run_device(run);
    const metal_api_t *api = device->api;
    uint64_t groups = (range.count + GROUP - 1) / GROUP;
    uint64_t threads = groups > 1 ? GROUP : (range.count + STEP - 1) / STEP * STEP;
    metal_pipeline_set(run, device->builtins[kernel]);
    mtl_set_buffer(api, run->encoder, target->buffer, target->offset, 0);
    mtl_set_bytes(api, run->encoder, &range, sizeof range, 1);
    metal_indices_taken(run);
    metal_launch(run, (metal_size_t){groups < GROUPS ? groups : GROUPS, 1, 1},
                 (metal_size_t){threads, 1, 1});
}

static bool is_words(const metal_place_t *place)
{
    return (place->offset | place->length) % 4 == 0;
}

static keel_status_t fill_encode(metal_run_t *run, const keel_cmd_fill_t *c,
                                 const keel_cmd_execute_t *execute)
{
    const metal_api_t *api = metal_run_device(run)->api;
    keel_bound_t bound;
    uint32_t pattern;
    metal_place_t target;
    KEEL_TRY(keel_bind_fill(c, execute, &bound, &pattern));
    KEEL_TRY(metal_place(&c->target, execute, &target));
    if (!target.length) return NULL;
    bool words = is_words(&target), bytes = pattern == (pattern & 255) * 0x01010101u;
    if (words && bytes && run->kind != METAL_COMPUTE && !run->guarded) {
        KEEL_TRY(metal_encoder_need(run, METAL_BLIT));
        mtl_fill_buffer(api, run->encoder, target.buffer,
                        (metal_range_t){target.offset, target.length}, (uint8_t)pattern);
        return NULL;
    }
    KEEL_TRY(metal_encoder_need(run, METAL_COMPUTE));
    range_t range = {words ? target.length / 4 : target.length, pattern, 0};
    builtin_dispatch(run, words ? METAL_FILL_WORDS : METAL_FILL, &target, range);
    return NULL;
}

// By memory that both see, which the run keeps.
static keel_status_t bytes_stage(metal_run_t *run, const void *bytes, const metal_place_t *target)
{
    struct metal_memory_t *memory;
    KEEL_TRY(metal_stage(run, target->length, &memory));
    metal_place_t source = {metal_memory_buffer(memory), 0, target->length, NULL};
    memcpy(mtl_contents(metal_run_device(run)->api, source.buffer), bytes, target->length);
    return metal_encode_copy(run, &source, target);
}

// By constants, as many at a time as an encoder takes.
keel_status_t metal_encode_bytes(metal_run_t *run, const void *bytes, const metal_place_t *target)
{
    const metal_api_t *api = metal_run_device(run)->api;
    const unsigned char *data = bytes;
    if (!target->length) return NULL;
    if (target->length >= MANY_BYTES) return bytes_stage(run, bytes, target);
    for (unsigned long done = 0; done < target->length;) {
        KEEL_TRY(metal_encoder_need(run, METAL_COMPUTE));
        unsigned long size = target->length - done;
        if (size > METAL_BYTES) size = METAL_BYTES;
        metal_place_t part = {target->buffer, target->offset + done, size, NULL};
        mtl_set_bytes(api, run->encoder, data + done, size, 2);
        builtin_dispatch(run, METAL_UPDATE, &part, (range_t){size, 0, 0});
        done += size;
    }
    return NULL;
}

static keel_status_t update_encode(metal_run_t *run, const keel_cmd_update_t *c,
                                   const keel_cmd_execute_t *execute)
{
    metal_place_t target;
    KEEL_TRY(metal_place(&c->target, execute, &target));
    return metal_encode_bytes(run, keel_update_data(c, execute), &target);
}

keel_status_t metal_encode_copy(metal_run_t *run, const metal_place_t *source,
                                const metal_place_t *target)
{
    const metal_api_t *api = metal_run_device(run)->api;
    if (!target->length) return NULL;
    bool words = is_words(source) && is_words(target);
    bool stays = run->guarded || (run->kind == METAL_COMPUTE && target->length <= SMALL_COPY);
    if (words && !stays) {
        KEEL_TRY(metal_encoder_need(run, METAL_BLIT));
        mtl_copy_buffer(api, run->encoder, source->buffer, source->offset, target->buffer,
                        target->offset, target->length);
        return NULL;
    }
    KEEL_TRY(metal_encoder_need(run, METAL_COMPUTE));
    mtl_set_buffer(api, run->encoder, source->buffer, source->offset, 2);
    builtin_dispatch(run, words ? METAL_COPY_WORDS : METAL_COPY, target,
                     (range_t){words ? target->length / 4 : target->length, 0, 0});
    return NULL;
}

keel_status_t metal_encode_counts(metal_run_t *run, const metal_place_t *source,
                                  const metal_place_t *target)
{
    metal_device_t *device = metal_run_device(run);
    const metal_api_t *api = device->api;
    range_t range = {device->base.caps.max_groups, 0, 0};
    KEEL_TRY(metal_encoder_need(run, METAL_COMPUTE));
    metal_pipeline_set(run, device->builtins[METAL_COUNTS]);
    mtl_set_buffer(api, run->encoder, target->buffer, target->offset, 0);
    mtl_set_bytes(api, run->encoder, &range, sizeof range, 1);
    mtl_set_buffer(api, run->encoder, source->buffer, source->offset, 2);
    metal_indices_taken(run);
    metal_launch(run, (metal_size_t){1, 1, 1}, (metal_size_t){STEP, 1, 1});
    mtl_memory_barrier(api, run->encoder, METAL_SCOPE_BUFFERS);
    return NULL;
}

static keel_status_t copy_encode(metal_run_t *run, const keel_cmd_copy_t *c,
                                 const keel_cmd_execute_t *execute)
{
    keel_bound_t ignored[2];
    metal_place_t source, target;
    KEEL_TRY(keel_bind_copy(c, execute, &ignored[0], &ignored[1]));
    KEEL_TRY(metal_place(&c->source, execute, &source));
    KEEL_TRY(metal_place(&c->target, execute, &target));
    return metal_encode_copy(run, &source, &target);
}

keel_status_t metal_encode(metal_run_t *run, const keel_command_t *command,
                           const keel_cmd_execute_t *execute)
{
    const void *c = command;
    switch (command->kind) {
    case KEEL_CMD_FILL: return fill_encode(run, c, execute);
    case KEEL_CMD_UPDATE: return update_encode(run, c, execute);
    case KEEL_CMD_DISPATCH: return metal_dispatch(run, c, execute);
    default: return copy_encode(run, c, execute);
    }
}

// On a thread of Metal's. The device stays until its last handler has counted down.
static void command_completed(metal_block_t *block, id command)
{
    (void)command;
    metal_run_t *run = block->user;
    metal_device_t *device = metal_run_device(run);
    metal_stop_end(run);
    run_handed_back(&run->base);
    atomic_fetch_sub(&device->runs.handlers, 1);
}

static void command_release(metal_run_t *run)
{
    mtl_release(metal_run_device(run)->api, run->command);
    run->command = NULL;
    run->counted = run->stamp_count = run->sampled = 0;
    run->base.before = run->base.now = run->base.barrier = run->committed = false;
}

// Whether it is to be committed. What is cancelled from here on is told to stop.
static bool may_commit(metal_run_t *run)
{
    metal_stop_begin(run);
    if (run->guarded && submission_is_cancelled(&run->base.submission))
        run_fail(&run->base, submission_cancelled(&run->base.submission));
    if (!atomic_load(&run->base.failure)) return true;
    metal_stop_end(run);
    return false;
}

void metal_commit(run_t *base)
{
    metal_run_t *run = (metal_run_t *)(void *)base;
    metal_device_t *device = metal_run_device(run);
    if (!run->command || run->committed) return;
    metal_promise_begin(run);
    encoder_end(run);
    if (base->promise) metal_promise_signal(run);
    metal_events_signal(run);
    if (!may_commit(run)) {
        command_release(run);
        metal_scope_end(run);
        return;
    }
    metal_block_t block = metal_block(device->api, command_completed, run);
    mtl_on_completed(device->api, run->command, &block);
    run->committed = true;
    atomic_fetch_add(&device->runs.handlers, 1);
    run_begin(&run->base);
    lock_t *turn = turn_of(run);
    lock_enter(turn);
    mtl_commit(device->api, run->command);
    lock_leave(turn);
    metal_scope_end(run);
    if (base->promise) submission_promise(&base->submission, base->promise);
}

// MTLCommandBufferError. Some mean that the process may use the GPU no more.
static keel_code_t code_of(long error)
{
    switch (error) {
    case 4:  // access revoked
    case 7:  // not permitted
    case 11: // device removed
        return KEEL_DEVICE_LOST;
    case 8: return KEEL_RESOURCE_EXHAUSTED; // out of memory
    case 2:                                 // timeout
    case 3:                                 // page fault
    case 12: return KEEL_ABORTED;           // stack overflow
    default: return KEEL_INTERNAL;
    }
}

void metal_settle(run_t *base)
{
    metal_run_t *run = (metal_run_t *)(void *)base;
    metal_device_t *device = metal_run_device(run);
    const metal_api_t *api = device->api;
    bool gone = run->committed && run->table.gone && *run->table.gone;
    metal_ahead_settle(run);
    if (!run->committed) return;
    keel_status_t status = NULL;
    if (mtl_status(api, run->command) == METAL_COMMAND_BUFFER_ERROR) {
        id error = mtl_error(api, run->command);
        long code = mtl_code(api, error);
        status = KEEL_ERROR(code_of(code), "the GPU gave up: %s (MTLCommandBufferError %ld)",
                            metal_text(api, error), code);
    }
    if (!status && gone) status = submission_cancelled(&base->submission);
    if (!status) metal_counts_settle(run);
    if (!status) metal_stamps_settle(run);
    command_release(run);
    if (!status) return;
    run_fail(&run->base, keel_status_retain(status));
    if (keel_status_code(status) == KEEL_DEVICE_LOST) metal_worker_lose(device, status);
    keel_status_release(status);
}
