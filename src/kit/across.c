// SPDX-License-Identifier: Apache-2.0
// A copy is cut into pieces if it is staged; else it is one piece. Lanes take the pieces, one after
// another each, and have a part of the staging each, so that several pieces are under way:
//
//     lane 0   device a: piece 0 in, device b: piece 0 out,  piece 4 in ...
//     lane 1   device a: piece 1 in, device b: piece 1 out ...
//
// `in` and `out` are submissions, the second of which waits for the first. When it has ended, well
// or not, the lane goes on. No thread waits, and no piece of a copy waits for another lane.
#include "kit/across.h"

#include <keel/driver/driver.h>
#include <limits.h>

#include "base/futex.h"
#include "base/live.h"
#include "base/lock.h"
#include "base/memory.h"
#include "base/status.h"
#include "kit/device.h"
#include "kit/on.h"

enum {
    PIECE = 4 << 20, // bytes
    LANES = 4,
    STAGING_PAGE = 4096,      // that it shares with no other memory
    STAGING_LEAST = 64 << 10, // bytes, of whole pages of any size; others are powers of two
    STAGING_KEPT = 64 << 20,  // by a device, together
};

// Memory of the host that is kept for copies.
typedef struct staging_t {
    struct staging_t *next;
    keel_buffer_t *buffer; // owned
} staging_t;

typedef struct lane_t {
    on_t on; // first
    on_entry_t entry;
    struct across_t *across;
    uint64_t place;         // in the staging
    _Atomic uint32_t turns; // the call that begins a wait, and its end: the second goes on
} lane_t;

typedef struct across_t {
    keel_submission_t *submission;
    keel_cmd_across_t *c;
    across_fn *done;
    keel_queue_t *in, *out; // retained; in NULL: `out` makes the copy alone
    staging_t *staging;     // owned; NULL: there is none
    uint32_t lane_count;
    uint64_t piece;                      // bytes
    _Atomic uint64_t next;               // where the next piece begins
    _Atomic uint32_t left;               // lanes that have not ended, and the call that begins them
    struct keel_status *_Atomic failure; // owned: the first
    lane_t lanes[LANES];
} across_t;

bool device_visit(keel_device_t *device, keel_status_t *why)
{
    // seq_cst, as the load: device_wait_alone sees us, or we see that the device has ended.
    atomic_fetch_add(&device->guests, 1);
    keel_status_t ended = atomic_load(&device->ended);
    if (!ended) return true;
    *why = keel_status_retain(ended);
    device_leave(device);
    return false;
}

void device_leave(keel_device_t *device)
{
    if (atomic_fetch_sub(&device->guests, 1) == 1 && atomic_load(&device->ended))
        futex_wake(&device->guests, INT_MAX);
}

void device_wait_alone(keel_device_t *device)
{
    uint32_t guests;
    while ((guests = atomic_load(&device->guests)))
        futex_wait(&device->guests, guests, KEEL_FOREVER);
}

static bool is_peer(keel_device_t *device, keel_device_t *other)
{
    return device->ops->device_peers && device->ops->device_peers(device, other);
}

static bool has_across(const keel_device_t *device)
{
    return device->caps.bits & KEEL_CAP_COPY_ACROSS;
}

// Whether the device itself can make a copy with that buffer of another one.
static bool is_reached(keel_device_t *device, const keel_buffer_t *other)
{
    return has_across(device) && (buffer_is_host(other) || is_peer(device, other->device));
}

bool across_is_served(keel_device_t *device, const keel_buffer_t *other)
{
    return is_reached(device, other) || has_across(other->device);
}

keel_reach_how_t device_reach(keel_device_t *a, keel_device_t *b)
{
    const uint32_t host = KEEL_MEMORY_HOST_VISIBLE | KEEL_MEMORY_HOST_COHERENT;
    bool here = (a->caps.memory_types[0] & host) == host;
    bool there = (b->caps.memory_types[0] & host) == host;
    if (a == b || (has_across(a) && is_peer(a, b)) || (has_across(b) && is_peer(b, a)))
        return KEEL_REACH_PEER;
    if ((has_across(a) && there) || (has_across(b) && here)) return KEEL_REACH_HOST;
    return has_across(a) && has_across(b) ? KEEL_REACH_STAGED : KEEL_REACH_NONE;
}

// The queue that the buffer's node started with, retained.
static keel_status_t queue_of(const keel_buffer_t *buffer, keel_queue_t **queue)
{
    keel_device_t *device = buffer->device;
    keel_status_t why = NULL;
    if (!device_visit(device, &why)) return why;
    *queue = keel_queue_retain(keel_device_queue(device, buffer->node));
    device_leave(device);
    return NULL;
}

static staging_t *staging_unlink(staging_t **link)
{
    staging_t *staging = *link;
    *link = staging->next;
    return staging;
}

// The smallest one that the device has kept and that will do; NULL: there is none.
static staging_t *staging_find(keel_device_t *device, uint64_t size)
{
    staging_t **best = NULL;
    lock_enter(device_lock(device));
    for (staging_t **link = &device->staging; *link; link = &(*link)->next) {
        uint64_t has = (*link)->buffer->size;
        if (has >= size && (!best || has < (*best)->buffer->size)) best = link;
    }
    staging_t *staging = best ? staging_unlink(best) : NULL;
    lock_leave(device_lock(device));
    return staging;
}

