// SPDX-License-Identifier: Apache-2.0
// Blocks of pools that a record takes before anything of it runs, and gives back behind its end.
#include "base/status.h"
#include "drivers/amdgpu/host/record/record.h"

#define BIT(kind) (UINT32_C(1) << (kind))

static bool is_allocated(const keel_commands_t *commands, const keel_buffer_t *buffer)
{
    KEEL_EACH_COMMAND (c, commands)
        if (c->kind == KEEL_CMD_ALLOCA && amdgpu_alloca_of(c)->buffer == buffer) return true;
    return false;
}

// The bin that a buffer takes blocks of: its number, and 1; 0: the host gives it memory.
static uint64_t bin_of(const keel_buffer_t *buffer)
{
    pool_word_t *word = NULL;
    if (!amdgpu_shelf_of(buffer->pool)) return 0;
    keel_status_release(pool_word(buffer, &word));
    return word ? word->bin : 0;
}

// Of the memory of which pool blocks are taken or given back; NULL: of none, or of several, or the
// host has to.
static const keel_pool_t *blocks_pool(const keel_commands_t *commands)
{
    const keel_pool_t *pool = NULL;
    KEEL_EACH_COMMAND (c, commands) {
        const keel_cmd_alloca_t *a = amdgpu_alloca_of(c);
        if (!a) continue;
        const keel_pool_t *own = a->buffer->pool;
        bool lent = c->kind == KEEL_CMD_ALLOCA && a->memory.buffer;
        if (lent || !bin_of(a->buffer) || (pool && pool != own)) return NULL;
        pool = own;
    }
    return pool;
}

// It takes all blocks before anything runs, and gives all back behind the end. Who waits for blocks
// may have none to give back.
bool amdgpu_grants_suit(const keel_commands_t *commands)
{
    enum { MOST = 64 }; // commands
    const uint32_t takes = BIT(KEEL_CMD_ALLOCA), gives = BIT(KEEL_CMD_DEALLOCA);
    uint32_t before = 0;
    if (!(commands->kinds & (takes | gives))) return true;
    if (commands->count > MOST || !blocks_pool(commands)) return false;
    KEEL_EACH_COMMAND (c, commands) {
        if (keel_command_is_barrier(c->kind)) continue;
        if (c->kind == KEEL_CMD_ALLOCA && before & ~takes) return false;
        if (c->kind != KEEL_CMD_DEALLOCA && before & gives) return false;
        if (c->kind == KEEL_CMD_DEALLOCA && commands->kinds & takes &&
            !is_allocated(commands, amdgpu_alloca_of(c)->buffer))
            return false;
        before |= BIT(c->kind);
    }
    return true;
}

// The buffers that get blocks, and those that give them back.
static keel_status_t handles_add(amdgpu_run_t *run, uint32_t kind, uint64_t *list, uint32_t *count)
{
    const keel_commands_t *commands = &run->base.submission.commands;
    void *handles;
    *count = 0;
    if (!(commands->kinds & BIT(kind))) return NULL;
    KEEL_TRY(amdgpu_record_piece(run, commands->count * sizeof(uint64_t), &handles));
    *list = (uintptr_t)handles;
    KEEL_EACH_COMMAND (c, commands) {
        pool_word_t *word;
        if (c->kind != kind) continue;
        KEEL_TRY(pool_word(amdgpu_alloca_of(c)->buffer, &word));
        ((uint64_t *)handles)[(*count)++] = (uintptr_t)word;
    }
    return NULL;
}

// The blocks for those that get them, by bins.
static keel_status_t needs_add(amdgpu_run_t *run)
{
    record_t *record = run->record;
    void *needs;
    KEEL_TRY(amdgpu_record_piece(run, record->grant_count * sizeof(shelf_need_t), &needs));
    record->needs = (uintptr_t)needs;
    for (uint32_t i = 0; i < record->grant_count; i++) {
        uint64_t handle = PROTOCOL_AT(const uint64_t, record->grants)[i];
        uint32_t bin = (uint32_t)PROTOCOL_AT(const handle_t, handle)->bin;
        shelf_need_t *need = needs, *end = need + record->need_count;
        while (need < end && need->bin != bin) need++;
        if (need == end) {
            *need = (shelf_need_t){.bin = bin};
            record->need_count++;
        }
        need->count++;
    }
    return NULL;
}

keel_status_t amdgpu_grants_add(amdgpu_run_t *run)
{
    const keel_submission_t *submission = &run->base.submission;
    const keel_pool_t *pool = blocks_pool(&submission->commands);
    record_t *record = run->record;
    if (!pool) return NULL;
    const shelf_t *shelf = amdgpu_shelf_of(pool);
    uint32_t number = amdgpu_control_of(submission->queue)->number;
    record->shelf = (uintptr_t)shelf;
    record->side = shelf->sides + number * sizeof(shelf_side_t);
    KEEL_TRY(handles_add(run, KEEL_CMD_ALLOCA, &record->grants, &record->grant_count));
    KEEL_TRY(needs_add(run));
    return handles_add(run, KEEL_CMD_DEALLOCA, &record->returns, &record->return_count);
}
