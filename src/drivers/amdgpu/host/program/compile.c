// SPDX-License-Identifier: Apache-2.0
// What is known of a command becomes a packet and its arguments; what is not, patches of them, or
// what the GPU makes them of.
#include "drivers/amdgpu/host/program/compile.h"

#include <stddef.h>
#include <string.h>

#include "base/status.h"

static amdgpu_launch_t builtin_of(const compiler_t *c, amdgpu_builtin_t builtin,
                                  const void *arguments, uint32_t size, uint32_t groups)
{
    const amdgpu_kernel_t *kernel = &c->device->builtins[builtin];
    return (amdgpu_launch_t){
        .kernel = kernel,
        .groups = {groups, 1, 1},
        .group_size = {builtin == AMDGPU_TIMESTAMP ? 1 : BUILTIN_GROUP, 1, 1},
        .local = kernel->group,
        .arguments = arguments,
        .size = size,
    };
}

// A fill or a copy that the GPU works out. `risky`: its range may turn out wrong.
static keel_status_t late_add(compiler_t *c, amdgpu_builtin_t builtin, bool risky, const void *more,
                              uint64_t more_size)
{
    uint64_t offset;
    amdgpu_launch_t launch = builtin_of(c, builtin, NULL, 0, 1);
    KEEL_TRY(assemble_data(c, more, more_size, &offset));
    KEEL_TRY(assemble_command(c, &launch));
    program_command_t *command = assemble_command_now(c);
    command->kind = builtin == AMDGPU_FILL ? COMMAND_FILL : COMMAND_COPY;
    command->more = offset;
    command->size = (uint32_t)assemble_aligned(launch.kernel->arguments);
    command->place = assemble_arguments(c, command->size);
    c->risky |= risky;
    return NULL;
}

keel_status_t compile_fill(compiler_t *c, const keel_cmd_fill_t *fill)
{
    program_fill_t late = {.pattern = fill->pattern,
                           .pattern_size = fill->pattern_size,
                           .offset = fill->offset,
                           .given = fill->given};
    builtin_fill_t a;
    keel_bound_t target;
    uint32_t pattern;
    KEEL_TRY(assemble_place(c, &fill->target, &late.target));
    bool whole = late.target.length == PLACE_WHOLE && fill->pattern_size > 1;
    if (fill->given || late.target.slot != PLACE_KNOWN)
        return late_add(c, AMDGPU_FILL, whole, &late, sizeof late);
    KEEL_TRY(keel_bind_fill(fill, NULL, &target, &pattern));
    if (!target.length) return NULL;
    uint32_t groups = fill_arguments(&a, target.address, target.length, pattern);
    amdgpu_launch_t launch = builtin_of(c, AMDGPU_FILL, &a, sizeof a, groups);
    return assemble_launch(c, &launch, false);
}

static keel_status_t copy_add(compiler_t *c, const program_copy_t *copy)
{
    builtin_copy_t a;
    if (copy->target.slot != PLACE_KNOWN || copy->source.slot != PLACE_KNOWN)
        return late_add(c, AMDGPU_COPY, true, copy, sizeof *copy);
    if (!copy->target.length) return NULL;
    uint32_t groups =
        copy_arguments(&a, copy->target.offset, copy->source.offset, copy->target.length);
    amdgpu_launch_t launch = builtin_of(c, AMDGPU_COPY, &a, sizeof a, groups);
    return assemble_launch(c, &launch, false);
}

keel_status_t compile_copy(compiler_t *c, const keel_cmd_copy_t *copy)
{
    program_copy_t both;
    keel_bound_t source, target;
    KEEL_TRY(assemble_place(c, &copy->source, &both.source));
    KEEL_TRY(assemble_place(c, &copy->target, &both.target));
    if (both.source.slot == PLACE_KNOWN && both.target.slot == PLACE_KNOWN)
        KEEL_TRY(keel_bind_copy(copy, NULL, &source, &target));
    return copy_add(c, &both);
}

// The bytes lie in the program, or come with the execution.
keel_status_t compile_update(compiler_t *c, const keel_cmd_update_t *update)
{
    program_copy_t both;
    uint64_t length = update->target.length;
    if (!length) return NULL;
    KEEL_TRY(assemble_place(c, &update->target, &both.target));
    both.source = (place_t){update->offset, length, PLACE_PARAMETERS, 0};
    if (update->given) return copy_add(c, &both);
    both.source.slot = PLACE_KNOWN;
    KEEL_TRY(assemble_data(c, update->data, length, &both.source.offset));
    KEEL_TRY(copy_add(c, &both));
    const program_command_t *command = assemble_command_now(c);
    return assemble_relocation(c, command->kind == COMMAND_COPY
                                      ? command->more + offsetof(program_copy_t, source.offset)
                                      : command->arguments + offsetof(builtin_copy_t, source));
}

keel_status_t compile_timestamp(compiler_t *c, const keel_cmd_timestamp_t *timestamp)
{
    builtin_timestamp_t a = {.ns = 1000000, .ticks = c->device->clock_khz};
    amdgpu_launch_t launch = builtin_of(c, AMDGPU_TIMESTAMP, &a, sizeof a, 1);
    place_t target;
    KEEL_TRY(assemble_place(c, &timestamp->target, &target));
    if (target.slot == PLACE_KNOWN)
        a.target = target.offset;
    else
        KEEL_TRY(assemble_patch(c, &(patch_t){PATCH_SLOT, 0, target.slot, 0, target.offset}));
    KEEL_TRY(assemble_launch(c, &launch, assemble_patch_count(c)));
    return assemble_patches(c);
}

