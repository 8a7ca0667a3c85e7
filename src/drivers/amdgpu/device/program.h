// SPDX-License-Identifier: Apache-2.0
// Recordings as programs that the GPU runs by itself. A program is made once and never written
// again, so that several submissions may run it at the same time: all that differs between them
// stands in their records (protocol.h). Its commands are in segments. The packets of a segment
// are in the ring at the same time; behind them is one that runs scheduler_advance (scheduler.h),
// which looks where the program goes on. Compiled for host and GPU, as protocol.h.
#ifndef KEEL_SRC_DRIVERS_AMDGPU_DEVICE_PROGRAM_H_
#define KEEL_SRC_DRIVERS_AMDGPU_DEVICE_PROGRAM_H_

#include "builtin/arguments.h"
#include "drivers/amdgpu/device/protocol.h"

enum {
    PROGRAM_SEGMENT = 256,        // packets of a segment at most
    PROGRAM_ARGUMENTS = 64 << 10, // bytes of arguments of a segment, about
    PROGRAM_SERIAL = 8,           // commands that one work-item writes one after the other
    PROGRAM_WIDE = 64,            // a workgroup of keel_issue, which takes one command each
    PROGRAM_GROUPS = 1024,        // of a fill or a copy at most
    PROGRAM_HIDDEN = 7,           // kinds of hidden arguments, as amdgpu_hidden_kind_t
    PROGRAM_NONE = -1,            // no segment
};

#define PLACE_KNOWN      UINT32_MAX       // in place_t.slot: the address is known
#define PLACE_PARAMETERS (UINT32_MAX - 1) // among the parameters of the execution
#define PLACE_WHOLE      UINT64_MAX       // in place_t.length: all from the offset on

// Memory that a command refers to.
typedef struct place_t {
    uint64_t offset; // from the beginning of what is bound; or the address
    uint64_t length;
    uint32_t slot;
    uint32_t unused;
} place_t;

// What is bound to a slot.
typedef struct table_entry_t {
    uint64_t address, length;
} table_entry_t;

// A program that a record runs, and what with.
typedef struct step_t {
    uint64_t program;    // program_t
    uint64_t table;      // table_entry_t
    uint64_t parameters; // bytes
} step_t;

typedef enum patch_kind_t { PATCH_SLOT, PATCH_BYTES } patch_kind_t;

// Written into the arguments at issue: address and length of what is bound, or parameters.
typedef struct patch_t {
    uint32_t kind;   // patch_kind_t
    uint32_t at;     // in the arguments
    uint32_t slot;   //
    uint32_t size;   // bytes of parameters; of a slot: where its length goes, 0: nowhere
    uint64_t offset; // in the slot, or in the parameters
} patch_t;

typedef enum command_kind_t {
    COMMAND_READY,   // the packet is all that there is to it
    COMMAND_PATCHED, // its arguments are copied, and patched
    COMMAND_FILL,    // of `more`, a program_fill_t
    COMMAND_COPY,    // of `more`, a program_copy_t
    COMMAND_COUNTED, // patched, its grid is in memory: `more`, a program_grid_t
} command_kind_t;

typedef struct program_command_t {
    packet_t packet;      // as in the ring, but for what is filled in
    uint64_t arguments;   // what is known of them
    uint64_t patches;     // patch_t [patch_count]
    uint64_t more;        //
    uint32_t kind;        // command_kind_t
    uint32_t packet_at;   // its first one, from that of the segment on
    uint32_t place, size; // where its arguments go, among the record's; multiples of 16
    uint32_t patch_count; //
    uint32_t offset;      // of the command in its list
} program_command_t;

typedef struct program_fill_t {
    place_t target;
    uint32_t pattern, pattern_size;
    uint32_t offset; // with `given`: where in the parameters it is
    uint32_t given;
} program_fill_t;

typedef struct program_copy_t {
    place_t target, source;
} program_copy_t;

