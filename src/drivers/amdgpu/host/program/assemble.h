// SPDX-License-Identifier: Apache-2.0
// The parts of a program for the GPU (device/program.h), and how they become one. Where segments go
// on is said by the number of a segment (END_GOTO), or by that of a command, behind which a segment
// begins (assemble_resolve).
#ifndef KEEL_SRC_DRIVERS_AMDGPU_HOST_PROGRAM_ASSEMBLE_H_
#define KEEL_SRC_DRIVERS_AMDGPU_HOST_PROGRAM_ASSEMBLE_H_

#include "drivers/amdgpu/device/program.h"
#include "drivers/amdgpu/host/program/program.h"
#include "kit/bind.h"

_Static_assert((int)RUN_MAX_DEPTH <= (int)RECORD_LOOPS, "a record counts the rounds of all loops");

typedef struct assemble_vector_t {
    unsigned char *data; // owned, or of a assemble_room_t
    uint64_t size, capacity;
    bool owned;
} assemble_vector_t;

// The caller's, for the time being: commands of small submissions need no memory of their own.
typedef struct assemble_room_t {
    _Alignas(16) unsigned char segments[2 * sizeof(segment_t)];
    _Alignas(PROTOCOL_LINE) unsigned char commands[8 * sizeof(program_command_t)];
    _Alignas(16) unsigned char data[4096];
    _Alignas(16) unsigned char patches[16 * sizeof(patch_t)];
    _Alignas(16) unsigned char table[16 * sizeof(table_entry_t)];
} assemble_room_t;

// Addresses in there are offsets until assemble_write.
typedef struct compiler_t {
    amdgpu_device_t *device;
    uint32_t node; // the GPU that the program is for
    assemble_vector_t segments, commands, data;
    assemble_vector_t patches;     // patch_t: of the command that is being made
    assemble_vector_t relocations; // uint64_t: words of the data that become addresses
    assemble_vector_t table;       // table_entry_t: of buffers of pools
    amdgpu_lates_t *lates;         // the last ones are those of the table
    uint64_t group;                // in `commands`: the first one behind the last barrier
    uint32_t offset;               // of the command in its list: the caller's
    uint32_t arguments;            // bytes, of the segment
    uint32_t most_arguments;       // the same of the segment that has most
    uint32_t room;                 // packets that the longest segment has in the ring
    bool barrier, now;             // the next packet waits for all before; packets came since
    bool risky;                    // a command of the segment may fail when it is issued
} compiler_t;

void assemble_init(compiler_t *c, amdgpu_device_t *device, const amdgpu_range_t *range,
                   assemble_room_t *room);

// Begins a segment; ends the one that was begun last.
keel_status_t assemble_begin(compiler_t *c) KEEL_MUST_USE;
void assemble_end(compiler_t *c, segment_end_t end, uint32_t target, uint32_t other);
// What comes behind waits for what came before; or is in another segment, if that may fail.
keel_status_t assemble_barrier(compiler_t *c) KEEL_MUST_USE;
// Of the segment that was begun last: the word that decides, and the ways of a switch.
keel_status_t assemble_value(compiler_t *c, const keel_ref_t *ref) KEEL_MUST_USE;
keel_status_t assemble_ways(compiler_t *c, const way_t *ways, uint32_t count) KEEL_MUST_USE;
// Of a while: its depth, and how often it may run; 0: any number of times.
void assemble_loop(compiler_t *c, uint32_t depth, uint32_t most);

// A command of one packet, behind what the last barrier is for.
keel_status_t assemble_command(compiler_t *c, const amdgpu_launch_t *launch) KEEL_MUST_USE;
// One whose arguments are known, but for what is patched: then each execution has a copy of them.
keel_status_t assemble_launch(compiler_t *c, const amdgpu_launch_t *launch,
                              bool patched) KEEL_MUST_USE;
// Where so many bytes of the last command are among the arguments of its segment.
uint32_t assemble_arguments(compiler_t *c, uint32_t size);
// Bytes of the program; *offset is where they will be in its data.
keel_status_t assemble_data(compiler_t *c, const void *bytes, uint64_t size,
                            uint64_t *offset) KEEL_MUST_USE;
// A word of the data in which an offset stands that is to become an address.
keel_status_t assemble_relocation(compiler_t *c, uint64_t offset) KEEL_MUST_USE;
// What a reference means: its address, if that is known.
keel_status_t assemble_place(compiler_t *c, const keel_ref_t *ref, place_t *place) KEEL_MUST_USE;
// The slot of what is bound later.
keel_status_t assemble_slot(compiler_t *c, const keel_ref_t *ref, uint32_t *slot) KEEL_MUST_USE;
// A patch; and makes those so far the last command's.
keel_status_t assemble_patch(compiler_t *c, const patch_t *patch) KEEL_MUST_USE;
keel_status_t assemble_patches(compiler_t *c) KEEL_MUST_USE;

// Behind all: after[n] is the segment behind command n, for those that begin one.
void assemble_resolve(compiler_t *c, const uint32_t *after);
// The bytes of the program; and writes it to where the GPU sees it at `address`, a multiple of 64.
uint64_t assemble_size(const compiler_t *c);
// Where in it the table of the step is that runs it; 0: there is none.
uint64_t assemble_table(const compiler_t *c);
void assemble_write(compiler_t *c, void *memory, uint64_t address);
void assemble_finish(compiler_t *c);

// Arguments, and pieces of the data, begin at multiples of this.
enum { ASSEMBLE_ALIGN = 16 };

static inline uint64_t assemble_aligned(uint64_t size)
{
    return (size + ASSEMBLE_ALIGN - 1) / ASSEMBLE_ALIGN * ASSEMBLE_ALIGN;
}

// The one that was added last.
static inline program_command_t *assemble_command_now(compiler_t *c)
{
    return (program_command_t *)(void *)(c->commands.data + c->commands.size) - 1;
}

// The one that was begun last.
static inline segment_t *assemble_segment_now(compiler_t *c)
{
    return (segment_t *)(void *)(c->segments.data + c->segments.size) - 1;
}

// Segments so far: the number of the next one.
static inline uint32_t assemble_count(const compiler_t *c)
{
    return (uint32_t)(c->segments.size / sizeof(segment_t));
}

// Patches of the command that is being made, so far.
static inline uint32_t assemble_patch_count(const compiler_t *c)
{
    return (uint32_t)(c->patches.size / sizeof(patch_t));
}

// Whether the memory of a buffer is known only when the record begins.
static inline bool assemble_is_late(const keel_ref_t *ref)
{
    return ref->buffer && ref->buffer->root->pool;
}

#endif
