// SPDX-License-Identifier: Apache-2.0
// Where that lies which commands refer to. A reference with a buffer names it; one without names a
// slot of the table that keel_cmd_execute_t has for the recording, or its parameters. Checked are
// the things that only show when a command runs: that a queue-ordered buffer has memory, that
// lengths suit.
//
// `execute` is the command that runs the recording, NULL for commands of the submission itself. Any
// thread; nothing blocks. To be called when everything before the last barrier has ended, since
// allocas and deallocas move buffers.
#ifndef KEEL_DRIVER_BIND_H_
#define KEEL_DRIVER_BIND_H_

#include <keel/driver/command.h>

typedef struct keel_bound_t {
    uint64_t address; // for the device; of parameters 0: they are the host's
    void *data;       // for the host; NULL: it does not see the memory
    uint64_t length;  // bytes
} keel_bound_t;

KEEL_EXTERN_C_BEGIN

// KEEL_FAILED_PRECONDITION if the buffer has no memory.
KEEL_API keel_status_t keel_bind_ref(const keel_ref_t *ref, const keel_cmd_execute_t *execute,
                                     keel_bound_t *bound) KEEL_MUST_USE;

// Both sides of a copy. KEEL_INVALID_ARGUMENT if they differ in length, or overlap.
KEEL_API keel_status_t keel_bind_copy(const keel_cmd_copy_t *command,
                                      const keel_cmd_execute_t *execute, keel_bound_t *source,
                                      keel_bound_t *target) KEEL_MUST_USE;

// The target of a fill, and its pattern, repeated to 4 bytes. KEEL_INVALID_ARGUMENT if the target
// is no whole number of patterns long.
KEEL_API keel_status_t keel_bind_fill(const keel_cmd_fill_t *command,
                                      const keel_cmd_execute_t *execute, keel_bound_t *target,
                                      uint32_t *pattern) KEEL_MUST_USE;

// The workgroups of a dispatch: as recorded, from parameters, or read now from memory that the host
// sees.
// KEEL_OUT_OF_RANGE if what is read is more than keel_caps_t.max_groups.
KEEL_API keel_status_t keel_bind_counts(const keel_cmd_dispatch_t *command,
                                        const keel_cmd_execute_t *execute,
                                        uint32_t counts[3]) KEEL_MUST_USE;

// The constants of a dispatch, or its raw argument block, with what its patches say put in:
// constant_size bytes. Without patches that is what the command has itself.
KEEL_API keel_status_t keel_bind_constants(const keel_cmd_dispatch_t *command,
                                           const keel_cmd_execute_t *execute,
                                           void *block) KEEL_MUST_USE;

// Goes on from any command of a recording: *at becomes the one that is next, by way of its blocks;
// at the end, keel_commands_end. Values that blocks depend on are read now, from memory that the
// host sees. `loops` counts the rounds of the loops of each depth: keel_caps_t.max_depth numbers of
// the caller's, zero at first. Fails, and *at stays, as keel_bind_ref, or with
// KEEL_RESOURCE_EXHAUSTED if a loop has run as often as it may. KEEL_CAP_BRANCHES; a driver without
// has no blocks to walk and may use KEEL_EACH_COMMAND.
KEEL_API keel_status_t keel_command_step(const keel_commands_t *commands,
                                         const keel_cmd_execute_t *execute, uint32_t *loops,
                                         const keel_command_t **at) KEEL_MUST_USE;

KEEL_EXTERN_C_END

#endif