static void staging_free(staging_t *staging)
{
    keel_buffer_release(staging->buffer);
    mem_free(staging);
}

static keel_status_t memory_import(keel_device_t *device, uint64_t size, keel_buffer_t **buffer)
{
    void *data = mem_zalloc_aligned(size, STAGING_LEAST);
    if (!data) return status_no_memory();
    const keel_external_buffer_t external = {
        .kind = KEEL_EXTERNAL_HOST,
        .handle.host = data,
        .size = size,
        .release = mem_free_aligned,
        .user = data,
    };
    const keel_buffer_options_t options = {.usage = KEEL_USAGE_TRANSFER, .name = "staging"};
    keel_status_t status = keel_buffer_import(device, &external, &options, buffer);
    if (status) mem_free_aligned(data);
    return status;
}

// Memory as an application has it, which both sides page-lock: what one vendor has allocated
// another may refuse to lock. Where none can be locked, memory of the device's.
static keel_status_t memory_make(keel_device_t *device, uint64_t size, keel_buffer_t **buffer)
{
    const keel_buffer_options_t options = {
        .size = size,
        .memory = KEEL_MEMORY_DEVICE_VISIBLE | KEEL_MEMORY_HOST_VISIBLE | KEEL_MEMORY_HOST_COHERENT,
        .usage = KEEL_USAGE_TRANSFER,
        .alignment = STAGING_PAGE,
        .name = "staging",
    };
    keel_status_t status = memory_import(device, size, buffer);
    if (!status || keel_status_code(status) == KEEL_DEVICE_LOST) return status;
    keel_status_release(status);
    return keel_buffer_create(device, &options, buffer);
}

// Memory for pieces on their way, which both sides come to.
static keel_status_t staging_take(keel_device_t *device, uint64_t size, staging_t **staging)
{
    uint64_t whole = STAGING_LEAST;
    *staging = staging_find(device, size);
    if (*staging) return NULL;
    while (whole < size) whole *= 2;
    staging_t *made = mem_zalloc(sizeof *made);
    if (!made) return status_no_memory();
    keel_status_t status = memory_make(device, whole, &made->buffer);
    if (status) {
        mem_free(made);
        return status;
    }
    made->buffer->staging = true;
    live_add(LIVE_BUFFER, -1); // it is the device's, and may stay
    *staging = made;
    return NULL;
}

// False if the device has enough of it.
static bool staging_keep(keel_device_t *device, staging_t *staging)
{
    uint64_t kept = staging->buffer->size;
    lock_enter(device_lock(device));
    for (const staging_t *s = device->staging; s; s = s->next) kept += s->buffer->size;
    bool keeps = kept <= STAGING_KEPT;
    if (keeps) {
        staging->next = device->staging;
        device->staging = staging;
    }
    lock_leave(device_lock(device));
    return keeps;
}

// To page-lock takes long, so some is kept for the next copies.
static void staging_return(staging_t *staging)
{
    keel_device_t *device = staging->buffer->device;
    keel_status_t why = NULL;
    bool keeps = false;
    if (device_visit(device, &why)) {
        keeps = staging_keep(device, staging);
        device_leave(device);
    }
    keel_status_release(why);
    if (!keeps) staging_free(staging);
}

void device_drop_staging(keel_device_t *device)
{
    while (device->staging) staging_free(staging_unlink(&device->staging));
}

static void across_fail(across_t *a, keel_status_t status)
{
    keel_status_t none = NULL;
    if (status && !atomic_compare_exchange_strong(&a->failure, &none, status))
        keel_status_release(status);
}

static void across_finish(across_t *a)
{
    keel_submission_t *submission = a->submission;
    keel_cmd_across_t *c = a->c;
    across_fn *done = a->done;
    keel_status_t failure = atomic_load(&a->failure);
    keel_queue_release(a->in);
    keel_queue_release(a->out);
    if (a->staging) staging_return(a->staging);
    mem_free(a);
    done(submission, c, failure);
}

static void lane_end(across_t *a)
{
    // acq_rel: the last one sees how the others have ended.
    if (atomic_fetch_sub_explicit(&a->left, 1, memory_order_acq_rel) == 1) across_finish(a);
}

static keel_ref_t ref_part(const keel_ref_t *ref, uint64_t at, uint64_t size)
{
    return keel_span(ref->buffer, ref->offset + at, size);
}

// An error of a device that has just been closed is that it was closed.
static keel_status_t closed_why(const keel_device_t *device, keel_status_t status)
{
    keel_status_t ended = atomic_load(&device->ended);
    if (!status || (!ended && !atomic_load(&device->closed))) return status;
    keel_status_release(status);
    return ended ? keel_status_retain(ended)
                 : KEEL_ERROR(KEEL_CANCELLED, "device '%s' was closed", device->name);
}

