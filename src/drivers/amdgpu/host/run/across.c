// SPDX-License-Identifier: Apache-2.0
// Copies to and from memory of other devices that the GPU makes by itself (kit/run.h): it comes to
// memory of another GPU of this driver once it may use it, and to memory of the host once that is
// locked (kit/view.h).
#include "base/status.h"
#include "drivers/amdgpu/host/memory/memory.h"
#include "drivers/amdgpu/host/run/run.h"
#include "kit/view.h"

bool amdgpu_device_peers(keel_device_t *base, keel_device_t *other)
{
    if (other->ops->queue_submit != base->ops->queue_submit) return false; // of another driver
    const amdgpu_device_t *device = amdgpu_device(base), *peer = amdgpu_device(other);
    if (peer->hsa != device->hsa) return false;
    for (uint32_t i = 0; i < device->node_count; i++)
        for (uint32_t k = 0; k < peer->node_count; k++)
            if (device->agents[i].handle != peer->agents[k].handle &&
                !amdgpu_pool_is_reached(device->hsa, device->agents[i], peer->nodes[k].local))
                return false;
    return true;
}

static const keel_ref_t *other_ref(const keel_cmd_across_t *c)
{
    return c->copy.source.buffer == c->other ? &c->copy.source : &c->copy.target;
}

// Memory of a descriptor.
static bool is_mapped(const keel_buffer_t *buffer)
{
    return buffer->root->external.size && buffer->root->external.kind == KEEL_EXTERNAL_FD;
}

static bool device_has_all(const amdgpu_device_t *device, const amdgpu_device_t *of)
{
    for (uint32_t i = 0; i < of->node_count; i++)
        if (!amdgpu_device_has(device, of->agents[i])) return false;
    return true;
}

// Whether the GPUs of a device may use memory of a peer. What an application gave, all may use.
static keel_status_t access_ask(const amdgpu_device_t *device, const keel_buffer_t *buffer,
                                uint64_t address, bool *has)
{
    *has = buffer->root->external.size && buffer->root->external.kind == KEEL_EXTERNAL_HOST;
    if (*has) return NULL;
    if (is_mapped(buffer)) {
        *has = device_has_all(amdgpu_device(buffer->device), device);
        return NULL;
    }
    return amdgpu_access_ask(device, address, has);
}

keel_status_t amdgpu_peer(keel_device_t *device, const keel_cmd_across_t *c)
{
    bound_t bound;
    KEEL_TRY(bind_now(NULL, other_ref(c), &bound));
    return amdgpu_access_add(amdgpu_device(device), bound.address);
}

// Into how many pieces the memory of the host was locked.
static uint32_t pieces_count(const amdgpu_device_t *device, const unsigned char *host,
                             uint64_t left)
{
    uint32_t count = 0;
    for (; left && count <= AMDGPU_PIECES; count++) {
        uint64_t size = pages_stretch(&device->pages, host, left);
        host += size;
        left -= size;
    }
    return count;
}

// Where the GPU sees the other side.
static keel_status_t other_find(amdgpu_run_t *run, const keel_cmd_across_t *c, uint64_t *address,
                                run_across_t *how)
{
    amdgpu_device_t *device = amdgpu_run_device(run);
    const keel_ref_t *ref = other_ref(c);
    bound_t bound;
    bool has = false;
    if (amdgpu_device_peers(&device->base, c->other->device)) {
        KEEL_TRY(bind_now(NULL, ref, &bound));
        *address = bound.address;
        KEEL_TRY(access_ask(device, c->other, bound.address, &has));
        *how = has                   ? RUN_ACROSS_DONE
               : is_mapped(c->other) ? RUN_ACROSS_BEYOND // for its device's GPUs, once for all
                                     : RUN_ACROSS_PREPARES;
        return NULL;
    }
    *how = RUN_ACROSS_BEYOND;
    if (!buffer_is_host(c->other)) return NULL;
    view_state_t state = view_find(c->other->root, &device->base, address);
    *address += c->other->offset + ref->offset;
    if (state == VIEW_NONE) *how = RUN_ACROSS_PREPARES;
    if (state == VIEW_THERE && pieces_count(device, ref_host(ref), ref->length) <= AMDGPU_PIECES)
        *how = RUN_ACROSS_DONE;
    return NULL;
}

static keel_status_t copy_issue(amdgpu_run_t *run, const keel_cmd_across_t *c, uint64_t other)
{
    amdgpu_device_t *device = amdgpu_run_device(run);
    bool out = c->copy.target.buffer == c->other;
    bool host = !amdgpu_device_peers(&device->base, c->other->device);
    const unsigned char *data = host ? ref_host(other_ref(c)) : NULL;
    bound_t bound;
    KEEL_TRY(bind_now(NULL, out ? &c->copy.source : &c->copy.target, &bound));
    bound_copy_t copy = {out ? other : bound.address, out ? bound.address : other, bound.length};
    for (uint64_t left = copy.size; left; left -= copy.size) {
        copy.size = host ? pages_stretch(&device->pages, data, left) : left;
        KEEL_TRY(amdgpu_issue_copy(run, &copy));
        copy.source += copy.size;
        copy.target += copy.size;
        if (host) data += copy.size;
    }
    return NULL;
}

keel_status_t amdgpu_across(run_t *base, const keel_cmd_across_t *c, run_across_t *how)
{
    amdgpu_run_t *run = (amdgpu_run_t *)(void *)base;
    uint64_t address = 0;
    KEEL_TRY(other_find(run, c, &address, how));
    if (*how != RUN_ACROSS_DONE) return NULL;
    amdgpu_stamps_of(run, &c->copy.head, NULL);
    keel_status_t status = copy_issue(run, c, address);
    amdgpu_stamps_of(run, NULL, NULL);
    return status;
}
