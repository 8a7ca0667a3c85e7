// SPDX-License-Identifier: Apache-2.0
// Commands as segments of a program for the GPU (device/program.h). All that is known is written
// down here, once; what a submission brings is left to the GPU.
#include "drivers/amdgpu/host/compile.h"

#include <stddef.h>
#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "kit/pool.h"

enum {
    ALIGN = 16,
    BARRIER_BIT = 1 << HSA_PACKET_HEADER_BARRIER,
    PROGRAM_HEAD = 64,   // bytes in front of the segments
    ARGUMENTS_WORD = 10, // of a packet: where its arguments' address is
};

static void vector_finish(compile_vector_t *v)
{
    if (v->owned) mem_free_aligned(v->data);
}

// So many more bytes, zeroed; NULL: there is no memory.
static void *vector_grow(compile_vector_t *v, uint64_t size)
{
    uint64_t end = v->size + size;
    if (end > v->capacity) {
        uint64_t capacity = 2 * end + 1024;
        void *data = mem_zalloc_aligned(capacity, PROTOCOL_LINE); // as packets are
        if (!data) return NULL;
        if (v->size) memcpy(data, v->data, v->size);
        vector_finish(v);
        v->data = data;
        v->capacity = capacity;
        v->owned = true;
    }
    unsigned char *at = v->data + v->size;
    memset(at, 0, size);
    v->size = end;
    return at;
}

static compile_vector_t vector_in(unsigned char *room, uint64_t capacity)
{
    return (compile_vector_t){.data = room, .capacity = capacity};
}

void compile_init(compiler_t *c, amdgpu_device_t *device, const amdgpu_range_t *range,
                  compile_room_t *room)
{
    *c = (compiler_t){
        .device = device,
        .node = range->node,
        .lates = range->lates,
        .segments = vector_in(room->segments, sizeof room->segments),
        .commands = vector_in(room->commands, sizeof room->commands),
        .data = vector_in(room->data, sizeof room->data),
        .patches = vector_in(room->patches, sizeof room->patches),
        .table = vector_in(room->table, sizeof room->table),
    };
}

static uint64_t aligned(uint64_t size)
{
    return (size + ALIGN - 1) / ALIGN * ALIGN;
}

// Bytes of the program; *offset is where they will be in its data.
static keel_status_t data_add(compiler_t *c, const void *bytes, uint64_t size, uint64_t *offset)
{
    *offset = c->data.size;
    void *at = vector_grow(&c->data, aligned(size));
    if (!at) return status_no_memory();
    if (size) memcpy(at, bytes, size);
    return NULL;
}

static program_command_t *command_now(compiler_t *c)
{
    return (program_command_t *)(void *)(c->commands.data + c->commands.size) - 1;
}

static segment_t *segment_now(compiler_t *c)
{
    return (segment_t *)(void *)(c->segments.data + c->segments.size) - 1;
}

keel_status_t compile_begin(compiler_t *c)
{
    segment_t *segment = vector_grow(&c->segments, sizeof *segment);
    if (!segment) return status_no_memory();
    segment->commands = c->group = c->commands.size;
    c->arguments = 0;
    c->barrier = c->now = c->risky = false;
    return NULL;
}

uint32_t compile_count(const compiler_t *c)
{
    return (uint32_t)(c->segments.size / sizeof(segment_t));
}

// The packets that may end last release at system scope: behind the segment the record may signal.
// keel_advance, which does, cannot do that for them: not on every GPU does a kernel write back the
// L2. Those before the last barrier release to the GPU, as it is only the GPU that goes on.
static void group_release(compiler_t *c)
{
    program_command_t *command = (program_command_t *)(void *)(c->commands.data + c->group);
    const program_command_t *end = command_now(c) + 1;
    for (; command != end; command++)
        command->packet.words[0] =
            (command->packet.words[0] & ~(uint32_t)AMDGPU_RELEASE) | AMDGPU_RELEASE_SYSTEM;
}

