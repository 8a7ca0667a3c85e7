// SPDX-License-Identifier: Apache-2.0
// Commands: operations as they are kept in recordings and submissions. One contiguous stream of
// records of different sizes, checked, with everything they point to copied in and every object
// retained, that each driver walks:
//
//     KEEL_EACH_COMMAND (c, s) ...
//
// Commands may run in any order and at the same time, but for barriers: a walker stops until
// everything before has ended at each command that keel_command_is_barrier() says.
//
// Blocks stay as they were recorded: a record begins each, one ends it, and an else or a case each
// has its own between them. Each of them knows where the others are (keel_cmd_block_t).
//
//     if v A end                        IF v, A, END
//     if v A else B end                 IF v, A, ELSE, B, END
//     while v A end                     WHILE v, A, END
//     switch v case 3 A case 7 B end    SWITCH v, CASE 3, A, CASE 7, B, END
//
// A driver that nests makes one body of each way through a block, and goes on behind its end:
//
//     KEEL_EACH_WAY (w, s, block)
//         body(keel_command_next(&w->head), keel_commands_at(s, w->next));
//
// A driver that takes one command after the other jumps: keel_command_step() of bind.h.
#ifndef KEEL_DRIVER_COMMAND_H_
#define KEEL_DRIVER_COMMAND_H_

#include <keel/driver/object.h>

// C++ has no arrays of open length, but its compilers do.
#ifdef __cplusplus
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic"
#endif

typedef enum keel_cmd_t {
    KEEL_CMD_BARRIER,
    KEEL_CMD_FILL,
    KEEL_CMD_UPDATE,
    KEEL_CMD_COPY,
    KEEL_CMD_ACROSS, // a copy whose one side lies on another device
    KEEL_CMD_DISPATCH,
    KEEL_CMD_TIMESTAMP,
    KEEL_CMD_GROUP_BEGIN,
    KEEL_CMD_GROUP_END,
    KEEL_CMD_ALLOCA,
    KEEL_CMD_DEALLOCA,
    KEEL_CMD_READ,
    KEEL_CMD_WRITE,
    KEEL_CMD_EXECUTE,
    KEEL_CMD_HOST_CALL,
    KEEL_CMD_EVENT_SET,
    KEEL_CMD_EVENT_WAIT,
    KEEL_CMD_IF,
    KEEL_CMD_WHILE,
    KEEL_CMD_SWITCH, // a case follows it, or the end
    KEEL_CMD_ELSE,
    KEEL_CMD_CASE,
    KEEL_CMD_END,
} keel_cmd_t;

// 16-aligned, as is every field that a device may read.
typedef struct keel_command_t {
    KEEL_ALIGNAS(16) uint32_t size; // of the record, in bytes
    uint32_t kind;                  // keel_cmd_t
    uint64_t began; // the driver's, while it runs: the moment, if the program is traced; else 0
} keel_command_t;

typedef struct keel_cmd_fill_t {
    keel_command_t head;
    keel_ref_t target;
    uint32_t pattern; // repeated to 4 bytes
    uint32_t pattern_size;
    uint32_t offset; // with `given`: where in the parameters the pattern is
    bool given;      // it comes with the execution
} keel_cmd_fill_t;

typedef struct keel_cmd_update_t {
    keel_command_t head;
    keel_ref_t target;
    uint32_t place;  // the data of updates before it in the list, each rounded up to 16 bytes
    uint32_t offset; // with `given`: where in the parameters the data is
    bool given;      // it comes with the execution, and `data` has none
    KEEL_ALIGNAS(16) unsigned char data[];
} keel_cmd_update_t;

typedef struct keel_cmd_copy_t {
    keel_command_t head;
    keel_ref_t source, target;
    bool keeps; // retains the buffers; else an earlier copy of the list does
} keel_cmd_copy_t;

// A copy to or from a buffer of another device; KEEL_CAP_COPY_ACROSS. In submissions only.
typedef struct keel_cmd_across_t {
    keel_cmd_copy_t copy;
    keel_buffer_t *other; // the side that lies on the other device; one of the copy's
    bool visits;          // the other device waits for the copy before it closes
} keel_cmd_across_t;

typedef struct keel_cmd_dispatch_t {
    keel_command_t head;
    keel_executable_t *executable;
    void *kernel; // keel_executable_t.kernels[entry]
    uint32_t entry;
    uint32_t groups[3];
    uint32_t group_size[3];
    uint32_t local_memory; // the entry's and the dispatch's
    uint32_t constant_size;
    uint32_t constants; // offset of the constants from the record
    uint32_t patches;   // offset of the patches from the record
    uint16_t binding_count;
    uint16_t patch_count;
    uint8_t counts_kind; // keel_counts_t
    bool raw;            // else patches are of parameters only
    bool keeps;          // retains the executable; else an earlier command of the list does
    keel_ref_t counts;   // may be of parameters
    keel_ref_t bindings[];
} keel_cmd_dispatch_t;

