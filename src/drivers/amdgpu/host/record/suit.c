// SPDX-License-Identifier: Apache-2.0
// Which submissions are the GPU's, in all or to wait for. What the host has to take part in is left
// to the host.
#include "drivers/amdgpu/host/record/record.h"

#define BIT(kind) (UINT32_C(1) << (kind))

// Whether it waits for semaphores of the device.
static bool waits_for_cells(const keel_submission_t *submission)
{
    const keel_device_t *device = submission->queue->device;
    for (uint32_t i = 0; i < submission->wait_count; i++)
        if (amdgpu_cell_of(submission->waits[i].point.semaphore, device)) return true;
    return false;
}

static bool has_cells(const keel_submission_t *submission)
{
    const keel_device_t *device = submission->queue->device;
    if (waits_for_cells(submission)) return true;
    for (uint32_t i = 0; i < submission->signal_count; i++)
        if (amdgpu_cell_of(submission->signals[i].point.semaphore, device)) return true;
    return false;
}

// Without recordings, and semaphores of the device, there is nothing to gain.
bool amdgpu_record_suits(const keel_submission_t *submission)
{
    const keel_commands_t *commands = &submission->commands;
    const uint32_t execute = BIT(KEEL_CMD_EXECUTE);
    const uint32_t more = execute | BIT(KEEL_CMD_ALLOCA) | BIT(KEEL_CMD_DEALLOCA);
    if (!amdgpu_device(submission->queue->device)->scheduler) return false;
    if (!(commands->kinds & execute) && !has_cells(submission)) return false;
    if (amdgpu_commands_branch(commands) && commands_late(commands, NULL)) return false;
    return amdgpu_commands_suit(commands, more) && amdgpu_grants_suit(commands) &&
           amdgpu_steps_suit(commands, submission->queue->info.node);
}

bool amdgpu_request_suits(const keel_submission_t *submission)
{
    return amdgpu_device(submission->queue->device)->scheduler && waits_for_cells(submission);
}
