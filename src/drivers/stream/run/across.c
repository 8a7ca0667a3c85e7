// SPDX-License-Identifier: Apache-2.0
// Copies to and from memory of other devices. The stream makes those itself whose other side it
// reaches: memory of a peer, and memory of the host, once it is page-locked for the device
// (kit/view.h). For all others the run is parked, and the two devices get submissions
// (kit/across.h).
#include "base/status.h"
#include "drivers/stream/run/run.h"
#include "kit/view.h"

bool stream_device_peers(keel_device_t *base, keel_device_t *other)
{
    stream_device_t *device = stream_device(base);
    if (!stream_device_has(device, STREAM_PEERS)) return false;
    if (other->ops->queue_submit != base->ops->queue_submit) return false; // of another core
    const stream_device_t *peer = stream_device(other);
    return peer->api == device->api && device->api->peers(device->vendor, peer->vendor);
}

// The other device stays open until the stream is done with its memory. Copies one after the other
// of one device visit it once.
static keel_status_t across_visit(stream_run_t *run, keel_cmd_across_t *c)
{
    keel_device_t *other = c->other->device;
    keel_status_t why = NULL;
    if (run->reach.visited == other) return NULL;
    c->visits = device_visit(other, &why);
    if (!c->visits) return why;
    run->visits++;
    run->reach.visited = other;
    return NULL;
}

// The copy is not on the stream.
static void across_leave(stream_run_t *run, keel_cmd_across_t *c)
{
    if (!c->visits) return;
    c->visits = false;
    run->visits--;
    run->reach = (stream_reach_t){0};
    device_leave(c->other->device);
}

// How many of `size` bytes at `at` are page-locked in one piece. All that follows of their buffer
// is asked for, which the next copies may be of.
static uint64_t host_stretch(stream_run_t *run, const keel_buffer_t *root, uintptr_t at,
                             uint64_t size)
{
    stream_reach_t *reach = &run->reach;
    if (at < reach->start || at >= reach->end) {
        uintptr_t end = (uintptr_t)atomic_load(&root->data) + root->size;
        reach->start = at;
        reach->end = at + pages_stretch(&stream_run_device(run)->pages, (void *)at, end - at);
    }
    return size < reach->end - at ? size : reach->end - at;
}

// Memory of the host may be locked in several pieces, which are copied one by one.
static keel_status_t host_copy(stream_run_t *run, const keel_ref_t *host, const keel_ref_t *own,
                               bound_copy_t copy)
{
    const stream_context_t context = {.device = stream_run_device(run)};
    bool ours = stream_copy_is_ours(&context, own, NULL);
    uintptr_t at = (uintptr_t)ref_host(host);
    for (uint64_t left = copy.size; left; left -= copy.size) {
        copy.size = host_stretch(run, host->buffer->root, at, left);
        KEEL_TRY(stream_copy(run, &copy, ours));
        copy.source += copy.size;
        copy.target += copy.size;
        at += copy.size;
    }
    return NULL;
}

static keel_status_t across_copy(stream_run_t *run, const keel_cmd_across_t *c, uint64_t other)
{
    stream_queue_t *queue = stream_run_queue(run);
    stream_device_t *device = stream_run_device(run);
    bool out = c->copy.target.buffer == c->other;
    const keel_ref_t *own = out ? &c->copy.source : &c->copy.target;
    bound_t bound;
    KEEL_TRY(bind_now(NULL, own, &bound));
    bound_copy_t copy = {out ? other : bound.address, out ? bound.address : other, bound.length};
    stream_run_follow(run, STREAM_TAIL_OWN);
    if (buffer_is_host(c->other))
        return host_copy(run, out ? &c->copy.target : &c->copy.source, own, copy);
    stream_vendor_t *peer = stream_device(c->other->device)->vendor;
    return device->api->copy_peer(device->vendor, stream_queue_onto_copy(queue), &copy,
                                  out ? peer : device->vendor, out ? device->vendor : peer);
}

