// SPDX-License-Identifier: Apache-2.0
// Commands as a trace has them. Where trace_is_on says so.
#ifndef KEEL_SRC_KIT_TRACED_H_
#define KEEL_SRC_KIT_TRACED_H_

#include <keel/driver/command.h>

#include "trace/event.h"

// What a command is: its kind, its name, and its place in its list. The name of a dispatch's kernel
// is remembered at `kernel`, which is 0 at first; NULL for other commands.
trace_part_t traced_part(const keel_commands_t *commands, const keel_command_t *command,
                         _Atomic uint32_t *kernel) KEEL_COLD;

// How many bytes it moves, with the binding table of its recording or NULL. 0: none.
uint64_t traced_bytes(const keel_command_t *command, const keel_ref_t *table) KEEL_COLD;

#endif
