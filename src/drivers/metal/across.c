// SPDX-License-Identifier: Apache-2.0
// Copies to and from memory of other devices. The GPU makes those itself whose other side it comes
// to: memory of a device that is the same GPU, opened once more, and memory that the host sees,
// once Metal has taken it as a buffer (kit/view.h). The latter may take long, so a thread of the
// device does it, and the run comes back to the command. All other copies are made by submissions
// that the two devices get (kit/across.h).
#include "kit/across.h"
#include "base/memory.h"
#include "base/status.h"
#include "drivers/metal/metal.h"
#include "kit/view.h"

// What the device's thread is to do for a copy.
typedef struct errand_t {
    chore_t chore;
    metal_run_t *run;
    keel_cmd_across_t *c;
    bool passes_on; // others make the copy; else the GPU is to come to the other side
} errand_t;

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

static void across_done(keel_submission_t *submission, keel_cmd_across_t *c, keel_status_t status)
{
    run_done_with((run_t *)(void *)submission, &c->copy.head, status);
}

// That Metal does not take the memory is no failure, unless it is the library's own staging.
static keel_status_t host_prepare(metal_device_t *device, keel_buffer_t *root)
{
    uint64_t address;
    keel_status_t status = view_make(root, &device->base, &address);
    bool refused = status && !root->staging && keel_status_code(status) != KEEL_DEVICE_LOST &&
                   view_find(root, &device->base, &address) == VIEW_REFUSED;
    if (!refused) return status;
    keel_status_release(status);
    return NULL;
}

// The other device stays open meanwhile.
static keel_status_t errand_prepare(metal_device_t *device, keel_cmd_across_t *c)
{
    keel_status_t why = NULL;
    if (!device_visit(c->other->device, &why)) return why;
    keel_status_t status = host_prepare(device, c->other->root);
    device_leave(c->other->device);
    return status;
}

static void errand_run(void *owner, chore_t *chore)
{
    const errand_t *errand = (const errand_t *)(const void *)chore;
    keel_submission_t *submission = &errand->run->base.submission;
    if (errand->passes_on)
        across_begin(submission, errand->c, across_done);
    else
        across_done(submission, errand->c, errand_prepare(owner, errand->c));
}

static keel_status_t errand_begin(metal_run_t *run, keel_cmd_across_t *c, bool passes_on)
{
    errand_t *errand = mem_zalloc(sizeof *errand);
    if (!errand) return status_no_memory();
    *errand = (errand_t){.chore.run = errand_run, .run = run, .c = c, .passes_on = passes_on};
    run_begin(&run->base);
    chores_add(&metal_run_device(run)->errands, &errand->chore);
    return NULL;
}

keel_status_t metal_across_pass_on(metal_run_t *run, keel_cmd_across_t *c)
{
    return errand_begin(run, c, true);
}

// Where the GPU sees the other side.
static keel_status_t other_find(metal_run_t *run, const keel_cmd_across_t *c, metal_place_t *place,
                                metal_across_t *how)
{
    metal_device_t *device = metal_run_device(run);
    const keel_ref_t *ref = other_ref(c);
    uint64_t address = 0;
    *how = METAL_ACROSS_DONE;
    if (metal_device_peers(&device->base, c->other->device)) return metal_place(ref, NULL, place);
    *how = METAL_ACROSS_BEYOND;
    if (!buffer_is_host(c->other)) return NULL;
    view_state_t state = view_find(c->other->root, &device->base, &address);
    if (state == VIEW_NONE) *how = METAL_ACROSS_PREPARES;
    if (state != VIEW_THERE) return NULL;
    *how = METAL_ACROSS_DONE;
    return metal_place_at(device, address + c->other->offset + ref->offset, ref->length, place);
}

static keel_status_t copy_encode(metal_run_t *run, const keel_cmd_across_t *c,
                                 const metal_place_t *other)
{
    metal_place_t own;
    KEEL_TRY(metal_place(is_out(c) ? &c->copy.source : &c->copy.target, NULL, &own));
    return is_out(c) ? metal_encode_copy(run, &own, other) : metal_encode_copy(run, other, &own);
}

// The other device stays open until the command buffer is over.
keel_status_t metal_across(metal_run_t *run, keel_cmd_across_t *c, metal_across_t *outcome)
{
    keel_device_t *other = c->other->device;
    keel_status_t why = NULL;
    metal_place_t place;
    *outcome = METAL_ACROSS_DONE;
    if (!c->copy.source.length) return NULL;
    if (!device_visit(other, &why)) return why;
    keel_status_t status = other_find(run, c, &place, outcome);
    if (!status && *outcome == METAL_ACROSS_DONE) {
        c->visits = run->visits = true;
        return copy_encode(run, c, &place);
    }
    device_leave(other);
    if (!status && *outcome == METAL_ACROSS_PREPARES) status = errand_begin(run, c, false);
    return status;
}

void metal_visits_end(metal_run_t *run)
{
    if (!run->visits) return;
    run->visits = false;
    KEEL_EACH_COMMAND (command, &run->base.submission.commands) {
        keel_cmd_across_t *c = (keel_cmd_across_t *)(uintptr_t)command;
        if (command->kind != KEEL_CMD_ACROSS || !c->visits) continue;
        c->visits = false;
        device_leave(c->other->device);
    }
}
