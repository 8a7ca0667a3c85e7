// SPDX-License-Identifier: Apache-2.0
// Makes programs for the GPU (device/program.h) of commands. The caller walks over them (program.c)
// and says where segments end. Where they go on is said by the number of a segment (END_GOTO), or
// by that of a command, behind which a segment begins (compile_resolve).
#ifndef KEEL_SRC_DRIVERS_AMDGPU_HOST_COMPILE_H_
#define KEEL_SRC_DRIVERS_AMDGPU_HOST_COMPILE_H_

#include "drivers/amdgpu/device/program.h"
#include "drivers/amdgpu/host/scheduler.h"
#include "kit/bind.h"

_Static_assert((int)RUN_MAX_DEPTH <= (int)RECORD_LOOPS, "a record counts the rounds of all loops");

typedef struct compile_vector_t {
    unsigned char *data; // owned, or of a compile_room_t
    uint64_t size, capacity;
    bool owned;
} compile_vector_t;

// The caller's, for the time being: commands of small submissions need no memory of their own.
typedef struct compile_room_t {
    _Alignas(16) unsigned char segments[2 * sizeof(segment_t)];
    _Alignas(PROTOCOL_LINE) unsigned char commands[8 * sizeof(program_command_t)];
    _Alignas(16) unsigned char data[4096];
    _Alignas(16) unsigned char patches[16 * sizeof(patch_t)];
    _Alignas(16) unsigned char table[16 * sizeof(table_entry_t)];
} compile_room_t;

// Addresses in there are offsets until compile_write.
typedef struct compiler_t {
    amdgpu_device_t *device;
    uint32_t node; // the GPU that the program is for
    compile_vector_t segments, commands, data;
    compile_vector_t patches;     // patch_t: of the command that is being made
    compile_vector_t relocations; // uint64_t: words of the data that become addresses
    compile_vector_t table;       // table_entry_t: of buffers of pools
    amdgpu_lates_t *lates;        // the last ones are those of the table
    uint64_t group;               // in `commands`: the first one behind the last barrier
    uint32_t offset;              // of the command in its list: the caller's
    uint32_t arguments;           // bytes, of the segment
    uint32_t most_arguments;      // the same of the segment that has most
    uint32_t room;                // packets that the longest segment has in the ring
    bool barrier, now;            // the next packet waits for all before; packets came since
    bool risky;                   // a command of the segment may fail when it is issued
} compiler_t;

void compile_init(compiler_t *c, amdgpu_device_t *device, const amdgpu_range_t *range,
                  compile_room_t *room);
// Begins a segment; ends the one that was begun last.
keel_status_t compile_begin(compiler_t *c) KEEL_MUST_USE;
void compile_end(compiler_t *c, segment_end_t end, uint32_t target, uint32_t other);
// Segments so far: the number of the next one.
uint32_t compile_count(const compiler_t *c);
// Of the segment that was begun last: the word that decides, and the ways of a switch.
keel_status_t compile_value(compiler_t *c, const keel_ref_t *ref) KEEL_MUST_USE;
keel_status_t compile_ways(compiler_t *c, const way_t *ways, uint32_t count) KEEL_MUST_USE;

// Of a while: its depth, and how often it may run; 0: any number of times.
void compile_loop(compiler_t *c, uint32_t depth, uint32_t most);
// Behind all: after[n] is the segment behind command n, for those that begin one.
void compile_resolve(compiler_t *c, const uint32_t *after);

keel_status_t compile_barrier(compiler_t *c) KEEL_MUST_USE;
// Commands of the segment that was begun last. They fail as they would if they ran.
keel_status_t compile_fill(compiler_t *c, const keel_cmd_fill_t *fill) KEEL_MUST_USE;
keel_status_t compile_copy(compiler_t *c, const keel_cmd_copy_t *copy) KEEL_MUST_USE;
keel_status_t compile_update(compiler_t *c, const keel_cmd_update_t *update) KEEL_MUST_USE;
keel_status_t compile_timestamp(compiler_t *c, const keel_cmd_timestamp_t *t) KEEL_MUST_USE;
keel_status_t compile_dispatch(compiler_t *c, const keel_cmd_dispatch_t *d) KEEL_MUST_USE;

// The bytes of the program; and writes it to where the GPU sees it at `address`, a multiple of 64.
uint64_t compile_size(const compiler_t *c);
// Where in it the table of the step is that runs it; 0: there is none.
uint64_t compile_table(const compiler_t *c);
void compile_write(compiler_t *c, void *memory, uint64_t address);
void compile_finish(compiler_t *c);

#endif
