// SPDX-License-Identifier: Apache-2.0
#include "kit/command.h"

#include <stdio.h>
#include <string.h>

#include "base/aio.h"
#include "base/memory.h"
#include "base/status.h"
#include "kit/pool.h"

bool commands_grow(keel_commands_t *commands, size_t end)
{
    size_t capacity = commands->capacity ? commands->capacity : 512;
    if (end > UINT32_MAX / 2) return false;
    while (capacity < end) capacity *= 2;
    bool move = commands->data == commands->fixed;
    unsigned char *data = mem_resize(move ? NULL : commands->data, capacity);
    if (!data) return false;
    if (move && commands->size) memcpy(data, commands->fixed, commands->size);
    commands->data = data;
    commands->capacity = (uint32_t)capacity;
    return true;
}

static void refs_release(const keel_ref_t *refs, size_t count)
{
    for (size_t i = 0; i < count; i++) keel_buffer_release(refs[i].buffer);
}

static void dispatch_release(const keel_cmd_dispatch_t *c)
{
    const keel_patch_t *patches =
        (const keel_patch_t *)(const void *)((const char *)c + c->patches);
    if (c->keeps) executable_unuse(c->executable);
    keel_buffer_release(c->counts.buffer);
    refs_release(c->bindings, c->binding_count);
    for (uint16_t i = 0; i < c->patch_count; i++) keel_buffer_release(patches[i].ref.buffer);
}

static void alloca_release(const keel_cmd_alloca_t *c)
{
    bool dropped = c->head.kind == KEEL_CMD_DEALLOCA && !c->settled;
    if (dropped) pool_dealloca_dropped(c->buffer);
    keel_buffer_release(c->buffer);
    keel_buffer_release(c->memory.buffer);
}

static void command_release(const keel_command_t *command)
{
    const void *c = command;
    switch ((keel_cmd_t)command->kind) {
    case KEEL_CMD_FILL: refs_release(&((const keel_cmd_fill_t *)c)->target, 1); break;
    case KEEL_CMD_UPDATE: refs_release(&((const keel_cmd_update_t *)c)->target, 1); break;
    case KEEL_CMD_TIMESTAMP: refs_release(&((const keel_cmd_timestamp_t *)c)->target, 1); break;
    case KEEL_CMD_COPY:
    case KEEL_CMD_ACROSS: // begins with one
        if (!((const keel_cmd_copy_t *)c)->keeps) break;
        refs_release(&((const keel_cmd_copy_t *)c)->source, 1);
        refs_release(&((const keel_cmd_copy_t *)c)->target, 1);
        break;
    case KEEL_CMD_DISPATCH: dispatch_release(c); break;
    case KEEL_CMD_ALLOCA:
    case KEEL_CMD_DEALLOCA: alloca_release(c); break;
    case KEEL_CMD_READ:
    case KEEL_CMD_WRITE:
        keel_file_release(((const keel_cmd_transfer_t *)c)->file);
        refs_release(&((const keel_cmd_transfer_t *)c)->ref, 1);
        break;
    case KEEL_CMD_EXECUTE:
        refs_release(((const keel_cmd_execute_t *)c)->bindings,
                     ((const keel_cmd_execute_t *)c)->binding_count);
        keel_recording_release(((const keel_cmd_execute_t *)c)->recording);
        break;
    case KEEL_CMD_IF:
    case KEEL_CMD_WHILE:
    case KEEL_CMD_SWITCH: refs_release(&((const keel_cmd_block_t *)c)->value, 1); break;
    case KEEL_CMD_BARRIER:
    case KEEL_CMD_GROUP_BEGIN:
    case KEEL_CMD_GROUP_END:
    case KEEL_CMD_HOST_CALL:
    case KEEL_CMD_EVENT_SET:
    case KEEL_CMD_EVENT_WAIT:
    case KEEL_CMD_ELSE:
    case KEEL_CMD_CASE:
    case KEEL_CMD_END: break;
    }
}

void commands_abandon(const keel_commands_t *commands, keel_status_t cause)
{
    KEEL_EACH_COMMAND (command, commands) {
        const keel_cmd_call_t *c = (const keel_cmd_call_t *)(const void *)command;
        if (command->kind != KEEL_CMD_HOST_CALL || c->made || !c->call.abandoned) continue;
        c->call.abandoned(c->call.user, keel_status_retain(cause));
    }
}

