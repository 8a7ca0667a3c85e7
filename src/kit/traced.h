// SPDX-License-Identifier: Apache-2.0
// Commands as a trace has them. Where trace_is_on says so.
#ifndef KEEL_SRC_KIT_TRACED_H_
#define KEEL_SRC_KIT_TRACED_H_

#include <keel/driver/command.h>

#include "kit/submission.h"

// What a command is: its kind, its name, and its place in its list. The name of a dispatch's kernel
// is remembered at `kernel`, which is 0 at first; NULL for other commands.
trace_part_t traced_part(const keel_commands_t *commands, const keel_command_t *command,
                         _Atomic uint32_t *kernel) KEEL_COLD;

// How many bytes it moves, with the binding table of its recording or NULL. 0: none.
uint64_t traced_bytes(const keel_command_t *command, const keel_ref_t *table) KEEL_COLD;

// An operation of the host begins: the moment, for keel_command_t.began; 0: nothing is traced.
uint64_t traced_host_start(void);
// It has ended, or a step of it, which goes on then: records it. The first step has all the bytes.
void traced_host(const keel_submission_t *submission, const keel_command_t *command) KEEL_COLD;

#endif
