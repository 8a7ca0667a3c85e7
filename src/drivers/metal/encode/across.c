// SPDX-License-Identifier: Apache-2.0
// Copies to and from memory of other devices that the GPU makes by itself (kit/run.h): memory of a
// device that is the same GPU, opened once more, and memory that the host sees, once Metal has
// taken it as a buffer (kit/view.h).
#include "kit/across.h"
#include "base/memory.h"
#include "base/status.h"
#include "drivers/metal/encode/encode.h"
#include "drivers/metal/memory/memory.h"
#include "kit/view.h"

bool metal_device_peers(keel_device_t *base, keel_device_t *other)
{
    if (other->ops->queue_submit != base->ops->queue_submit) return false; // of another driver
    return metal_device(base)->device == metal_device(other)->device;
}

static bool is_out(const keel_cmd_across_t *c)
{
    return c->copy.target.buffer == c->other;
}

static const keel_ref_t *other_ref(const keel_cmd_across_t *c)
{
    return is_out(c) ? &c->copy.target : &c->copy.source;
}

// Where the GPU sees the other side.
static keel_status_t other_find(metal_run_t *run, const keel_cmd_across_t *c, metal_place_t *place,
                                run_across_t *how)
{
    metal_device_t *device = metal_run_device(run);
    const keel_ref_t *ref = other_ref(c);
    uint64_t address = 0;
    *how = RUN_ACROSS_DONE;
    if (metal_device_peers(&device->base, c->other->device)) return metal_place(ref, NULL, place);
    *how = RUN_ACROSS_BEYOND;
    if (!buffer_is_host(c->other)) return NULL;
    view_state_t state = view_find(c->other->root, &device->base, &address);
    if (state == VIEW_NONE) *how = RUN_ACROSS_PREPARES;
    if (state != VIEW_THERE) return NULL;
    *how = RUN_ACROSS_DONE;
    return metal_place_at(device, address + c->other->offset + ref->offset, ref->length, place);
}

static keel_status_t copy_encode(metal_run_t *run, const keel_cmd_across_t *c,
                                 const metal_place_t *other)
{
    metal_place_t own;
    KEEL_TRY(metal_place(is_out(c) ? &c->copy.source : &c->copy.target, NULL, &own));
    return is_out(c) ? metal_transfer_copy(run, &own, other)
                     : metal_transfer_copy(run, other, &own);
}

keel_status_t metal_across(run_t *base, const keel_cmd_across_t *c, run_across_t *how)
{
    metal_run_t *run = (metal_run_t *)(void *)base;
    metal_place_t place;
    KEEL_TRY(other_find(run, c, &place, how));
    return *how == RUN_ACROSS_DONE ? copy_encode(run, c, &place) : NULL;
}
