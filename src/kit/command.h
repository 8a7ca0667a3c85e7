// SPDX-License-Identifier: Apache-2.0
// Writing, releasing, naming and walking commands (<keel/driver/command.h>). There are three ways
// to walk: KEEL_EACH_COMMAND takes them as they lie, KEEL_EACH_WAY the bodies of a block, as a
// tree, and command_jump() goes from one to the next as they are executed.
#ifndef KEEL_SRC_KIT_COMMAND_H_
#define KEEL_SRC_KIT_COMMAND_H_

#include <string.h>

#include <keel/driver/command.h>

#include "kit/executable.h"
#include "kit/object.h"

// Makes room for `end` bytes in all. False without memory.
bool commands_grow(keel_commands_t *commands, size_t end);

// Appends a record of `size` bytes, a multiple of 16. The
// caller writes all of it, the head too. NULL without memory. The pointer is good until the next
// one.
static inline void *commands_append(keel_commands_t *commands, keel_cmd_t kind, size_t size)
{
    size_t start = commands->size, end = start + size;
    if (__builtin_expect(end > commands->capacity, 0) && !commands_grow(commands, end)) return NULL;
    commands->size = (uint32_t)end;
    commands->count++;
    commands->kinds |= UINT32_C(1) << kind;
    unsigned char *record = commands->data + start;
    if (!record) __builtin_unreachable();
    return record;
}

// The same, of any size, zeroed but for its head. Inline, for most sizes are known.
static inline void *commands_add(keel_commands_t *commands, keel_cmd_t kind, size_t size)
{
    size = (size + 15) & ~(size_t)15;
    keel_command_t *command = commands_append(commands, kind, size);
    if (!command) return NULL;
    memset(command, 0, size);
    command->size = (uint32_t)size;
    command->kind = kind;
    return command;
}

// Where the parts of a dispatch lie that follow its fixed part, and its size.
static inline void command_layout(keel_cmd_dispatch_t *c, size_t bindings, size_t constants,
                                  size_t patches)
{
    size_t at = (sizeof *c + bindings * sizeof(keel_ref_t) + 15) & ~(size_t)15;
    size_t end = (at + constants + 15) & ~(size_t)15;
    c->constants = (uint32_t)at;
    c->patches = (uint32_t)end;
    c->head.size = (uint32_t)((end + patches * sizeof(keel_patch_t) + 15) & ~(size_t)15);
    c->constant_size = (uint32_t)constants;
    c->binding_count = (uint16_t)bindings;
    c->patch_count = (uint16_t)patches;
}

// Keeps the executable of the newest record, unless the dispatch before it has: most lists use one
// only, and many threads count its uses.
static inline void command_keep(keel_commands_t *commands, keel_cmd_dispatch_t *newest)
{
    if (__builtin_expect(commands->kept == newest->executable, 1)) return;
    executable_use(newest->executable);
    commands->kept = newest->executable;
    newest->keeps = true;
}

// Whether the newest copy of the list is between these two.
static inline bool commands_copied(const keel_commands_t *commands, const keel_buffer_t *source,
                                   const keel_buffer_t *target)
{
    return commands->copied[0] == source && commands->copied[1] == target;
}

// The same of the buffers of a copy, of which there may be many: one for each row, say.
static inline void command_keep_copied(keel_commands_t *commands, keel_cmd_copy_t *newest)
{
    keel_buffer_t *source = newest->source.buffer, *target = newest->target.buffer;
    if (commands_copied(commands, source, target)) return;
    if (source) object_retain(&source->object);
    if (target) object_retain(&target->object);
    commands->copied[0] = source;
    commands->copied[1] = target;
    newest->keeps = true;
}

// Takes back the newest record, which retains nothing yet.
static inline void commands_drop(keel_commands_t *commands, const keel_command_t *newest)
{
    commands->size -= newest->size;
    commands->count--;
}

// Tells the application of all host calls that were not made, with a reference to `cause` each.
void commands_abandon(const keel_commands_t *commands, keel_status_t cause);

// Releases what the commands retain, and their memory.
void commands_finish(keel_commands_t *commands);

// The patches of a dispatch.
static inline const keel_patch_t *command_patches(const keel_cmd_dispatch_t *c)
{
    return (const keel_patch_t *)(const void *)((const char *)c + c->patches);
}

// The pattern that a fill gets from the parameters of its execution; 0 if these are not known.
uint32_t command_pattern(const keel_cmd_fill_t *c, const unsigned char *parameters);

// Calls `fn` for each reference to memory of a command that works, and to parameters that are
// written into it: its constants, its pattern. Not to those that the device reads where they are.
typedef void command_ref_fn(void *user, const keel_ref_t *ref);
void command_refs(const keel_command_t *command, command_ref_fn *fn, void *user);

// Each reference to a buffer of a pool, which may lie elsewhere every time: puts the buffers in
// `late`, unless that is NULL, and returns how many.
uint32_t commands_late(const keel_commands_t *commands, keel_buffer_t **late);

// What a command works on, all in all.
typedef struct command_reach_t {
    bool moves;      // some may be another every time: slots, buffers of pools, parameters
    uint64_t length; // of the shortest memory; KEEL_WHOLE: all are as long as their slots
} command_reach_t;
command_reach_t command_reach(const keel_command_t *command);

// Puts the bytes of all updates to their places in `data`.
void commands_updates(const keel_commands_t *commands, unsigned char *data);

// What a kind of command (keel_cmd_t) is called: "dispatch", say.
const char *command_name(uint32_t kind);

// Names a command for a person: "group 'decode' > command 3 (dispatch 'saxpy')". Appends to `text`.
void commands_describe(const keel_commands_t *commands, const keel_command_t *command, char *text,
                       size_t size);

// Puts the place of one of a recording's commands on an error.
keel_status_t recording_blame(const keel_recording_t *recording, const keel_command_t *command,
                              keel_status_t status);

// Goes on from any command: *at becomes the one that is next. For a block's beginning that depends
// on its value, which is `value`. `loops` has the rounds so far of the loops of each depth.
// KEEL_RESOURCE_EXHAUSTED, and nothing changes, if a loop has run as often as it may.
keel_status_t command_jump(const keel_commands_t *commands, uint32_t value, uint32_t *loops,
                           const keel_command_t **at);

// The error of a loop that has run as often as it may.
keel_status_t command_loop_refuse(const keel_cmd_block_t *loop) KEEL_COLD;

// How a transfer ended, for which base/aio.h has a number.
keel_status_t command_transfer_status(const keel_cmd_transfer_t *c, int error);

// Whether it begins a block, and so has a value in memory to look at.
static inline bool command_has_value(uint32_t kind)
{
    return kind == KEEL_CMD_IF || kind == KEEL_CMD_WHILE || kind == KEEL_CMD_SWITCH;
}

#endif
