// SPDX-License-Identifier: Apache-2.0
// Recordings as programs on the GPU: made when one is first needed, and kept with the recording.
// A walk over the commands says where segments begin and end: the blocks of a recording become
// segments that go on with one another.
#include "base/memory.h"
#include "base/status.h"
#include "drivers/amdgpu/host/memory/memory.h"
#include "drivers/amdgpu/host/program/compile.h"
#include "kit/object.h"

#define BIT(kind) (UINT32_C(1) << (kind))

// Where a walk over commands is.
typedef struct walk_t {
    compiler_t compiler; // first
    const keel_commands_t *list;
    uint32_t *after;               // owned, [list->count]: the segment behind a command of a block
    uint32_t loops[RUN_MAX_DEPTH]; // the segments that look at the values of loops
} walk_t;

static const uint32_t able = BIT(KEEL_CMD_BARRIER) | BIT(KEEL_CMD_FILL) | BIT(KEEL_CMD_UPDATE) |
                             BIT(KEEL_CMD_COPY) | BIT(KEEL_CMD_DISPATCH) | BIT(KEEL_CMD_TIMESTAMP) |
                             BIT(KEEL_CMD_GROUP_BEGIN) | BIT(KEEL_CMD_GROUP_END) |
                             BIT(KEEL_CMD_EVENT_SET) | BIT(KEEL_CMD_EVENT_WAIT);
static const uint32_t blocks = BIT(KEEL_CMD_IF) | BIT(KEEL_CMD_WHILE) | BIT(KEEL_CMD_SWITCH) |
                               BIT(KEEL_CMD_ELSE) | BIT(KEEL_CMD_CASE) | BIT(KEEL_CMD_END);

bool amdgpu_commands_suit(const keel_commands_t *commands, uint32_t more)
{
    return !(commands->kinds & ~(able | blocks | more));
}

bool amdgpu_commands_branch(const keel_commands_t *commands)
{
    return commands->kinds & blocks;
}

static uint32_t index_of(const walk_t *w, uint32_t offset)
{
    return keel_block_at(w->list, offset)->index;
}

static keel_status_t switch_compile(walk_t *w, const keel_cmd_block_t *block)
{
    compiler_t *c = &w->compiler;
    uint32_t count = 0;
    KEEL_EACH_WAY(way, w->list, block) count++;
    way_t *ways = mem_alloc((count + 1) * sizeof *ways), *next = ways;
    if (!ways) return status_no_memory();
    KEEL_EACH_WAY(way, w->list, block) *next++ = (way_t){way->match, way->index};
    keel_status_t status = assemble_ways(c, ways, count);
    mem_free(ways);
    KEEL_TRY(status);
    KEEL_TRY(assemble_value(c, &block->value));
    assemble_end(c, END_SWITCH, 0, index_of(w, block->end));
    return NULL;
}

// A loop's value is looked at by a segment of its own, to which its end comes back.
static keel_status_t while_compile(walk_t *w, const keel_cmd_block_t *block)
{
    compiler_t *c = &w->compiler;
    w->loops[block->depth] = assemble_count(c);
    assemble_end(c, END_GOTO, assemble_count(c), 0);
    KEEL_TRY(assemble_begin(c));
    KEEL_TRY(assemble_value(c, &block->value));
    assemble_loop(c, block->depth, block->max_iterations);
    assemble_end(c, END_WHILE, block->index, index_of(w, block->end));
    return NULL;
}

static keel_status_t if_compile(walk_t *w, const keel_cmd_block_t *block)
{
    KEEL_TRY(assemble_value(&w->compiler, &block->value));
    assemble_end(&w->compiler, END_IF, block->index, index_of(w, block->next));
    return NULL;
}

// The end of a loop goes back, all others go on behind it.
static void end_compile(walk_t *w, const keel_cmd_block_t *block)
{
    compiler_t *c = &w->compiler;
    bool loop = keel_commands_at(w->list, block->begin)->kind == KEEL_CMD_WHILE;
    assemble_end(c, END_GOTO, loop ? w->loops[block->depth] : assemble_count(c), 0);
}

// A record of a block ends a segment; behind it the next one begins.
static keel_status_t block_compile(walk_t *w, const keel_cmd_block_t *block)
{
    compiler_t *c = &w->compiler;
    keel_status_t status = NULL;
    switch (block->head.kind) {
    case KEEL_CMD_IF: status = if_compile(w, block); break;
    case KEEL_CMD_WHILE: status = while_compile(w, block); break;
    case KEEL_CMD_SWITCH: status = switch_compile(w, block); break;
    case KEEL_CMD_END: end_compile(w, block); break;
    default: assemble_end(c, END_AFTER, index_of(w, block->end), 0); // the way before it is over
    }
    KEEL_TRY(status);
    w->after[block->index] = assemble_count(c);
    return assemble_begin(c);
}

static keel_status_t command_compile(walk_t *w, const keel_command_t *command)
{
    compiler_t *c = &w->compiler;
    const void *record = command;
    if (blocks & BIT(command->kind)) return block_compile(w, record);
    switch ((keel_cmd_t)command->kind) {
    case KEEL_CMD_FILL: return compile_fill(c, record);
    case KEEL_CMD_UPDATE: return compile_update(c, record);
    case KEEL_CMD_COPY: return compile_copy(c, record);
    case KEEL_CMD_TIMESTAMP: return compile_timestamp(c, record);
    case KEEL_CMD_DISPATCH: return compile_dispatch(c, record);
    default: break;
    }
    return keel_command_is_barrier(command->kind) ? assemble_barrier(c) : NULL;
}

