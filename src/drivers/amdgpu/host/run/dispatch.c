// SPDX-License-Identifier: Apache-2.0
// Dispatches: the grid, the block of arguments, and those arguments that kernels made elsewhere
// expect of their runtime.
#include <string.h>

#include "base/status.h"
#include "drivers/amdgpu/host/run/run.h"
#include "kit/bind.h"

// Hidden arguments that say nothing of the grid are zero, whatever the dispatch has there.
static void hidden_write(const amdgpu_launch_t *launch, unsigned char *block)
{
    const amdgpu_kernel_t *kernel = launch->kernel;
    uint16_t dims = launch->groups[2] * launch->group_size[2] > 1   ? 3
                    : launch->groups[1] * launch->group_size[1] > 1 ? 2
                                                                    : 1;
    if (kernel->given < kernel->arguments)
        memset(block + kernel->given, 0, kernel->arguments - kernel->given);
    for (int i = 0; i < AMDGPU_HIDDEN_KINDS; i++) {
        if (!(kernel->hidden & 1u << i)) continue;
        unsigned char *at = block + kernel->places[i];
        if (i < AMDGPU_GROUP_SIZE_X) {
            memcpy(at, &launch->groups[i], 4);
        } else {
            uint16_t size = i == AMDGPU_GRID_DIMS
                                ? dims
                                : (uint16_t)launch->group_size[i - AMDGPU_GROUP_SIZE_X];
            memcpy(at, &size, 2);
        }
    }
}

keel_status_t amdgpu_raw_block(const binder_t *binder, const keel_cmd_dispatch_t *c,
                               amdgpu_launch_t *launch, unsigned char *block)
{
    uint32_t declared = launch->kernel->arguments;
    memset(block, 0, declared);
    KEEL_TRY(bind_constants(binder, c, block));
    launch->size = c->constant_size > declared ? c->constant_size : declared;
    hidden_write(launch, block);
    return NULL;
}

static keel_status_t counts_read(amdgpu_run_t *run, const keel_cmd_dispatch_t *c,
                                 const keel_cmd_execute_t *execute, uint32_t groups[3])
{
    if (!run->base.words) return keel_bind_counts(c, execute, groups);
    memcpy(groups, run->base.words, 3 * sizeof groups[0]);
    return bind_counts_check(c, groups);
}

keel_status_t amdgpu_grid_check(const amdgpu_launch_t *launch)
{
    for (int i = 0; i < 3; i++)
        if ((uint64_t)launch->groups[i] * launch->group_size[i] > UINT32_MAX)
            return KEEL_ERROR(KEEL_OUT_OF_RANGE,
                              "%u groups of %u items in dimension %d; HSA counts items in 32 bits",
                              launch->groups[i], launch->group_size[i], i);
    return NULL;
}

keel_status_t amdgpu_dispatch(amdgpu_run_t *run, const keel_cmd_dispatch_t *c,
                              const keel_cmd_execute_t *execute)
{
    const amdgpu_kernel_t *kernel = c->kernel;
    const binder_t binder = binder_of(execute);
    _Alignas(16) unsigned char block[AMDGPU_MAX_ARGUMENTS];
    amdgpu_launch_t launch = {.kernel = kernel, .local = c->local_memory, .arguments = block};
    KEEL_TRY(counts_read(run, c, execute, launch.groups));
    memcpy(launch.group_size, c->group_size, sizeof launch.group_size);
    if (!launch.groups[0] || !launch.groups[1] || !launch.groups[2]) return NULL;
    KEEL_TRY(amdgpu_grid_check(&launch));
    if (kernel->raw) {
        KEEL_TRY(amdgpu_raw_block(&binder, c, &launch, block));
    } else {
        KEEL_TRY(bind_block(&binder, c, block, &launch.size));
        memcpy(block, launch.groups, sizeof launch.groups);
    }
    return amdgpu_launch(run, &launch);
}