typedef struct keel_cmd_timestamp_t {
    keel_command_t head;
    keel_ref_t target;
} keel_cmd_timestamp_t;

typedef struct keel_cmd_group_t {
    keel_command_t head;
    char name[];
} keel_cmd_group_t;

// An alloca that waits for memory; see pool.h.
typedef struct keel_pool_request_t {
    struct keel_pool_request_t *next;
    keel_buffer_t *buffer;                                                   // borrowed
    void (*done)(struct keel_pool_request_t *request, keel_status_t status); // consumes the status
    void *context;
    keel_status_t status; // how it ended, until `done` is told
    const void *order;    // where it runs, after what was given back there; NULL: after nothing
    const struct keel_commands_t *commands; // the list that it is in; set when it is submitted
    bool suspect; // there are others in that list, for which it may come to wait; the pool's
} keel_pool_request_t;

// Memory that a dealloca gives back later.
typedef struct keel_pool_piece_t {
    struct keel_pool_piece_t *next, **link; // among those that are to be had in their order
    const void *order;                      // of that; NULL: no alloca may have it yet
    void *slab;                             // NULL: none
    uint64_t handle, capacity;
    bool open; // begun, and not ended
} keel_pool_piece_t;

typedef struct keel_cmd_alloca_t {
    keel_command_t head;
    keel_buffer_t *buffer;
    bool settled; // dealloca: the pool has been told how it ended; alloca: it was granted
    // alloca: where the memory is, if it is another buffer's; dealloca: in `buffer` the one that it
    // was of, which is kept until the submission ends.
    keel_ref_t memory;
    union {
        keel_pool_request_t request; // alloca
        keel_pool_piece_t piece;     // dealloca, while the driver works ahead
    };
} keel_cmd_alloca_t;

typedef struct keel_cmd_transfer_t {
    keel_command_t head;
    keel_file_t *file;
    uint64_t file_offset;
    keel_ref_t ref;
    KEEL_ALIGNAS(16) unsigned char request[192]; // the driver's, while it is under way
} keel_cmd_transfer_t;

typedef struct keel_cmd_execute_t {
    keel_command_t head;
    keel_recording_t *recording;
    uint32_t binding_count;
    uint32_t parameter_size; // as many bytes as the recording needs
    keel_ref_t bindings[];   // behind them the parameters
} keel_cmd_execute_t;

// Returns the parameters of an execution, aligned to 8 bytes.
static inline const unsigned char *keel_execute_parameters(const keel_cmd_execute_t *execute)
{
    return (const unsigned char *)(execute->bindings + execute->binding_count);
}

// Returns the bytes of an update, as many as its target has. `execute` runs the recording that it
// is in; NULL outside of recordings.
static inline const unsigned char *keel_update_data(const keel_cmd_update_t *update,
                                                    const keel_cmd_execute_t *execute)
{
    return update->given ? keel_execute_parameters(execute) + update->offset : update->data;
}

// Whether it is a range of parameters: of counts, of the value of a block, or of a patch.
static inline bool keel_ref_is_parameter(const keel_ref_t *ref)
{
    return ref->slot == KEEL_PARAMETERS && !ref->buffer;
}

// A call in progress. A deferred one ends when it has both returned and been completed, whichever
// comes last.
typedef struct keel_call_state_t {
    void (*done)(struct keel_call_state_t *state, keel_status_t status); // consumes the status
    void *context;
    // The library's.
    struct keel_call_state_t *outer; // the call around this one, on the same thread
    struct keel_call_state_t *next;  // in a list of deferred ones
    uint64_t number;                 // what the application knows it by
    bool deferred;                   // written by the calling thread only
    KEEL_ATOMIC(uint32_t) end;       // bits of keel_call_end_t
    keel_status_t status;            // of its completion
} keel_call_state_t;

typedef enum keel_call_end_t {
    KEEL_CALL_RETURNED = 1 << 0,
    KEEL_CALL_COMPLETED = 1 << 1,
} keel_call_end_t;

typedef struct keel_cmd_call_t {
    keel_command_t head;
    keel_call_t call;
    bool made; // or sure to be; else it is abandoned at the end
    keel_call_state_t state;
} keel_cmd_call_t;

// A split barrier. To treat the wait as a barrier is correct.
typedef struct keel_cmd_event_t {
    keel_command_t head;
    uint32_t event;
} keel_cmd_event_t;