// What differs between executions of a dispatch: `base` is where its constants are. Behind `end`
// bytes of these the kernel looks for what is not the caller's.
static keel_status_t constants_patch(compiler_t *c, const keel_cmd_dispatch_t *d, uint32_t base,
                                     uint32_t end)
{
    const keel_patch_t *patches = command_patches(d);
    for (uint32_t i = 0; i < d->patch_count; i++) {
        const keel_ref_t *ref = &patches[i].ref;
        patch_t patch = {PATCH_SLOT, base + patches[i].offset, 0, 0, ref->offset};
        if ((ref->buffer && !assemble_is_late(ref)) || patches[i].offset >= end) continue;
        if (keel_ref_is_parameter(ref)) {
            uint32_t most = end - patches[i].offset;
            patch.kind = PATCH_BYTES;
            patch.size = ref->length < most ? (uint32_t)ref->length : most;
        } else {
            KEEL_TRY(assemble_slot(c, ref, &patch.slot));
        }
        KEEL_TRY(assemble_patch(c, &patch));
    }
    return NULL;
}

// The block of arguments as docs/kernels.md lays it down: the grid, addresses, lengths, constants.
static keel_status_t block_patch(compiler_t *c, const keel_cmd_dispatch_t *d, unsigned char *block)
{
    enum { HEAD = 16 };
    uint32_t count = d->binding_count;
    for (uint32_t i = 0; i < count; i++) {
        const keel_ref_t *ref = &d->bindings[i];
        uint32_t address = HEAD + 8 * i, length = HEAD + 8 * (count + i);
        if (ref->buffer && !assemble_is_late(ref)) continue;
        bool whole = ref->length == KEEL_WHOLE;
        patch_t patch = {PATCH_SLOT, address, 0, whole ? length : 0, ref->offset};
        KEEL_TRY(assemble_slot(c, ref, &patch.slot));
        KEEL_TRY(assemble_patch(c, &patch));
        if (!whole) memcpy(block + length, &ref->length, sizeof ref->length);
    }
    return constants_patch(c, d, HEAD + 16 * count, d->constant_size);
}

static keel_status_t grid_add(compiler_t *c, const keel_cmd_dispatch_t *d,
                              const amdgpu_kernel_t *kernel)
{
    program_grid_t grid = {
        .most = c->device->base.caps.max_groups,
        .dynamic = d->counts_kind == KEEL_COUNTS_DYNAMIC,
        .raw = kernel->raw,
        .hidden = kernel->hidden,
    };
    uint64_t offset;
    memcpy(grid.places, kernel->places, sizeof grid.places);
    KEEL_TRY(assemble_place(c, &d->counts, &grid.counts));
    bool given = keel_ref_is_parameter(&d->counts);
    if (given) grid.dynamic = false;
    if (!given && !grid.dynamic && assemble_count(c) == 1) assemble_segment_now(c)->reads = 1;
    if (grid.dynamic) grid.place = assemble_arguments(c, sizeof(patch_args_t));
    KEEL_TRY(assemble_data(c, &grid, sizeof grid, &offset));
    program_command_t *command = assemble_command_now(c);
    command->kind = COMMAND_COUNTED;
    command->more = offset;
    if (grid.dynamic) assemble_segment_now(c)->packets++;
    c->risky = true;
    return NULL;
}

// What of the arguments is known.
static keel_status_t block_make(compiler_t *c, const keel_cmd_dispatch_t *d,
                                amdgpu_launch_t *launch, unsigned char *block)
{
    const binder_t binder = {.anywhere = BIND_ANYWHERE};
    if (!launch->kernel->raw) {
        KEEL_TRY(bind_block(&binder, d, block, &launch->size));
        return block_patch(c, d, block);
    }
    KEEL_TRY(amdgpu_raw_block(&binder, d, launch, block));
    return constants_patch(c, d, 0, launch->kernel->given);
}

keel_status_t compile_dispatch(compiler_t *c, const keel_cmd_dispatch_t *d)
{
    bool counted = d->counts_kind != KEEL_COUNTS_DIRECT;
    _Alignas(16) unsigned char block[AMDGPU_MAX_ARGUMENTS];
    amdgpu_launch_t launch = {.kernel = d->kernel, .local = d->local_memory, .arguments = block};
    memcpy(launch.groups, d->groups, sizeof launch.groups);
    memcpy(launch.group_size, d->group_size, sizeof launch.group_size);
    if (!counted && (!launch.groups[0] || !launch.groups[1] || !launch.groups[2])) return NULL;
    if (!counted) KEEL_TRY(amdgpu_grid_check(&launch));
    KEEL_TRY(block_make(c, d, &launch, block));
    KEEL_TRY(assemble_launch(c, &launch, assemble_patch_count(c) || counted));
    if (counted) KEEL_TRY(grid_add(c, d, launch.kernel));
    return assemble_patches(c);
}