void compile_end(compiler_t *c, segment_end_t end, uint32_t target, uint32_t other)
{
    segment_t *segment = segment_now(c);
    if (segment->count) group_release(c);
    segment->end = end;
    segment->target = target;
    segment->other = other;
    segment->offset = c->offset;
    uint32_t packets = segment->packets + 1 + segment_is_wide(segment);
    if (packets > c->room) c->room = packets;
    if (c->arguments > c->most_arguments) c->most_arguments = c->arguments;
}

// Ends a segment that has as much as one may have.
static keel_status_t segment_split(compiler_t *c)
{
    enum { PACKETS = 2 }; // of a command at most
    if (segment_now(c)->packets + PACKETS <= PROGRAM_SEGMENT && c->arguments < PROGRAM_ARGUMENTS)
        return NULL;
    compile_end(c, END_GOTO, compile_count(c), 0);
    return compile_begin(c);
}

// If a command before may fail, what is behind is issued when it is known that none has.
keel_status_t compile_barrier(compiler_t *c)
{
    c->barrier |= c->now;
    c->now = false;
    if (!c->risky) return NULL;
    compile_end(c, END_GOTO, compile_count(c), 0);
    return compile_begin(c);
}

static uint32_t arguments_place(compiler_t *c, uint32_t size)
{
    uint32_t place = c->arguments;
    c->arguments += (uint32_t)aligned(size);
    return place;
}

// What the record waited for is acquired at system scope by all packets of a program that may begin
// first. Between those and the others there is a barrier, or the packet behind a segment: since
// then there was only the GPU's own work. group_release has the last ones.
static uint32_t fences_of(compiler_t *c)
{
    bool first = compile_count(c) == 1 && c->group == segment_now(c)->commands;
    return (first ? AMDGPU_ACQUIRE_SYSTEM : AMDGPU_ACQUIRE_AGENT) | AMDGPU_RELEASE_AGENT;
}

// A command of one packet, behind what the last barrier is for.
static keel_status_t command_add(compiler_t *c, const amdgpu_launch_t *launch)
{
    KEEL_TRY(segment_split(c));
    program_command_t *command = vector_grow(&c->commands, sizeof *command);
    segment_t *segment = segment_now(c);
    hsa_kernel_dispatch_packet_t packet;
    if (!command) return status_no_memory();
    if (c->barrier) c->group = c->commands.size - sizeof *command;
    amdgpu_packet_make(launch, 0, fences_of(c), &packet);
    packet.kernel_object = amdgpu_kernel_object(launch->kernel, c->node);
    if (c->barrier) packet.header |= BARRIER_BIT;
    memcpy(&command->packet, &packet, sizeof packet);
    command->packet_at = segment->packets;
    command->offset = c->offset;
    segment->packets++;
    segment->count++;
    c->barrier = false;
    c->now = true;
    return NULL;
}

// One whose arguments are known, but for what is patched: then each execution has a copy of them.
static keel_status_t launch_add(compiler_t *c, const amdgpu_launch_t *launch, bool patched)
{
    uint64_t declared = launch->kernel->arguments;
    uint64_t size = aligned(launch->size > declared ? launch->size : declared);
    KEEL_TRY(command_add(c, launch));
    program_command_t *command = command_now(c);
    command->arguments = c->data.size;
    unsigned char *bytes = vector_grow(&c->data, size);
    if (!bytes) return status_no_memory();
    memcpy(bytes, launch->arguments, launch->size);
    if (!patched) return NULL;
    command->kind = COMMAND_PATCHED;
    command->size = (uint32_t)size;
    command->place = arguments_place(c, command->size);
    return NULL;
}

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

static bool ref_is_late(const keel_ref_t *ref)
{
    return ref->buffer && ref->buffer->root->pool;
}