// Where the device sees the root of memory of the host. *refused: it cannot be page-locked.
static keel_status_t host_find(stream_run_t *run, keel_buffer_t *root, uint64_t *address,
                               stream_step_t *step, bool *refused)
{
    stream_device_t *device = stream_run_device(run);
    stream_reach_t *reach = &run->reach;
    *address = reach->address;
    if (reach->root == root) return NULL;
    view_state_t state = view_find(root, &device->base, address);
    if (state == VIEW_THERE) {
        reach->root = root;
        reach->address = *address;
        return NULL;
    }
    *refused = state == VIEW_REFUSED && !root->staging;
    if (*refused) return NULL;
    if (stream_queue_puts_off(stream_run_queue(run))) { // to lock it may take long
        *step = STREAM_STEP_AGAIN;
        return NULL;
    }
    keel_status_t status = view_make(root, &device->base, address);
    *refused = status && !root->staging && keel_status_code(status) != KEEL_DEVICE_LOST;
    if (!*refused) return status;
    keel_status_release(status);
    return NULL;
}

// Whether the vendor goes wrong where a stream brings memory of the host to another device.
static bool goes_astray(const stream_run_t *run, const keel_cmd_across_t *c)
{
    return stream_run_device(run)->limits.quirks.host_stays && c->copy.target.buffer == c->other &&
           !buffer_is_host(c->other) && buffer_is_host(c->copy.source.buffer);
}

// Where the device sees the other side. *beyond: nowhere, or by a way that goes
// wrong.
static keel_status_t other_find(stream_run_t *run, const keel_cmd_across_t *c, uint64_t *address,
                                stream_step_t *step, bool *beyond)
{
    keel_buffer_t *buffer = c->other;
    const keel_ref_t *ref = c->copy.source.buffer == buffer ? &c->copy.source : &c->copy.target;
    bound_t bound;
    *beyond = goes_astray(run, c);
    if (*beyond) return NULL;
    if (stream_device_peers(&stream_run_device(run)->base, buffer->device)) {
        KEEL_TRY(bind_now(NULL, ref, &bound));
        *address = bound.address;
        return NULL;
    }
    *beyond = !buffer_is_host(buffer);
    if (*beyond) return NULL;
    KEEL_TRY(host_find(run, buffer->root, address, step, beyond));
    *address += buffer->offset + ref->offset;
    return NULL;
}

static void across_done(keel_submission_t *submission, keel_cmd_across_t *c, keel_status_t status)
{
    stream_run_t *run = (stream_run_t *)(void *)submission;
    if (status) stream_run_fail(run, submission_blame(submission, NULL, &c->copy.head, status));
    stream_run_done(run);
}

// Has others make the copy, when all that was issued is over.
static void across_pass_on(stream_run_t *run, keel_cmd_across_t *c, stream_step_t *step)
{
    if (run->tail) {
        stream_run_park(run);
        *step = STREAM_STEP_PARKED;
    } else if (stream_queue_puts_off(stream_run_queue(run))) { // staging may have to be made
        *step = STREAM_STEP_AGAIN;
    } else {
        pending_add(&run->pending);
        across_begin(&run->base, c, across_done);
    }
}

keel_status_t stream_across(stream_run_t *run, keel_cmd_across_t *c, stream_step_t *step)
{
    stream_device_t *device = stream_run_device(run);
    uint64_t other = 0;
    bool beyond = false;
    if (!c->copy.source.length) return NULL;
    KEEL_TRY(across_visit(run, c));
    keel_status_t status = other_find(run, c, &other, step, &beyond);
    if (!status && !beyond && *step == STREAM_STEP_DONE) {
        status = across_copy(run, c, other);
        if (!status && device->options.serial)
            status = device->api->stream_drain(device->vendor, stream_run_queue(run)->stream);
        return stream_device_note(device, status);
    }
    across_leave(run, c);
    if (beyond) across_pass_on(run, c, step);
    return stream_device_note(device, status);
}
