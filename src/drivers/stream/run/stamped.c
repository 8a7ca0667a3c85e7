// SPDX-License-Identifier: Apache-2.0
// Times that the device has written go into the trace.
#include "drivers/stream/run/stamp.h"
#include "kit/traced.h"

static void stamped_record(const stream_run_t *run, const stream_stamps_t *stamps,
                           const stamped_t *stamped)
{
    const keel_command_t *command = stamped->command;
    const keel_cmd_execute_t *execute = stamped->execute;
    _Atomic uint32_t *kernel = NULL;
    if (command->kind == KEEL_CMD_DISPATCH)
        kernel = &((stream_kernel_t *)((const keel_cmd_dispatch_t *)(const void *)command)->kernel)
                      ->traced;
    trace_part_t part =
        traced_part(execute ? execute->recording->commands : &run->base.commands, command, kernel);
    if (part.op == TRACE_OP_COPY)
        part.count = traced_bytes(command, execute ? execute->bindings : NULL);
    trace_part_timed((trace_times_t){stream_run_device(run)->traced, stamps->times[stamped->begin],
                                     stamps->times[stamped->begin + 1]},
                     submission_traced(&run->base), part);
}

void stream_stamps_record(stream_run_t *run)
{
    for (const stream_stamps_t *stamps = run->stamps; stamps; stamps = stamps->older)
        for (uint32_t i = 0; i < stamps->count; i++) stamped_record(run, stamps, &stamps->of[i]);
    run->stamps = NULL;
}
