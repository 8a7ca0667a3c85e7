// SPDX-License-Identifier: Apache-2.0
// Parameters: what a recording needs of them is counted once, when it ends, and what an execution
// brings is checked against that.
#include <string.h>

#include "base/memory.h"
#include "core/recorder_internal.h"

// Adds a range that `command` uses.
static void need_add(keel_parameter_need_t *need, const keel_commands_t *commands,
                     const keel_command_t *command, uint64_t end)
{
    if (end <= need->size) return;
    need->size = (uint32_t)end;
    need->largest = (uint32_t)((const unsigned char *)command - commands->data);
}

// Adds what a dispatch uses. Its counts become one of the grids, which are listed if there is room.
static void need_add_dispatch(keel_parameter_need_t *need, const keel_commands_t *commands,
                              const keel_cmd_dispatch_t *c, uint32_t room)
{
    const keel_patch_t *patches = command_patches(c);
    for (uint16_t i = 0; i < c->patch_count; i++) {
        const keel_ref_t *ref = &patches[i].ref;
        if (!keel_ref_is_parameter(ref)) continue;
        need_add(need, commands, &c->head, ref->offset + ref->length);
        need->written = true;
    }
    if (c->counts_kind == KEEL_COUNTS_DIRECT || !keel_ref_is_parameter(&c->counts)) return;
    need_add(need, commands, &c->head, c->counts.offset + c->counts.length);
    need->read = true;
    if (need->grids < room)
        need->grid[need->grids] = (uint32_t)((const unsigned char *)c - commands->data);
    need->grids++;
}

static void need_add_command(keel_parameter_need_t *need, const keel_commands_t *commands,
                             const keel_command_t *command, uint32_t room)
{
    const keel_cmd_fill_t *fill = (const keel_cmd_fill_t *)(const void *)command;
    const keel_cmd_update_t *update = (const keel_cmd_update_t *)(const void *)command;
    const keel_cmd_block_t *block = (const keel_cmd_block_t *)(const void *)command;
    if (command->kind == KEEL_CMD_DISPATCH) {
        need_add_dispatch(need, commands, (const keel_cmd_dispatch_t *)(const void *)command, room);
    } else if (command->kind == KEEL_CMD_FILL && fill->given) {
        need_add(need, commands, command, (uint64_t)fill->offset + fill->pattern_size);
        need->written = true;
    } else if (command->kind == KEEL_CMD_UPDATE && update->given) {
        need_add(need, commands, command, update->offset + update->target.length);
        need->read |= update->target.length != 0;
    } else if (command_has_value(command->kind) && keel_ref_is_parameter(&block->value)) {
        need_add(need, commands, command, block->value.offset + block->value.length);
        need->read = true;
    }
}

keel_status_t parameters_count(const keel_commands_t *commands, keel_parameter_need_t **need)
{
    keel_parameter_need_t first = {0};
    KEEL_EACH_COMMAND (c, commands) need_add_command(&first, commands, c, 0);
    *need = mem_zalloc(sizeof **need + first.grids * sizeof *first.grid);
    if (!*need) return status_no_memory();
    KEEL_EACH_COMMAND (c, commands) need_add_command(*need, commands, c, first.grids);
    return NULL;
}

// Names one of the recording's commands.
static const char *command_text(const keel_recording_t *recording, uint32_t offset, char text[512])
{
    text[0] = 0;
    commands_describe(recording->commands, keel_commands_at(recording->commands, offset), text,
                      512);
    return text;
}

static keel_status_t grid_check(const keel_recording_t *recording, uint32_t offset,
                                const unsigned char *parameters)
{
    const keel_cmd_dispatch_t *c =
        (const keel_cmd_dispatch_t *)(const void *)keel_commands_at(recording->commands, offset);
    keel_groups_t groups;
    memcpy(&groups, parameters + c->counts.offset, sizeof groups);
    keel_status_t status =
        groups_check(&recording->device->caps, groups, &c->executable->entries[c->entry]);
    return status ? keel_status_wrap(status, "parameters do not suit recording '%s', %s",
                                     TEXT_OF(recording->name),
                                     command_text(recording, offset, (char[512]){0}))
                  : NULL;
}

keel_status_t parameters_add(keel_commands_t *commands, keel_cmd_execute_t *newest,
                             const keel_execute_t *e)
{
    uint32_t size = e->recording->parameters->size, space = (size + 15) & ~15u;
    uint32_t at = (uint32_t)((unsigned char *)newest - commands->data);
    size_t end = (size_t)commands->size + space;
    if (end > commands->capacity && !commands_grow(commands, end)) return status_no_memory();
    keel_cmd_execute_t *c = (keel_cmd_execute_t *)(void *)(commands->data + at);
    commands->size = (uint32_t)end;
    c->head.size += space;
    c->parameter_size = size;
    if (size) memcpy(&c->bindings[c->binding_count], e->parameters, size);
    return NULL;
}

keel_status_t parameters_check(const keel_execute_t *e)
{
    const keel_recording_t *recording = e->recording;
    const keel_parameter_need_t *need = recording->parameters;
    CHECK(e->parameters || !e->parameter_size, KEEL_INVALID_ARGUMENT,
          "parameters is NULL, but parameter_size is %zu", e->parameter_size);
    CHECK(e->parameter_size >= need->size, KEEL_OUT_OF_RANGE,
          "parameter_size is %zu; recording '%s' needs %u bytes, for %s", e->parameter_size,
          TEXT_OF(recording->name), need->size,
          command_text(recording, need->largest, (char[512]){0}));
    for (uint32_t i = 0; i < need->grids; i++)
        KEEL_TRY(grid_check(recording, need->grid[i], e->parameters));
    return NULL;
}
