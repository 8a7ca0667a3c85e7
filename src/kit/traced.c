// SPDX-License-Identifier: Apache-2.0
#include "kit/traced.h"

#include "kit/bind.h"
#include "kit/command.h"

static trace_op_t op_of(uint32_t kind)
{
    switch ((keel_cmd_t)kind) {
    case KEEL_CMD_DISPATCH: return TRACE_OP_DISPATCH;
    case KEEL_CMD_FILL:
    case KEEL_CMD_UPDATE:
    case KEEL_CMD_COPY:
    case KEEL_CMD_ACROSS:
    case KEEL_CMD_READ:
    case KEEL_CMD_WRITE: return TRACE_OP_COPY;
    case KEEL_CMD_HOST_CALL: return TRACE_OP_HOST;
    default: return TRACE_OP_OTHER;
    }
}

static uint32_t name_of(const keel_command_t *command, _Atomic uint32_t *kernel)
{
    static _Atomic uint32_t names[KEEL_CMD_END];
    if (command->kind != KEEL_CMD_DISPATCH)
        return trace_name_at(&names[command->kind], command_name(command->kind));
    const keel_cmd_dispatch_t *c = (const keel_cmd_dispatch_t *)(const void *)command;
    return trace_name_at(kernel, c->executable->entries[c->entry].name);
}

trace_part_t traced_part(const keel_commands_t *commands, const keel_command_t *command,
                         _Atomic uint32_t *kernel)
{
    return (trace_part_t){
        .op = op_of(command->kind),
        .name = name_of(command, kernel),
        .command = (uint64_t)((const unsigned char *)command - commands->data),
        .count = 1,
    };
}

uint64_t traced_bytes(const keel_command_t *command, const keel_ref_t *table)
{
    const void *c = command;
    switch ((keel_cmd_t)command->kind) {
    case KEEL_CMD_FILL: return bind_length(table, &((const keel_cmd_fill_t *)c)->target);
    case KEEL_CMD_UPDATE: return bind_length(table, &((const keel_cmd_update_t *)c)->target);
    case KEEL_CMD_COPY:
    case KEEL_CMD_ACROSS: return bind_length(table, &((const keel_cmd_copy_t *)c)->source);
    case KEEL_CMD_READ:
    case KEEL_CMD_WRITE: return bind_length(table, &((const keel_cmd_transfer_t *)c)->ref);
    default: return 0;
    }
}

// Of a moment at which an operation went on: the rest of it is no call of its own.
enum { LATER = 1 };

uint64_t traced_host_start(void)
{
    return trace_start() & ~(uint64_t)LATER;
}

void traced_host(const keel_submission_t *submission, const keel_command_t *command)
{
    keel_command_t *timed = (keel_command_t *)(uintptr_t)command;
    trace_part_t part = traced_part(&submission->commands, command, NULL);
    part.first = timed->began & LATER;
    if (part.op == TRACE_OP_COPY) part.count = part.first ? 0 : traced_bytes(command, NULL);
    if (timed->began) trace_part(timed->began, submission_traced(submission), part);
    timed->began = trace_now() | LATER;
}