void commands_finish(keel_commands_t *commands)
{
    KEEL_EACH_COMMAND (c, commands) command_release(c);
    if (commands->data != commands->fixed) mem_free(commands->data);
    *commands = (keel_commands_t){0};
}

const char *command_name(uint32_t kind)
{
    static const char *const names[] = {
        "barrier",    "fill",   "update",   "copy",   "copy",  "dispatch", "timestamp", "group",
        "group end",  "alloca", "dealloca", "read",   "write", "execute",  "host call", "event set",
        "event wait", "if",     "while",    "switch", "else",  "case",     "end",
    };
    return kind < sizeof names / sizeof names[0] ? names[kind] : "command";
}

static const char *command_subject(const keel_command_t *command)
{
    const void *c = command;
    if (command->kind == KEEL_CMD_DISPATCH) {
        const keel_cmd_dispatch_t *dispatch = c;
        return dispatch->executable->entries[dispatch->entry].name;
    }
    if (command->kind == KEEL_CMD_EXECUTE) return ((const keel_cmd_execute_t *)c)->recording->name;
    return NULL;
}

static void text_append(char *text, size_t size, const char *head, const char *name,
                        const char *tail)
{
    size_t length = strlen(text);
    snprintf(text + length, size - length, "%s%s%s", head, name, tail);
}

void commands_describe(const keel_commands_t *commands, const keel_command_t *command, char *text,
                       size_t size)
{
    enum { MAX_GROUPS = 16 };
    const char *groups[MAX_GROUPS];
    size_t depth = 0, index = 0;
    KEEL_EACH_COMMAND (c, commands) {
        if (c == command) break;
        index++;
        if (c->kind == KEEL_CMD_GROUP_BEGIN && depth++ < MAX_GROUPS)
            groups[depth - 1] = ((const keel_cmd_group_t *)(const void *)c)->name;
        if (c->kind == KEEL_CMD_GROUP_END) depth--;
    }
    for (size_t i = 0; i < depth && i < MAX_GROUPS; i++)
        text_append(text, size, "group '", groups[i], "' > ");
    const char *subject = command_subject(command);
    size_t length = strlen(text);
    snprintf(text + length, size - length, "command %zu (%s%s%s%s)", index,
             command_name(command->kind), subject ? " '" : "", subject ? subject : "",
             subject ? "'" : "");
}

keel_status_t recording_blame(const keel_recording_t *recording, const keel_command_t *command,
                              keel_status_t status)
{
    char path[512] = "";
    text_append(path, sizeof path, "recording '", recording->name ? recording->name : "", "' > ");
    commands_describe(recording->commands, command, path, sizeof path);
    return status_at(status, path);
}

keel_status_t command_loop_refuse(const keel_cmd_block_t *loop)
{
    return KEEL_ERROR(KEEL_RESOURCE_EXHAUSTED,
                      "the loop has run %u times, which is its max_iterations",
                      loop->max_iterations);
}

static keel_status_t while_count(const keel_cmd_block_t *c, uint32_t value, uint32_t *loops)
{
    uint32_t *rounds = &loops[c->depth];
    if (value && c->max_iterations && *rounds >= c->max_iterations) return command_loop_refuse(c);
    *rounds = value ? *rounds + 1 : 0;
    return NULL;
}

// The record of the block behind which it goes on: of the way that is taken, or the end.
static const keel_cmd_block_t *way_find(const keel_commands_t *commands,
                                        const keel_cmd_block_t *block, uint32_t value)
{
    if (block->head.kind != KEEL_CMD_SWITCH)
        return value ? block : keel_block_at(commands, block->next);
    KEEL_EACH_WAY(way, commands, block)
    if (way->match == value) return way;
    return keel_block_at(commands, block->end);
}

keel_status_t command_jump(const keel_commands_t *commands, uint32_t value, uint32_t *loops,
                           const keel_command_t **at)
{
    const keel_cmd_block_t *c = (const keel_cmd_block_t *)(const void *)*at;
    uint32_t kind = (*at)->kind;
    if (kind == KEEL_CMD_WHILE) KEEL_TRY(while_count(c, value, loops));
    if (command_has_value(kind)) {
        *at = &way_find(commands, c, value)->head;
    } else if (kind == KEEL_CMD_ELSE || kind == KEEL_CMD_CASE) { // the way before it is over
        *at = keel_commands_at(commands, c->end);
    } else if (kind == KEEL_CMD_END) {
        const keel_command_t *begin = keel_commands_at(commands, c->begin);
        if (begin->kind == KEEL_CMD_WHILE) { // which looks at its value again
            *at = begin;
            return NULL;
        }
    }
    *at = keel_command_next(*at);
    return NULL;
}