// A buffer of a pool gets a slot of the program's own, in which its address will stand.
static keel_status_t late_slot(compiler_t *c, const keel_ref_t *ref, uint32_t *slot)
{
    pool_word_t *word;
    *slot = (uint32_t)(c->table.size / sizeof(table_entry_t));
    table_entry_t *entry = vector_grow(&c->table, sizeof *entry);
    if (!entry) return status_no_memory();
    entry->address = ref->buffer->offset;
    KEEL_TRY(pool_word(ref->buffer->root, &word));
    late_t *late = &c->lates->list[c->lates->count++];
    *late = (late_t){.word = (uintptr_t)word,
                     .user = (uintptr_t)ref->buffer,
                     .step = c->lates->step,
                     .offset = c->offset};
    return NULL;
}

// The slot of what is bound later.
static keel_status_t slot_of_ref(compiler_t *c, const keel_ref_t *ref, uint32_t *slot)
{
    *slot = ref->slot;
    return ref_is_late(ref) ? late_slot(c, ref, slot) : NULL;
}

// What a reference means: its address, if that is known.
static keel_status_t place_of(compiler_t *c, const keel_ref_t *ref, place_t *place)
{
    keel_bound_t bound;
    if (keel_ref_is_parameter(ref)) {
        *place = (place_t){ref->offset, ref->length, PLACE_PARAMETERS, 0};
    } else if (!ref->buffer || ref_is_late(ref)) {
        *place = (place_t){ref->offset, ref->length, 0, 0};
        KEEL_TRY(slot_of_ref(c, ref, &place->slot));
    } else {
        KEEL_TRY(keel_bind_ref(ref, NULL, &bound));
        *place = (place_t){bound.address, bound.length, PLACE_KNOWN, 0};
    }
    return NULL;
}

// A fill or a copy that the GPU works out. `risky`: its range may turn out wrong.
static keel_status_t late_add(compiler_t *c, amdgpu_builtin_t builtin, bool risky, const void *more,
                              uint64_t more_size)
{
    uint64_t offset;
    amdgpu_launch_t launch = builtin_of(c, builtin, NULL, 0, 1);
    KEEL_TRY(data_add(c, more, more_size, &offset));
    KEEL_TRY(command_add(c, &launch));
    program_command_t *command = command_now(c);
    command->kind = builtin == AMDGPU_FILL ? COMMAND_FILL : COMMAND_COPY;
    command->more = offset;
    command->size = (uint32_t)aligned(launch.kernel->arguments);
    command->place = arguments_place(c, command->size);
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
    KEEL_TRY(place_of(c, &fill->target, &late.target));
    bool whole = late.target.length == PLACE_WHOLE && fill->pattern_size > 1;
    if (fill->given || late.target.slot != PLACE_KNOWN)
        return late_add(c, AMDGPU_FILL, whole, &late, sizeof late);
    KEEL_TRY(keel_bind_fill(fill, NULL, &target, &pattern));
    if (!target.length) return NULL;
    uint32_t groups = fill_arguments(&a, target.address, target.length, pattern);
    amdgpu_launch_t launch = builtin_of(c, AMDGPU_FILL, &a, sizeof a, groups);
    return launch_add(c, &launch, false);
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
    return launch_add(c, &launch, false);
}

keel_status_t compile_copy(compiler_t *c, const keel_cmd_copy_t *copy)
{
    program_copy_t both;
    keel_bound_t source, target;
    KEEL_TRY(place_of(c, &copy->source, &both.source));
    KEEL_TRY(place_of(c, &copy->target, &both.target));
    if (both.source.slot == PLACE_KNOWN && both.target.slot == PLACE_KNOWN)
        KEEL_TRY(keel_bind_copy(copy, NULL, &source, &target));
    return copy_add(c, &both);
}

// A word of the data in which an offset stands that is to become an address.
static keel_status_t relocation_add(compiler_t *c, uint64_t offset)
{
    uint64_t *added = vector_grow(&c->relocations, sizeof *added);
    if (!added) return status_no_memory();
    *added = offset;
    return NULL;
}

