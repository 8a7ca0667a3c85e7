// SPDX-License-Identifier: Apache-2.0
// Commands as packets: fills, updates, copies and timestamps are kernels of the driver's own.
#include <string.h>

#include "base/status.h"
#include "drivers/amdgpu/device/program.h"
#include "drivers/amdgpu/host/run/run.h"

static keel_status_t builtin_launch(amdgpu_run_t *run, amdgpu_builtin_t builtin,
                                    const void *arguments, uint32_t size, uint32_t groups)
{
    amdgpu_device_t *device = amdgpu_run_device(run);
    const amdgpu_kernel_t *kernel = &device->builtins[builtin];
    amdgpu_launch_t launch = {
        .kernel = kernel,
        .groups = {groups, 1, 1},
        .group_size = {builtin == AMDGPU_TIMESTAMP ? 1 : BUILTIN_GROUP, 1, 1},
        .local = kernel->group,
        .arguments = arguments,
        .size = size,
    };
    return amdgpu_launch(run, &launch);
}

keel_status_t amdgpu_issue_copy(amdgpu_run_t *run, const bound_copy_t *copy)
{
    builtin_copy_t arguments;
    if (!copy->size) return NULL;
    uint32_t groups = copy_arguments(&arguments, copy->target, copy->source, copy->size);
    return builtin_launch(run, AMDGPU_COPY, &arguments, sizeof arguments, groups);
}

static keel_status_t fill_issue(amdgpu_run_t *run, const keel_cmd_fill_t *c,
                                const keel_cmd_execute_t *execute)
{
    keel_bound_t target;
    uint32_t pattern;
    KEEL_TRY(keel_bind_fill(c, execute, &target, &pattern));
    builtin_fill_t arguments;
    if (!target.length) return NULL;
    uint32_t groups = fill_arguments(&arguments, target.address, target.length, pattern);
    return builtin_launch(run, AMDGPU_FILL, &arguments, sizeof arguments, groups);
}

static keel_status_t copy_issue(amdgpu_run_t *run, const keel_cmd_copy_t *c,
                                const keel_cmd_execute_t *execute)
{
    keel_bound_t source, target;
    KEEL_TRY(keel_bind_copy(c, execute, &source, &target));
    bound_copy_t copy = {target.address, source.address, target.length};
    return amdgpu_issue_copy(run, &copy);
}

// The bytes go with the packets.
static keel_status_t update_issue(amdgpu_run_t *run, const keel_cmd_update_t *c,
                                  const keel_cmd_execute_t *execute)
{
    keel_bound_t target;
    uint64_t address;
    void *data;
    KEEL_TRY(keel_bind_ref(&c->target, execute, &target));
    if (!target.length) return NULL;
    KEEL_TRY(amdgpu_run_piece(run, target.length, &data, &address));
    memcpy(data, keel_update_data(c, execute), target.length);
    bound_copy_t copy = {target.address, address, target.length};
    return amdgpu_issue_copy(run, &copy);
}

// A tick of a clock of so many kHz takes 10^6 / kHz nanoseconds.
static keel_status_t timestamp_issue(amdgpu_run_t *run, const keel_cmd_timestamp_t *c,
                                     const keel_cmd_execute_t *execute)
{
    keel_bound_t target;
    KEEL_TRY(keel_bind_ref(&c->target, execute, &target));
    builtin_timestamp_t arguments = {
        .target = target.address,
        .ns = 1000000,
        .ticks = amdgpu_run_device(run)->clock_khz,
    };
    return builtin_launch(run, AMDGPU_TIMESTAMP, &arguments, sizeof arguments, 1);
}

static keel_status_t command_issue(amdgpu_run_t *run, const keel_command_t *command,
                                   const keel_cmd_execute_t *execute)
{
    const void *c = command;
    switch (command->kind) {
    case KEEL_CMD_FILL: return fill_issue(run, c, execute);
    case KEEL_CMD_UPDATE: return update_issue(run, c, execute);
    case KEEL_CMD_COPY: return copy_issue(run, c, execute);
    case KEEL_CMD_TIMESTAMP: return timestamp_issue(run, c, execute);
    default: return amdgpu_dispatch(run, c, execute);
    }
}

keel_status_t amdgpu_issue(amdgpu_run_t *run, const keel_command_t *command,
                           const keel_cmd_execute_t *execute)
{
    amdgpu_stamps_of(run, command, execute);
    keel_status_t status = command_issue(run, command, execute);
    amdgpu_stamps_of(run, NULL, NULL);
    return status;
}