static keel_status_t copy_submit(keel_queue_t *queue, keel_points_t waits, keel_ref_t source,
                                 keel_ref_t target, keel_point_t *done)
{
    keel_op_t op = keel_op_copy(source, target);
    keel_status_t status = keel_queue_submit(queue, waits, &op, 1, KEEL_NO_SIGNALS, done);
    return closed_why(source.buffer->device, closed_why(target.buffer->device, status));
}

// A failure of the first copy fails the second, which waits for it.
static keel_status_t piece_submit(across_t *a, const lane_t *lane, uint64_t at, keel_point_t *done)
{
    const keel_cmd_copy_t *copy = &a->c->copy;
    uint64_t left = copy->source.length - at, size = left < a->piece ? left : a->piece;
    keel_ref_t source = ref_part(&copy->source, at, size);
    keel_ref_t target = ref_part(&copy->target, at, size);
    if (!a->staging) return copy_submit(a->out, KEEL_NO_WAITS, source, target, done);
    keel_ref_t between = keel_span(a->staging->buffer, lane->place, size);
    keel_point_t in;
    KEEL_TRY(copy_submit(a->in, KEEL_NO_WAITS, source, between, &in));
    keel_status_t status = copy_submit(a->out, KEEL_AFTER(in), between, target, done);
    if (!status) return NULL;
    across_fail(a, status);
    *done = keel_ended(in); // the staging is in use until then
    return NULL;
}

static void lane_go(lane_t *lane);

static void lane_ended(on_t *on, keel_device_t *device)
{
    lane_t *lane = (lane_t *)(void *)on;
    (void)device;
    across_fail(lane->across, on->failure);
    on_release(on);
    // acq_rel: the one that goes on sees what the other did.
    if (atomic_fetch_sub_explicit(&lane->turns, 1, memory_order_acq_rel) == 1) lane_go(lane);
}

// Takes the next piece. Waits that are over at once are gone through here, and not by lane_ended,
// so that many of them need no deep stack.
static void lane_go(lane_t *lane)
{
    across_t *a = lane->across;
    for (;;) {
        keel_point_t done;
        uint64_t at = atomic_fetch_add(&a->next, a->piece);
        if (submission_is_cancelled(a->submission))
            across_fail(a, submission_cancelled(a->submission));
        if (at >= a->c->copy.source.length || atomic_load(&a->failure)) break;
        keel_status_t status = piece_submit(a, lane, at, &done);
        if (status) {
            across_fail(a, status);
            break;
        }
        atomic_store_explicit(&lane->turns, 2, memory_order_relaxed);
        on_begin(&lane->on, KEEL_POINTS(done), KEEL_ALL, &lane->entry, lane_ended);
        // acq_rel: as in lane_ended. If that has not been called yet, the lane is no longer ours.
        if (atomic_fetch_sub_explicit(&lane->turns, 1, memory_order_acq_rel) == 2) return;
    }
    lane_end(a);
}

// Both devices work: each between the staging and its own buffer. The staging is that of a device
// whose own memory the host does not see, if one is such: it is page-locked for that device.
static keel_status_t stage(across_t *a)
{
    keel_device_t *own = a->submission->queue->device, *other = a->c->other->device;
    bool out = a->c->copy.target.buffer == a->c->other;
    keel_queue_t *ours = keel_queue_retain(a->submission->queue), *theirs = a->out;
    a->in = out ? ours : theirs;
    a->out = out ? theirs : ours;
    uint64_t length = a->piece;
    while (a->lane_count < LANES && length > (uint64_t)a->lane_count * PIECE) a->lane_count++;
    if (length > PIECE) a->piece = PIECE;
    bool seen = own->caps.memory_types[0] & KEEL_MEMORY_HOST_VISIBLE;
    keel_device_t *device = seen ? other : own;
    return closed_why(device, staging_take(device, a->lane_count * a->piece, &a->staging));
}

static keel_status_t across_init(across_t *a)
{
    const keel_cmd_copy_t *copy = &a->c->copy;
    const keel_buffer_t *other = a->c->other;
    const keel_buffer_t *own =
        copy->source.buffer == other ? copy->target.buffer : copy->source.buffer;
    KEEL_TRY(queue_of(other, &a->out));
    a->piece = copy->source.length;
    a->lane_count = 1;
    // Memory of the host that the driver cannot lock is staged: two devices that both cannot would
    // pass the copy on to each other.
    return !buffer_is_host(other) && is_reached(other->device, own) ? NULL : stage(a);
}

void across_begin(keel_submission_t *submission, keel_cmd_across_t *c, across_fn *done)
{
    across_t *a = mem_zalloc(sizeof *a);
    if (!a) {
        done(submission, c, status_no_memory());
        return;
    }
    a->submission = submission;
    a->c = c;
    a->done = done;
    across_fail(a, across_init(a));
    uint32_t lanes = atomic_load(&a->failure) ? 0 : a->lane_count;
    atomic_store(&a->left, lanes + 1);
    for (uint32_t i = 0; i < lanes; i++) {
        a->lanes[i].across = a;
        a->lanes[i].place = i * a->piece;
        lane_go(&a->lanes[i]);
    }
    lane_end(a);
}