// The bytes lie in the program, or come with the execution.
keel_status_t compile_update(compiler_t *c, const keel_cmd_update_t *update)
{
    program_copy_t both;
    uint64_t length = update->target.length;
    if (!length) return NULL;
    KEEL_TRY(place_of(c, &update->target, &both.target));
    both.source = (place_t){update->offset, length, PLACE_PARAMETERS, 0};
    if (update->given) return copy_add(c, &both);
    both.source.slot = PLACE_KNOWN;
    KEEL_TRY(data_add(c, update->data, length, &both.source.offset));
    KEEL_TRY(copy_add(c, &both));
    const program_command_t *command = command_now(c);
    return relocation_add(c, command->kind == COMMAND_COPY
                                 ? command->more + offsetof(program_copy_t, source.offset)
                                 : command->arguments + offsetof(builtin_copy_t, source));
}

static keel_status_t patch_add(compiler_t *c, const patch_t *patch)
{
    patch_t *added = vector_grow(&c->patches, sizeof *added);
    if (!added) return status_no_memory();
    *added = *patch;
    return NULL;
}

static uint32_t patch_count(const compiler_t *c)
{
    return (uint32_t)(c->patches.size / sizeof(patch_t));
}

// The patches so far are of the last command.
static keel_status_t patches_take(compiler_t *c)
{
    program_command_t *command = command_now(c);
    KEEL_TRY(data_add(c, c->patches.data, c->patches.size, &command->patches));
    command->patch_count = patch_count(c);
    c->patches.size = 0;
    return NULL;
}

keel_status_t compile_timestamp(compiler_t *c, const keel_cmd_timestamp_t *timestamp)
{
    builtin_timestamp_t a = {.ns = 1000000, .ticks = c->device->clock_khz};
    amdgpu_launch_t launch = builtin_of(c, AMDGPU_TIMESTAMP, &a, sizeof a, 1);
    place_t target;
    KEEL_TRY(place_of(c, &timestamp->target, &target));
    if (target.slot == PLACE_KNOWN)
        a.target = target.offset;
    else
        KEEL_TRY(patch_add(c, &(patch_t){PATCH_SLOT, 0, target.slot, 0, target.offset}));
    KEEL_TRY(launch_add(c, &launch, patch_count(c)));
    return patches_take(c);
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
        if ((ref->buffer && !ref_is_late(ref)) || patches[i].offset >= end) continue;
        if (keel_ref_is_parameter(ref)) {
            uint32_t most = end - patches[i].offset;
            patch.kind = PATCH_BYTES;
            patch.size = ref->length < most ? (uint32_t)ref->length : most;
        } else {
            KEEL_TRY(slot_of_ref(c, ref, &patch.slot));
        }
        KEEL_TRY(patch_add(c, &patch));
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
        if (ref->buffer && !ref_is_late(ref)) continue;
        bool whole = ref->length == KEEL_WHOLE;
        patch_t patch = {PATCH_SLOT, address, 0, whole ? length : 0, ref->offset};
        KEEL_TRY(slot_of_ref(c, ref, &patch.slot));
        KEEL_TRY(patch_add(c, &patch));
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
    KEEL_TRY(place_of(c, &d->counts, &grid.counts));
    bool given = keel_ref_is_parameter(&d->counts);
    if (given) grid.dynamic = false;
    if (!given && !grid.dynamic && compile_count(c) == 1) segment_now(c)->reads = 1;
    if (grid.dynamic) grid.place = arguments_place(c, sizeof(patch_args_t));
    KEEL_TRY(data_add(c, &grid, sizeof grid, &offset));
    program_command_t *command = command_now(c);
    command->kind = COMMAND_COUNTED;
    command->more = offset;
    if (grid.dynamic) segment_now(c)->packets++;
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
    KEEL_TRY(launch_add(c, &launch, patch_count(c) || counted));
    if (counted) KEEL_TRY(grid_add(c, d, launch.kernel));
    return patches_take(c);
}

keel_status_t compile_value(compiler_t *c, const keel_ref_t *ref)
{
    return place_of(c, ref, &segment_now(c)->value);
}

