// SPDX-License-Identifier: Apache-2.0
// Programs, which the GPU runs by itself (device/program.h).
//
//     assemble.c    the parts of a program, and how they become one
//     compile.c     commands as parts of a program
//     program.c     commands of a list as a program, and the programs of a recording
//     steps.c       the programs of a submission
#ifndef KEEL_SRC_DRIVERS_AMDGPU_HOST_PROGRAM_PROGRAM_H_
#define KEEL_SRC_DRIVERS_AMDGPU_HOST_PROGRAM_PROGRAM_H_

#include "drivers/amdgpu/device/protocol.h"
#include "drivers/amdgpu/host/run/run.h"

// program.c
// Commands that the GPU runs by itself (device/program.h). Of a recording it is made once.
typedef struct amdgpu_program_t amdgpu_program_t;
struct amdgpu_program_t {
    bool suits;             // false: the host walks over the recording
    uint32_t node;          // the GPU that it is for
    amdgpu_program_t *next; // of the same recording, for another one
    uint64_t address;
    uint64_t table;     // of the step that runs it: for buffers of pools; 0: none
    uint64_t slots;     // bits: those that commands refer to; the last one is all from 63 on
    bool branches;      // commands may not run
    uint32_t room;      // packets that it has in the ring at a time
    uint32_t arguments; // bytes of arguments, at a time
    uint32_t failed;    // the offset of the command that could not be made
    uint64_t uploaded;  // bytes of the GPU's own memory at `address`, owned; 0: others own it
};

// The buffers of pools that a record refers to, so far.
typedef struct amdgpu_lates_t {
    struct late_t *list; // there is room for all of them
    uint32_t count;
    uint32_t step; // whose they are from here on
} amdgpu_lates_t;

typedef struct amdgpu_range_t {
    const keel_command_t *from, *to;
    uint32_t node;    // the GPU that is to run them
    block_t **blocks; // where the program goes: a list that the caller gives back; NULL: to memory
                      // of the GPU's own
    amdgpu_lates_t *lates; // gets the buffers of pools; NULL: there are none
} amdgpu_range_t;

// Whether the kinds of commands can be a program's; `more` kinds, too.
bool amdgpu_commands_suit(const keel_commands_t *commands, uint32_t more);
// Whether some may not run.
bool amdgpu_commands_branch(const keel_commands_t *commands);
// A program of commands of a list.
keel_status_t amdgpu_program_make(amdgpu_device_t *device, const keel_commands_t *list,
                                  const amdgpu_range_t *range,
                                  amdgpu_program_t *program) KEEL_MUST_USE;
// That of a recording, which has it, for a GPU; NULL: the host is to walk over it. Any thread.
const amdgpu_program_t *amdgpu_program_of(keel_recording_t *recording, uint32_t node);
keel_status_t amdgpu_recording_prepare(keel_recording_t *recording, keel_queue_t *queue);
void amdgpu_recording_discard(keel_recording_t *recording);

// steps.c
// Whether the recordings of a submission can run as programs on a GPU.
bool amdgpu_steps_suit(const keel_commands_t *commands, uint32_t node);
// Makes the steps of the record of a run.
keel_status_t amdgpu_steps_make(amdgpu_run_t *run) KEEL_MUST_USE;
// The execution that a step of the record is; NULL: commands of the submission itself.
const keel_cmd_execute_t *amdgpu_step_execute(const amdgpu_run_t *run, uint32_t step);

// Memory that the GPU reads as long as it has the record.
KEEL_MUST_USE static inline keel_status_t amdgpu_record_piece(amdgpu_run_t *run, uint64_t size,
                                                              void **data)
{
    uint64_t address;
    return amdgpu_run_piece(run, size, data, &address);
}

#endif
