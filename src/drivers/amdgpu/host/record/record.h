// SPDX-License-Identifier: Apache-2.0
// Submissions that the GPU goes on with by itself, or that it waits for: records.
//
//     suit.c        which submissions are the GPU's
//     grants.c      blocks of pools that a record takes and gives back
//     blame.c       what was wrong with a record that the GPU has given up
//     record.c      records on their way to the GPU and back
//     ends.c        what the GPU has ended
#ifndef KEEL_SRC_DRIVERS_AMDGPU_HOST_RECORD_RECORD_H_
#define KEEL_SRC_DRIVERS_AMDGPU_HOST_RECORD_RECORD_H_

#include "drivers/amdgpu/host/scheduler/scheduler.h"

// suit.c
// Whether the GPU can do all of a submission by itself, and has reason to.
bool amdgpu_record_suits(const keel_submission_t *submission);
// Whether the GPU is to wait for some of the points of one that the host has to take part in.
bool amdgpu_request_suits(const keel_submission_t *submission);

// grants.c
// Whether the GPU can run the allocas and deallocas of a submission.
bool amdgpu_grants_suit(const keel_commands_t *commands);
// Puts them into the record of a run: the pool's shelf, and the buffers.
keel_status_t amdgpu_grants_add(amdgpu_run_t *run) KEEL_MUST_USE;

// blame.c
// What the command that the GPU refused would have said on the host.
keel_status_t amdgpu_record_blame(const amdgpu_run_t *run) KEEL_MUST_USE;

// record.c
// For submission_wait: makes a record and gives it to the GPU.
void amdgpu_record_start(keel_submission_t *submission);
// The same for a submission that amdgpu_request_suits: the record asks the host for all of the
// work, when these points are reached.
void amdgpu_request_start(keel_submission_t *submission);
// For records of a queue that are to be cancelled.
void amdgpu_queue_cancel(keel_queue_t *queue, keel_status_t cause);
// The GPU has ended it, or never will: `failure` (consumed) then says why.
void amdgpu_record_end(amdgpu_run_t *run, keel_status_t failure);

// ends.c
// Ends submissions that the GPU has ended. The device's thread. True: there are more to come.
bool amdgpu_ends_work(amdgpu_device_t *device);
// The device is lost, and its queues are stopped: ends all that the GPU has.
void amdgpu_ends_lost(amdgpu_device_t *device);

// An alloca or a dealloca; NULL: it is another command.
static inline const keel_cmd_alloca_t *amdgpu_alloca_of(const keel_command_t *c)
{
    const bool is = c->kind == KEEL_CMD_ALLOCA || c->kind == KEEL_CMD_DEALLOCA;
    return is ? (const keel_cmd_alloca_t *)(const void *)c : NULL;
}

#endif
