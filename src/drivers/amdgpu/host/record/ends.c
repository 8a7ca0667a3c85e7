// SPDX-License-Identifier: Apache-2.0
// What the GPU has ended, and the end of all that it has when the device is lost.
#include "drivers/amdgpu/host/record/record.h"

// Ends what one of them has. True: there is more to come.
static bool control_work(amdgpu_control_t *control)
{
    scheduler_t *shared = control->shared;
    if (!shared) return false;
    uint64_t at = records_take(&shared->done);
    if (at) amdgpu_shelves_look(control->device); // before the ends are shown
    amdgpu_trace_flush(control);                  // while the runs are there that it tells of
    amdgpu_trace_forget(control, at); // nothing orders the slots of the rest before `done`
    while (at) {
        const record_t *record = PROTOCOL_AT(record_t, at);
        amdgpu_run_t *run = (amdgpu_run_t *)(uintptr_t)record->user;
        at = record->next;
        amdgpu_record_end(run, NULL);
    }
    return PROTOCOL_LOAD(&shared->live, __ATOMIC_RELAXED);
}

bool amdgpu_ends_work(amdgpu_device_t *device)
{
    amdgpu_scheduler_t *s = device->scheduler;
    bool more = false;
    // A tick that was under way when the device was lost may still tell of ends: of runs that are
    // gone.
    for (uint32_t i = 0; s && !s->lost && i < s->control_count; i++)
        more |= control_work(&s->controls[i]);
    if (s) amdgpu_shelves_work(device);
    return more;
}

void amdgpu_ends_lost(amdgpu_device_t *device)
{
    amdgpu_scheduler_t *s = device->scheduler;
    if (!s) return;
    amdgpu_ends_work(device);
    for (uint32_t i = 0; i < s->control_count; i++) amdgpu_trace_stop(&s->controls[i]);
    for (;;) {
        lock_enter(&s->lock);
        amdgpu_run_t *run = s->runs;
        lock_leave(&s->lock);
        if (!run) break;
        amdgpu_record_end(run, amdgpu_lost_cause(device));
    }
    s->lost = true;
}
