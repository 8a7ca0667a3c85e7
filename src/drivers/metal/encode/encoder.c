// SPDX-License-Identifier: Apache-2.0
// Encoders of the command buffer that a run fills. Nothing relies on Metal's tracking of hazards: a
// barrier between dispatches is a memory barrier. Between encoders, each of which waits for the one
// before, it is a fence. An encoder stays open until another kind is needed, or a barrier comes
// between blits.
#include "base/status.h"
#include "drivers/metal/encode/encode.h"
#include "drivers/metal/queue/queue.h"

static keel_status_t exhausted(const char *what)
{
    return KEEL_ERROR(KEEL_RESOURCE_EXHAUSTED, "Metal has no %s left", what);
}

void metal_encoder_end(metal_run_t *run)
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
    metal_encoder_end(run);
    return NULL;
}

static id encoder_make(metal_run_t *run, metal_encoder_t kind)
{
    const metal_device_t *device = metal_run_device(run);
    if (run->timed.wanted) return metal_sampled_encoder(run, kind);
    if (kind == METAL_BLIT) return mtl_blit_encoder(device->api, run->command);
    return mtl_compute_encoder(device->api, run->command, device->dispatches);
}

static keel_status_t encoder_open(metal_run_t *run, metal_encoder_t kind)
{
    const metal_api_t *api = metal_run_device(run)->api;
    KEEL_TRY(metal_encoder_hand_over(run));
    lock_enter(metal_turn(run));
    run->encoder = encoder_make(run, kind);
    lock_leave(metal_turn(run));
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
