// SPDX-License-Identifier: Apache-2.0
// What submissions become for the GPU: records.
//
//     suit.c        which submissions are the GPU's
//     steps.c       the programs of a record, and what they are run with
//     grants.c      blocks of pools that it takes and gives back
//     record.c      records from their start to their end
//     blame.c       why the GPU has given one up
#ifndef KEEL_SRC_DRIVERS_AMDGPU_HOST_RECORD_H_
#define KEEL_SRC_DRIVERS_AMDGPU_HOST_RECORD_H_

#include "drivers/amdgpu/host/scheduler.h"

// An alloca or a dealloca; NULL: it is another command.
static inline const keel_cmd_alloca_t *amdgpu_alloca_of(const keel_command_t *c)
{
    const bool is = c->kind == KEEL_CMD_ALLOCA || c->kind == KEEL_CMD_DEALLOCA;
    return is ? (const keel_cmd_alloca_t *)(const void *)c : NULL;
}

// Memory that the GPU reads as long as it has the record.
KEEL_MUST_USE static inline keel_status_t amdgpu_record_piece(amdgpu_run_t *run, uint64_t size,
                                                              void **data)
{
    uint64_t address;
    return amdgpu_run_piece(run, size, data, &address);
}

// Whether the GPU can run the allocas and deallocas of a submission.
bool amdgpu_grants_suit(const keel_commands_t *commands);
// Puts them into the record of a run: the pool's shelf, and the buffers.
keel_status_t amdgpu_grants_add(amdgpu_run_t *run) KEEL_MUST_USE;

// Whether the recordings of a submission can run as programs on a GPU.
bool amdgpu_steps_suit(const keel_commands_t *commands, uint32_t node);
// Makes the steps of the record of a run.
keel_status_t amdgpu_steps_make(amdgpu_run_t *run) KEEL_MUST_USE;

// What the command that the GPU refused would have said on the host.
keel_status_t amdgpu_record_blame(const amdgpu_run_t *run) KEEL_MUST_USE;

#endif