// Counts in memory: read at issue, or, if commands before may write them, by keel_patch, a packet
// in front of the dispatch, whose header is invalid until then.
typedef struct program_grid_t {
    place_t counts;
    uint64_t most;                   // groups in all
    uint32_t dynamic;                // read by keel_patch
    uint32_t place;                  // of the arguments of keel_patch
    uint32_t raw;                    // else the block of arguments begins with the counts
    uint32_t hidden;                 // bits: those that a raw kernel takes
    uint32_t places[PROGRAM_HIDDEN]; // where
    uint32_t unused;
} program_grid_t;

typedef enum segment_end_t {
    END_RETURN,
    END_GOTO,
    END_IF,
    END_WHILE,
    END_SWITCH,
    END_AFTER, // the host's, while it makes a program: goes on behind a command
} segment_end_t;

typedef struct way_t {
    uint32_t match, target;
} way_t;

typedef struct segment_t {
    uint64_t commands;       // program_command_t [count]
    uint64_t ways;           // way_t [way_count], of a switch
    place_t value;           // of an if, a while, a switch
    uint32_t count, packets; //
    uint32_t end;            // segment_end_t
    uint32_t target, other;  // where it goes on, if the value is not 0; and if it is, or no way is
    uint32_t way_count;
    uint32_t depth, most; // of a while: among the loops of the record; rounds at most, 0: any
    uint32_t offset;      // of the command that ends it
    uint32_t reads;       // issue reads counts, and no packet of the record has ended
} segment_t;

// Its commands are written by keel_issue. That is a packet, so what it reads is what there was when
// the waits were over: the tick that lets a record go may have begun before, and not every GPU
// drops what its L2 has read when a kernel asks for it.
static inline bool segment_is_wide(const segment_t *segment)
{
    return segment->count > PROGRAM_SERIAL || segment->reads;
}

typedef struct program_t {
    uint64_t segments; // segment_t; it begins with the first
    uint32_t segment_count;
    uint32_t unused;
} program_t;

typedef struct issue_args_t {
    uint64_t record, segment; // record_t, segment_t
    uint64_t first;           // the number of its first packet
    uint64_t slots;           // of the trace, for its commands; RING_NONE: there are none
} issue_args_t;

_Static_assert(((offsetof(record_t, issue_args) + 15) & ~(size_t)15) + sizeof(issue_args_t) <=
                   offsetof(record_t, issue_args) + sizeof((record_t){0}.issue_args),
               "arguments of keel_issue, at a boundary of 16 bytes, fit into the record");

typedef struct patch_args_t {
    uint64_t record, command;   // record_t, program_command_t
    uint64_t packet, arguments; // of the dispatch
    uint64_t counts;            // uint32_t [3]
    uint64_t unused;
} patch_args_t;

// How many groups share the work on so many bytes by units, of which a power of two is the size.
static inline uint32_t groups_share(uint64_t length, uint32_t unit)
{
    uint64_t units = length >> __builtin_ctz(unit); // to divide takes the GPU far more
    uint64_t groups = (units + BUILTIN_GROUP - 1) / BUILTIN_GROUP;
    return (uint32_t)(groups < PROGRAM_GROUPS ? groups : PROGRAM_GROUPS);
}

// The arguments of a fill and of a copy; returns the groups.
static inline uint32_t fill_arguments(builtin_fill_t *a, uint64_t target, uint64_t length,
                                      uint32_t pattern)
{
    uint32_t unit = builtin_unit(target | length), groups = groups_share(length, unit);
    *a = (builtin_fill_t){target, length, pattern, groups * BUILTIN_GROUP, unit, 0};
    return groups;
}

static inline uint32_t copy_arguments(builtin_copy_t *a, uint64_t target, uint64_t source,
                                      uint64_t length)
{
    uint32_t unit = builtin_unit(target | source | length), groups = groups_share(length, unit);
    *a = (builtin_copy_t){target, source, length, groups * BUILTIN_GROUP, unit};
    return groups;
}

#endif
