// SPDX-License-Identifier: Apache-2.0
// The parts of a program for the GPU (device/program.h), which grow side by side until it is known
// where the whole is to be.
#include "drivers/amdgpu/host/program/assemble.h"

#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "kit/pool.h"

enum {
    BARRIER_BIT = 1 << HSA_PACKET_HEADER_BARRIER,
    PROGRAM_HEAD = 64,   // bytes in front of the segments
    ARGUMENTS_WORD = 10, // of a packet: where its arguments' address is
};

static void vector_finish(assemble_vector_t *v)
{
    if (v->owned) mem_free_aligned(v->data);
}

// So many more bytes, zeroed; NULL: there is no memory.
static void *vector_grow(assemble_vector_t *v, uint64_t size)
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

static assemble_vector_t vector_in(unsigned char *room, uint64_t capacity)
{
    return (assemble_vector_t){.data = room, .capacity = capacity};
}

void assemble_init(compiler_t *c, amdgpu_device_t *device, const amdgpu_range_t *range,
                   assemble_room_t *room)
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

keel_status_t assemble_data(compiler_t *c, const void *bytes, uint64_t size, uint64_t *offset)
{
    *offset = c->data.size;
    void *at = vector_grow(&c->data, assemble_aligned(size));
    if (!at) return status_no_memory();
    if (size) memcpy(at, bytes, size);
    return NULL;
}

keel_status_t assemble_begin(compiler_t *c)
{
    segment_t *segment = vector_grow(&c->segments, sizeof *segment);
    if (!segment) return status_no_memory();
    segment->commands = c->group = c->commands.size;
    c->arguments = 0;
    c->barrier = c->now = c->risky = false;
    return NULL;
}

// The packets that may end last release at system scope: behind the segment the record may signal.
// keel_advance, which does, cannot do that for them: not on every GPU does a kernel write back the
// L2. Those before the last barrier release to the GPU, as it is only the GPU that goes on.
static void group_release(compiler_t *c)
{
    program_command_t *command = (program_command_t *)(void *)(c->commands.data + c->group);
    const program_command_t *end = assemble_command_now(c) + 1;
    for (; command != end; command++)
        command->packet.words[0] =
            (command->packet.words[0] & ~(uint32_t)AMDGPU_RELEASE) | AMDGPU_RELEASE_SYSTEM;
}

void assemble_end(compiler_t *c, segment_end_t end, uint32_t target, uint32_t other)
{
    segment_t *segment = assemble_segment_now(c);
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
    if (assemble_segment_now(c)->packets + PACKETS <= PROGRAM_SEGMENT &&
        c->arguments < PROGRAM_ARGUMENTS)
        return NULL;
    assemble_end(c, END_GOTO, assemble_count(c), 0);
    return assemble_begin(c);
}