keel_status_t command_transfer_status(const keel_cmd_transfer_t *c, int error)
{
    const char *path = c->file->path ? c->file->path : "";
    if (!error) return NULL;
    if (error == AIO_END_OF_FILE)
        return KEEL_ERROR(KEEL_OUT_OF_RANGE, "file '%s' ends before offset %llu plus %llu bytes",
                          path, (unsigned long long)c->file_offset,
                          (unsigned long long)c->ref.length);
    return status_from_errno(status_errno_code(error), error, path);
}

static void dispatch_refs(const keel_cmd_dispatch_t *c, command_ref_fn *fn, void *user)
{
    const keel_patch_t *patches = command_patches(c);
    for (uint16_t i = 0; i < c->binding_count; i++) fn(user, &c->bindings[i]);
    for (uint16_t i = 0; i < c->patch_count; i++) fn(user, &patches[i].ref);
    bool memory = c->counts_kind != KEEL_COUNTS_DIRECT && !keel_ref_is_parameter(&c->counts);
    if (memory) fn(user, &c->counts);
}

static void fill_refs(const keel_cmd_fill_t *c, command_ref_fn *fn, void *user)
{
    keel_ref_t pattern = keel_parameter(c->offset, c->pattern_size);
    fn(user, &c->target);
    if (c->given) fn(user, &pattern);
}

uint32_t command_pattern(const keel_cmd_fill_t *c, const unsigned char *parameters)
{
    unsigned char bytes[4] = {0};
    uint32_t pattern;
    for (uint32_t i = 0; parameters && i < 4; i++)
        bytes[i] = parameters[c->offset + i % c->pattern_size];
    memcpy(&pattern, bytes, sizeof pattern);
    return pattern;
}

void command_refs(const keel_command_t *command, command_ref_fn *fn, void *user)
{
    const void *c = command;
    switch ((keel_cmd_t)command->kind) {
    case KEEL_CMD_DISPATCH: dispatch_refs(c, fn, user); break;
    case KEEL_CMD_FILL: fill_refs(c, fn, user); break;
    case KEEL_CMD_UPDATE: fn(user, &((const keel_cmd_update_t *)c)->target); break;
    case KEEL_CMD_TIMESTAMP: fn(user, &((const keel_cmd_timestamp_t *)c)->target); break;
    case KEEL_CMD_COPY:
    case KEEL_CMD_ACROSS:
        fn(user, &((const keel_cmd_copy_t *)c)->source);
        fn(user, &((const keel_cmd_copy_t *)c)->target);
        break;
    case KEEL_CMD_IF:
    case KEEL_CMD_WHILE:
    case KEEL_CMD_SWITCH:
        if (!keel_ref_is_parameter(&((const keel_cmd_block_t *)c)->value))
            fn(user, &((const keel_cmd_block_t *)c)->value);
        break;
    default: break;
    }
}

typedef struct late_t {
    keel_buffer_t **buffers;
    uint32_t count;
} late_t;

static void ref_note_late(void *user, const keel_ref_t *ref)
{
    late_t *late = user;
    if (!ref->buffer || !ref->buffer->root->pool) return;
    if (late->buffers) late->buffers[late->count] = ref->buffer->root;
    late->count++;
}

uint32_t commands_late(const keel_commands_t *commands, keel_buffer_t **buffers)
{
    late_t late = {buffers, 0};
    KEEL_EACH_COMMAND (c, commands) command_refs(c, ref_note_late, &late);
    return late.count;
}

static void ref_reach(void *user, const keel_ref_t *ref)
{
    command_reach_t *reach = user;
    reach->moves |= !ref->buffer || ref->buffer->root->pool;
    if (!keel_ref_is_parameter(ref) && ref->length < reach->length) reach->length = ref->length;
}

command_reach_t command_reach(const keel_command_t *command)
{
    command_reach_t reach = {false, KEEL_WHOLE};
    command_refs(command, ref_reach, &reach);
    return reach;
}

void commands_updates(const keel_commands_t *commands, unsigned char *data)
{
    KEEL_EACH_COMMAND (c, commands) {
        const keel_cmd_update_t *update = (const keel_cmd_update_t *)(const void *)c;
        if (c->kind == KEEL_CMD_UPDATE && !update->given)
            memcpy(data + update->place, update->data, update->target.length);
    }
}