static keel_status_t walk_compile(walk_t *w, const keel_command_t *from, const keel_command_t *to)
{
    compiler_t *c = &w->compiler;
    KEEL_TRY(assemble_begin(c));
    for (const keel_command_t *at = from; at != to; at = keel_command_next(at)) {
        c->offset = (uint32_t)((uintptr_t)at - (uintptr_t)w->list->data);
        KEEL_TRY(command_compile(w, at));
    }
    assemble_end(c, END_RETURN, 0, 0);
    if (w->after) assemble_resolve(c, w->after);
    return NULL;
}

// One that is kept goes to where the GPU reads it fastest; the host does not see it there.
static keel_status_t program_upload(compiler_t *c, uint64_t size, amdgpu_program_t *program)
{
    amdgpu_device_t *device = c->device;
    void *data = mem_alloc(size);
    if (!data) return status_no_memory();
    keel_status_t status = amdgpu_local_alloc(device, c->node, size, &program->address);
    if (!status) {
        program->uploaded = size;
        assemble_write(c, data, program->address);
        status =
            HSA_CALL(device->hsa, hsa_memory_copy, (void *)(uintptr_t)program->address, data, size);
    }
    mem_free(data);
    return status;
}

// Puts the program to where it is to be.
static keel_status_t program_write(compiler_t *c, const amdgpu_range_t *range,
                                   amdgpu_program_t *program)
{
    uint64_t size = assemble_size(c);
    void *data;
    program->room = c->room;
    program->arguments = c->most_arguments;
    if (!range->blocks) return program_upload(c, size, program);
    KEEL_TRY(blocks_piece(&c->device->blocks, NULL, range->blocks, size, &data, &program->address));
    assemble_write(c, data, program->address);
    if (assemble_table(c)) program->table = program->address + assemble_table(c);
    return NULL;
}

keel_status_t amdgpu_program_make(amdgpu_device_t *device, const keel_commands_t *list,
                                  const amdgpu_range_t *range, amdgpu_program_t *program)
{
    assemble_room_t room;
    walk_t w = {.list = list};
    bool branches = amdgpu_commands_branch(list);
    assemble_init(&w.compiler, device, range, &room);
    if (branches) w.after = mem_zalloc(list->count * sizeof *w.after);
    keel_status_t status =
        branches && !w.after ? status_no_memory() : walk_compile(&w, range->from, range->to);
    if (!status) status = program_write(&w.compiler, range, program);
    program->failed = w.compiler.offset;
    assemble_finish(&w.compiler);
    mem_free(w.after);
    return status;
}

static void program_destroy(amdgpu_device_t *device, amdgpu_program_t *program)
{
    if (program->uploaded && object_is_ours(&device->base.object))
        amdgpu_local_free(device, program->node, program->address, program->uploaded);
    mem_free(program);
}

static void slot_note(void *user, const keel_ref_t *ref)
{
    amdgpu_program_t *program = user;
    if (ref->buffer || keel_ref_is_parameter(ref)) return;
    program->slots |= UINT64_C(1) << (ref->slot < 63 ? ref->slot : 63);
}

// One that cannot be a program, also for an error in it, is the host's: it says what is wrong when
// it comes there. NULL: there is no memory.
static amdgpu_program_t *program_create(amdgpu_device_t *device, const keel_commands_t *list,
                                        uint32_t node)
{
    amdgpu_program_t *program = mem_zalloc(sizeof *program);
    if (!program) return NULL;
    program->node = node;
    program->branches = amdgpu_commands_branch(list);
    KEEL_EACH_COMMAND (c, list) command_refs(c, slot_note, program);
    const amdgpu_range_t range = {
        .from = keel_commands_first(list), .to = keel_commands_end(list), .node = node};
    if (!amdgpu_commands_suit(list, 0) || commands_late(list, NULL)) return program;
    keel_status_t status = amdgpu_program_make(device, list, &range, program);
    program->suits = !status;
    bool no_memory = amdgpu_is_no_memory(status);
    keel_status_release(status);
    if (!no_memory) return program;
    program_destroy(device, program);
    return NULL;
}

static amdgpu_program_t *program_find(amdgpu_program_t *first, uint32_t node)
{
    while (first && first->node != node) first = first->next;
    return first;
}

// The first one of a GPU stays.
static const amdgpu_program_t *program_keep(keel_recording_t *recording, amdgpu_program_t *made)
{
    // acquire: pairs with the exchange below, of another thread.
    void *first = atomic_load_explicit(&recording->prepared, memory_order_acquire);
    do {
        const amdgpu_program_t *other = program_find(first, made->node);
        if (other) {
            program_destroy(amdgpu_device(recording->device), made);
            return other;
        }
        made->next = first;
    } while (!atomic_compare_exchange_strong(&recording->prepared, &first, made));
    return made;
}

const amdgpu_program_t *amdgpu_program_of(keel_recording_t *recording, uint32_t node)
{
    // acquire: pairs with the exchange above.
    const amdgpu_program_t *program =
        program_find(atomic_load_explicit(&recording->prepared, memory_order_acquire), node);
    if (!program) {
        amdgpu_program_t *made =
            program_create(amdgpu_device(recording->device), recording->commands, node);
        if (!made) return NULL;
        program = program_keep(recording, made);
    }
    return program->suits ? program : NULL;
}

keel_status_t amdgpu_recording_prepare(keel_recording_t *recording, keel_queue_t *queue)
{
    amdgpu_program_of(recording, queue->info.node);
    return NULL;
}

void amdgpu_recording_discard(keel_recording_t *recording)
{
    amdgpu_program_t *next;
    for (amdgpu_program_t *p = atomic_load(&recording->prepared); p; p = next) {
        next = p->next;
        program_destroy(amdgpu_device(recording->device), p);
    }
}
