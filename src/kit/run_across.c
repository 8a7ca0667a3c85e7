// SPDX-License-Identifier: Apache-2.0
// Copies to and from memory of other devices. The device makes those itself whose other side it
// comes to: memory of a peer, and memory of the host, once it has a view of that (view.h). To get
// there may take long, so a thread of the device does it, and the run comes back to the command.
// All other copies are made by submissions that the two devices get (across.h).
#include "base/memory.h"
#include "base/status.h"
#include "kit/across.h"
#include "kit/run.h"
#include "kit/view.h"

// What the thread is to do for a copy.
typedef struct errand_t {
    chore_t chore;
    run_t *run;
    keel_cmd_across_t *c;
    bool passes_on; // others make the copy; else the device is to come to the other side
} errand_t;

static void across_done(keel_submission_t *submission, keel_cmd_across_t *c, keel_status_t status)
{
    run_done_with((run_t *)(void *)submission, &c->copy.head, status);
}

// That there can be no view of the memory is no failure, unless it is the library's own staging.
static keel_status_t host_prepare(keel_device_t *device, keel_buffer_t *root)
{
    uint64_t address;
    keel_status_t status = view_make(root, device, &address);
    bool refused = status && !root->staging && keel_status_code(status) != KEEL_DEVICE_LOST &&
                   view_find(root, device, &address) == VIEW_REFUSED;
    if (!refused) return status;
    keel_status_release(status);
    return NULL;
}

// The other device stays open meanwhile.
static keel_status_t errand_prepare(const runs_t *runs, keel_cmd_across_t *c)
{
    keel_device_t *device = runs->device, *other = c->other->device;
    keel_status_t why = NULL;
    if (!device_visit(other, &why)) return why;
    bool peer = runs->ops->peer && device->ops->device_peers(device, other);
    keel_status_t status = peer ? runs->ops->peer(device, c) : host_prepare(device, c->other->root);
    device_leave(other);
    return status;
}

static void errand_run(void *runs, chore_t *chore)
{
    const errand_t *errand = (const errand_t *)(const void *)chore;
    keel_submission_t *submission = &errand->run->submission;
    if (errand->passes_on)
        across_begin(submission, errand->c, across_done);
    else
        across_done(submission, errand->c, errand_prepare(runs, errand->c));
}

static keel_status_t errand_begin(run_t *run, keel_cmd_across_t *c, bool passes_on)
{
    errand_t *errand = mem_zalloc(sizeof *errand);
    if (!errand) return status_no_memory();
    *errand = (errand_t){.chore.run = errand_run, .run = run, .c = c, .passes_on = passes_on};
    run_begin(run);
    chores_add(&run->runs->errands, &errand->chore);
    return NULL;
}

// When everything that the run has begun is over: others make the copy.
static run_outcome_t pass_on(run_t *run, keel_cmd_across_t *c, keel_status_t *status)
{
    if (run->before || run->now) return RUN_WAITS;
    run_room_give_back(run); // those that make it need some
    *status = errand_begin(run, c, true);
    return RUN_GOES_ON;
}

run_outcome_t run_across(run_t *run, const keel_command_t *command, keel_status_t *status)
{
    keel_cmd_across_t *c = (keel_cmd_across_t *)(uintptr_t)command; // it keeps state
    keel_device_t *other = c->other->device;
    run_across_t how = RUN_ACROSS_DONE;
    if (run_is_busy(run)) return RUN_WAITS;
    if (!c->copy.source.length) return RUN_GOES_ON;
    run_outcome_t outcome = run->runs->ops->room(run);
    if (outcome != RUN_GOES_ON || !device_visit(other, status)) return outcome;
    *status = run->runs->ops->across(run, c, &how);
    if (how == RUN_ACROSS_DONE) { // or half of it, if it failed
        c->visits = run->visits = true;
        return RUN_GOES_ON;
    }
    device_leave(other);
    if (!*status && how == RUN_ACROSS_BEYOND) return pass_on(run, c, status);
    if (!*status) *status = errand_begin(run, c, false);
    return *status ? RUN_GOES_ON : RUN_WAITS;
}

void run_visits_end(run_t *run)
{
    if (!run->visits) return;
    run->visits = false;
    KEEL_EACH_COMMAND (command, &run->submission.commands) {
        keel_cmd_across_t *c = (keel_cmd_across_t *)(uintptr_t)command;
        if (command->kind != KEEL_CMD_ACROSS || !c->visits) continue;
        c->visits = false;
        device_leave(c->other->device);
    }
}

void run_handed_back(run_t *run)
{
    run_visits_end(run);
    run_room_give_back(run);
    run_done(run);
}