// A record of a block: its beginning (if, while, switch), an else, a case or its end. `begin`,
// `next` and `end` are offsets from the start of the stream.
typedef struct keel_cmd_block_t {
    keel_command_t head;
    uint32_t begin;          // the block's first record
    uint32_t next;           // its record after this one; the end's: the end itself
    uint32_t end;            // its last record
    uint32_t index;          // how many commands of the list come before this one
    uint32_t depth;          // how many blocks are around this one: below keel_caps_t.max_depth
    uint32_t match;          // case: the value it is for; others: 0
    uint32_t max_iterations; // while: fail with KEEL_RESOURCE_EXHAUSTED beyond; 0: none
    keel_ref_t
        value; // if, while, switch: the uint32_t to look at, maybe of parameters; others: none
} keel_cmd_block_t;

typedef struct keel_commands_t {
    unsigned char *data;  // owned, unless it is `fixed`
    unsigned char *fixed; // where the stream begins if it has a place of its own; NULL: nowhere
    uint32_t size;
    uint32_t capacity;
    uint32_t count;
    uint32_t kinds;           // bits 1 << keel_cmd_t: all that is in there, at least
    uint32_t updates;         // bytes of data, as keel_cmd_update_t.place counts them
    keel_executable_t *kept;  // that the newest keeping dispatch retains
    keel_buffer_t *copied[2]; // that the newest keeping copy retains
} keel_commands_t;

// Returns the command at `offset` bytes into the stream. keel_cmd_block_t gives such offsets. If
// `offset` is the size of the stream, that is its end, which must not be read.
static inline const keel_command_t *keel_commands_at(const keel_commands_t *commands,
                                                     uint32_t offset)
{
    return (const keel_command_t *)((uintptr_t)commands->data + offset); // data may be NULL
}

// Returns the first command; of an empty stream its end.
static inline const keel_command_t *keel_commands_first(const keel_commands_t *commands)
{
    return keel_commands_at(commands, 0);
}

// Returns where the stream ends, behind its last command: a walk stops there.
static inline const keel_command_t *keel_commands_end(const keel_commands_t *commands)
{
    return keel_commands_at(commands, commands->size);
}

// Returns the command that follows in the stream, or its end. It follows no jumps.
static inline const keel_command_t *keel_command_next(const keel_command_t *command)
{
    return (const keel_command_t *)(const void *)((const unsigned char *)command + command->size);
}

// Whether everything before such a command must have ended before it is looked at.
static inline bool keel_command_is_barrier(uint32_t kind)
{
    return kind == KEEL_CMD_BARRIER || kind >= KEEL_CMD_EVENT_WAIT;
}

// All commands in the order of the list, whatever blocks they are in.
#define KEEL_EACH_COMMAND(c, commands)                                                             \
    for (const keel_command_t *c = keel_commands_first(commands);                                  \
         c != keel_commands_end(commands); c = keel_command_next(c))

// As keel_commands_at, for an offset at which a record of a block stands.
static inline const keel_cmd_block_t *keel_block_at(const keel_commands_t *commands,
                                                    uint32_t offset)
{
    return (const keel_cmd_block_t *)(const void *)keel_commands_at(commands, offset);
}

// The first way through a block: an if and a while begin one themselves, a switch does not.
static inline const keel_cmd_block_t *keel_block_ways(const keel_commands_t *commands,
                                                      const keel_cmd_block_t *block)
{
    return block->head.kind == KEEL_CMD_SWITCH ? keel_block_at(commands, block->next) : block;
}

// The ways through a block that begins at `block`: the if, the while, the else, each case. A way
// goes from behind its record to the record at `next`. A switch without cases has none.
#define KEEL_EACH_WAY(w, commands, block)                                                          \
    for (const keel_cmd_block_t *w = keel_block_ways(commands, block);                             \
         w->head.kind != KEEL_CMD_END; w = keel_block_at(commands, w->next))

// What a recording demands of the buffer bound to a slot.
typedef struct keel_slot_need_t {
    uint64_t length; // bytes at least
    uint32_t usage;
    uint32_t access;
} keel_slot_need_t;

// What a recording demands of the parameters of its executions.
typedef struct keel_parameter_need_t {
    uint32_t size;    // bytes at least
    uint32_t largest; // offset of a command that needs so many
    bool read;        // by the device: counts, values of blocks, the data of updates
    bool written;     // into commands: constants, patterns
    uint32_t grids;   // dispatches that have their counts from there
    uint32_t grid[];  // [grids] their offsets
} keel_parameter_need_t;

#ifdef __cplusplus
#pragma GCC diagnostic pop
#endif

#endif