keel_status_t compile_ways(compiler_t *c, const way_t *ways, uint32_t count)
{
    segment_t *segment = segment_now(c);
    segment->way_count = count;
    return data_add(c, ways, count * sizeof *ways, &segment->ways);
}

void compile_loop(compiler_t *c, uint32_t depth, uint32_t most)
{
    segment_now(c)->depth = depth;
    segment_now(c)->most = most;
}

static void segment_resolve(const compiler_t *c, segment_t *segment, const uint32_t *after)
{
    way_t *ways = (way_t *)(void *)(c->data.data + segment->ways);
    switch ((segment_end_t)segment->end) {
    case END_RETURN:
    case END_GOTO: return;
    case END_AFTER:
        segment->end = END_GOTO;
        segment->target = after[segment->target];
        return;
    case END_IF:
    case END_WHILE: segment->target = after[segment->target]; break;
    case END_SWITCH:
        for (uint32_t i = 0; i < segment->way_count; i++) ways[i].target = after[ways[i].target];
    }
    segment->other = after[segment->other];
}

void compile_resolve(compiler_t *c, const uint32_t *after)
{
    segment_t *segments = (segment_t *)(void *)c->segments.data;
    for (uint32_t i = 0; i < compile_count(c); i++) segment_resolve(c, &segments[i], after);
}

uint64_t compile_size(const compiler_t *c)
{
    return PROGRAM_HEAD + c->segments.size + aligned(c->commands.size) + c->data.size +
           c->table.size;
}

// The table of buffers of pools comes behind all else.
static void table_write(const compiler_t *c, unsigned char *to, uint64_t address)
{
    uint64_t count = c->table.size / sizeof(table_entry_t);
    if (!count) return;
    late_t *lates = c->lates->list + c->lates->count - count;
    for (uint64_t i = 0; i < count; i++) lates[i].entry = address + i * sizeof(table_entry_t);
    memcpy(to, c->table.data, c->table.size);
}

uint64_t compile_table(const compiler_t *c)
{
    return c->table.size ? compile_size(c) - c->table.size : 0;
}

// Offsets become addresses.
static void segments_place(const compiler_t *c, uint64_t commands, uint64_t data)
{
    segment_t *segments = (segment_t *)(void *)c->segments.data;
    program_command_t *list = (program_command_t *)(void *)c->commands.data;
    for (uint32_t i = 0; i < compile_count(c); i++) {
        segments[i].commands += commands;
        segments[i].ways += data;
    }
    for (uint64_t i = 0; i < c->commands.size / sizeof *list; i++) {
        list[i].arguments += data;
        list[i].patches += data;
        list[i].more += data;
        memcpy(&list[i].packet.words[ARGUMENTS_WORD], &list[i].arguments, sizeof(uint64_t));
    }
}

void compile_write(compiler_t *c, void *memory, uint64_t address)
{
    unsigned char *to = memory;
    uint64_t segments = PROGRAM_HEAD, commands = segments + c->segments.size;
    uint64_t data = commands + aligned(c->commands.size);
    const uint64_t *relocations = (const uint64_t *)(const void *)c->relocations.data;
    const program_t program = {address + segments, compile_count(c), 0};
    segments_place(c, address + commands, address + data);
    for (uint64_t i = 0; i < c->relocations.size / sizeof *relocations; i++)
        *(uint64_t *)(void *)(c->data.data + relocations[i]) += address + data;
    memcpy(to, &program, sizeof program);
    memcpy(to + segments, c->segments.data, c->segments.size);
    if (c->commands.size) memcpy(to + commands, c->commands.data, c->commands.size);
    if (c->data.size) memcpy(to + data, c->data.data, c->data.size);
    table_write(c, to + data + c->data.size, address + data + c->data.size);
}

void compile_finish(compiler_t *c)
{
    vector_finish(&c->commands);
    vector_finish(&c->segments);
    vector_finish(&c->data);
    vector_finish(&c->patches);
    vector_finish(&c->relocations);
    vector_finish(&c->table);
}