// If a command before may fail, what is behind is issued when it is known that none has.
keel_status_t assemble_barrier(compiler_t *c)
{
    c->barrier |= c->now;
    c->now = false;
    if (!c->risky) return NULL;
    assemble_end(c, END_GOTO, assemble_count(c), 0);
    return assemble_begin(c);
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

keel_status_t assemble_slot(compiler_t *c, const keel_ref_t *ref, uint32_t *slot)
{
    *slot = ref->slot;
    return assemble_is_late(ref) ? late_slot(c, ref, slot) : NULL;
}

keel_status_t assemble_place(compiler_t *c, const keel_ref_t *ref, place_t *place)
{
    keel_bound_t bound;
    if (keel_ref_is_parameter(ref)) {
        *place = (place_t){ref->offset, ref->length, PLACE_PARAMETERS, 0};
    } else if (!ref->buffer || assemble_is_late(ref)) {
        *place = (place_t){ref->offset, ref->length, 0, 0};
        KEEL_TRY(assemble_slot(c, ref, &place->slot));
    } else {
        KEEL_TRY(keel_bind_ref(ref, NULL, &bound));
        *place = (place_t){bound.address, bound.length, PLACE_KNOWN, 0};
    }
    return NULL;
}

keel_status_t assemble_value(compiler_t *c, const keel_ref_t *ref)
{
    return assemble_place(c, ref, &assemble_segment_now(c)->value);
}

keel_status_t assemble_ways(compiler_t *c, const way_t *ways, uint32_t count)
{
    segment_t *segment = assemble_segment_now(c);
    segment->way_count = count;
    return assemble_data(c, ways, count * sizeof *ways, &segment->ways);
}

void assemble_loop(compiler_t *c, uint32_t depth, uint32_t most)
{
    assemble_segment_now(c)->depth = depth;
    assemble_segment_now(c)->most = most;
}

uint32_t assemble_arguments(compiler_t *c, uint32_t size)
{
    uint32_t place = c->arguments;
    c->arguments += (uint32_t)assemble_aligned(size);
    return place;
}

// What the record waited for is acquired at system scope by all packets of a program that may begin
// first. Between those and the others there is a barrier, or the packet behind a segment: since
// then there was only the GPU's own work. group_release has the last ones.
static uint32_t fences_of(compiler_t *c)
{
    bool first = assemble_count(c) == 1 && c->group == assemble_segment_now(c)->commands;
    return (first ? AMDGPU_ACQUIRE_SYSTEM : AMDGPU_ACQUIRE_AGENT) | AMDGPU_RELEASE_AGENT;
}

keel_status_t assemble_command(compiler_t *c, const amdgpu_launch_t *launch)
{
    KEEL_TRY(segment_split(c));
    program_command_t *command = vector_grow(&c->commands, sizeof *command);
    segment_t *segment = assemble_segment_now(c);
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

keel_status_t assemble_launch(compiler_t *c, const amdgpu_launch_t *launch, bool patched)
{
    uint64_t declared = launch->kernel->arguments;
    uint64_t size = assemble_aligned(launch->size > declared ? launch->size : declared);
    KEEL_TRY(assemble_command(c, launch));
    program_command_t *command = assemble_command_now(c);
    command->arguments = c->data.size;
    unsigned char *bytes = vector_grow(&c->data, size);
    if (!bytes) return status_no_memory();
    memcpy(bytes, launch->arguments, launch->size);
    if (!patched) return NULL;
    command->kind = COMMAND_PATCHED;
    command->size = (uint32_t)size;
    command->place = assemble_arguments(c, command->size);
    return NULL;
}

keel_status_t assemble_relocation(compiler_t *c, uint64_t offset)
{
    uint64_t *added = vector_grow(&c->relocations, sizeof *added);
    if (!added) return status_no_memory();
    *added = offset;
    return NULL;
}

keel_status_t assemble_patch(compiler_t *c, const patch_t *patch)
{
    patch_t *added = vector_grow(&c->patches, sizeof *added);
    if (!added) return status_no_memory();
    *added = *patch;
    return NULL;
}

keel_status_t assemble_patches(compiler_t *c)
{
    program_command_t *command = assemble_command_now(c);
    KEEL_TRY(assemble_data(c, c->patches.data, c->patches.size, &command->patches));
    command->patch_count = assemble_patch_count(c);
    c->patches.size = 0;
    return NULL;
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

void assemble_resolve(compiler_t *c, const uint32_t *after)
{
    segment_t *segments = (segment_t *)(void *)c->segments.data;
    for (uint32_t i = 0; i < assemble_count(c); i++) segment_resolve(c, &segments[i], after);
}

uint64_t assemble_size(const compiler_t *c)
{
    return PROGRAM_HEAD + c->segments.size + assemble_aligned(c->commands.size) + c->data.size +
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

uint64_t assemble_table(const compiler_t *c)
{
    return c->table.size ? assemble_size(c) - c->table.size : 0;
}

// Offsets become addresses.
static void segments_place(const compiler_t *c, uint64_t commands, uint64_t data)
{
    segment_t *segments = (segment_t *)(void *)c->segments.data;
    program_command_t *list = (program_command_t *)(void *)c->commands.data;
    for (uint32_t i = 0; i < assemble_count(c); i++) {
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

void assemble_write(compiler_t *c, void *memory, uint64_t address)
{
    unsigned char *to = memory;
    uint64_t segments = PROGRAM_HEAD, commands = segments + c->segments.size;
    uint64_t data = commands + assemble_aligned(c->commands.size);
    const uint64_t *relocations = (const uint64_t *)(const void *)c->relocations.data;
    const program_t program = {address + segments, assemble_count(c), 0};
    segments_place(c, address + commands, address + data);
    for (uint64_t i = 0; i < c->relocations.size / sizeof *relocations; i++)
        *(uint64_t *)(void *)(c->data.data + relocations[i]) += address + data;
    memcpy(to, &program, sizeof program);
    memcpy(to + segments, c->segments.data, c->segments.size);
    if (c->commands.size) memcpy(to + commands, c->commands.data, c->commands.size);
    if (c->data.size) memcpy(to + data, c->data.data, c->data.size);
    table_write(c, to + data + c->data.size, address + data + c->data.size);
}

void assemble_finish(compiler_t *c)
{
    vector_finish(&c->commands);
    vector_finish(&c->segments);
    vector_finish(&c->data);
    vector_finish(&c->patches);
    vector_finish(&c->relocations);
    vector_finish(&c->table);
}
