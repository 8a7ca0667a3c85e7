// SPDX-License-Identifier: Apache-2.0
#include "graphs/check.h"
#include "graphs/generator.h"
#include "graphs/kernels/arith.h"

#include <string.h>

op_t op_make(op_kind_t kind)
{
    op_t op;
    memset(&op, 0, sizeof op);
    op.kind = (uint8_t)kind;
    op.span_count = (uint8_t)strlen(op_infos[kind].spans);
    return op;
}

bool list_add(generator_t *generator, op_t *ops, uint8_t *count, size_t most, const op_t *op,
              const span_t *table)
{
    size_t had = *count;
    if (had == most) return false;
    ops[had] = *op;
    if (ops_ordered(generator->graph, ops, had + 1, table)) {
        *count = (uint8_t)(had + 1);
        return true;
    }
    if (had + 1 == most) return false;
    ops[had] = op_make(OP_BARRIER);
    ops[had + 1] = *op;
    *count = (uint8_t)(had + 2);
    return true;
}

static bool draft_add(generator_t *generator, const op_t *op)
{
    action_t *draft = &generator->draft;
    return list_add(generator, draft->ops, &draft->op_count, MAX_OPS, op, NULL);
}

static bool space_usable(const generator_t *generator, size_t space, uint8_t device)
{
    const space_t *what = &generator->graph->spaces[space];
    switch (what->kind) {
    case SPACE_BUFFER: return what->device == device && generator->control[device] != space;
    case SPACE_SHARED: return true;
    case SPACE_POOL: return what->device == device && generator->pool_states[space] == POOL_LIVE;
    default: return false;
    }
}

// The draft comes after what last gave or took the memory of a pool's buffer.
static void pool_follow(generator_t *generator, size_t space)
{
    if (generator->pool_actions[space] != THE_DRAFT)
        generator->draft_firm |= action_bit(generator->pool_actions[space]);
}

// A range of `length` bytes that the device can use; in a pool only what surely has memory.
static bool span_choose(generator_t *generator, uint8_t device, uint16_t length, span_t *span)
{
    const graph_t *graph = generator->graph;
    for (size_t tries = 0; tries < 8; tries++) {
        uint32_t space = random_below(&generator->random, graph->space_count);
        if (!space_usable(generator, space, device) || graph->spaces[space].size < length) continue;
        uint32_t slack = (uint32_t)graph->spaces[space].size - length;
        memset(span, 0, sizeof *span);
        span->id = (uint8_t)space;
        span->length = length;
        span->offset = (uint16_t)random_range(&generator->random, 0, slack);
        if (random_chance(&generator->random, 50)) span->offset &= 0xfff0;
        if (graph->spaces[space].kind == SPACE_POOL) pool_follow(generator, space);
        return true;
    }
    return false;
}

static bool spans_apart(const span_t *a, const span_t *b)
{
    return a->id != b->id || a->offset + a->length <= b->offset ||
           b->offset + b->length <= a->offset;
}

// As many ranges as asked for, of one length, none over another.
static bool spans_choose(generator_t *generator, uint8_t device, uint16_t length, size_t count,
                         span_t *spans)
{
    for (size_t i = 0; i < count; i++) {
        size_t tries = 0;
        bool apart = false;
        while (!apart && tries++ < 8) {
            if (!span_choose(generator, device, length, &spans[i])) return false;
            apart = true;
            for (size_t j = 0; j < i; j++) apart &= spans_apart(&spans[i], &spans[j]);
        }
        if (!apart) return false;
    }
    return true;
}

void kernel_grid(generator_t *generator, op_t *op)
{
    random_t *random = &generator->random;
    uint32_t words = op->spans[0].length / 4u;
    uint32_t groups = (words + ARITH_GROUP - 1) / ARITH_GROUP;
    op->groups[0] = (uint8_t)groups;
    op->groups[1] = op->groups[2] = 1;
    if (random_chance(random, 30))
        for (size_t i = 0; i < 3; i++) op->groups[i] = (uint8_t)random_below(random, 4);
}

bool memory_op(generator_t *generator, uint8_t device, bool kernels, op_t *op)
{
    static const uint8_t kinds[] = {OP_FILL, OP_UPDATE, OP_COPY, OP_SCALE, OP_MOVE, OP_MIX};
    random_t *random = &generator->random;
    op_kind_t kind = kinds[random_below(random, kernels ? 6 : 3)];
    uint32_t length = random_range(random, 1, 64);
    *op = op_make(kind);
    if (kind == OP_FILL) {
        op->numbers[0] = (uint32_t)random_next(random);
        op->numbers[1] = 1u << random_below(random, 3);
        length = (length + op->numbers[1] - 1) / op->numbers[1] * op->numbers[1];
    } else {
        op->numbers[0] = random_below(random, 1000);
    }
    bool kernel = op_infos[kind].traits & TRAIT_KERNEL;
    if (kernel) length = (length + 3) & ~3u;
    if (!spans_choose(generator, device, (uint16_t)length, op->span_count, op->spans)) return false;
    if (kernel) kernel_grid(generator, op);
    return true;
}

// A copy between the draft's device and another one of the graph.
static void across_op(generator_t *generator)
{
    random_t *random = &generator->random;
    op_t op = op_make(OP_COPY);
    uint16_t length = (uint16_t)random_range(random, 1, 64);
    size_t here = random_below(random, 2);
    uint8_t other = generator->devices[random_below(random, (uint32_t)generator->device_count)];
    if (!(generator->bits & KEEL_CAP_COPY_ACROSS) || other == generator->draft.device) return;
    if (!span_choose(generator, generator->draft.device, length, &op.spans[here])) return;
    if (!span_choose(generator, other, length, &op.spans[!here])) return;
    if (spans_apart(&op.spans[0], &op.spans[1])) draft_add(generator, &op);
}

// A cell of the device whose contents follow from what surely happened before the draft, or -1.
static int cell_choose(generator_t *generator, uint8_t device)
{
    for (size_t tries = 0; tries < 8; tries++) {
        uint32_t cell = random_below(&generator->random, CELLS);
        int writer = generator->cells[device][cell];
        if (writer < 0 || generator->failing & action_bit((size_t)writer)) continue;
        if (generator->draft_cells_written & 1u << cell) continue;
        generator->draft_firm |= action_bit((size_t)writer);
        generator->draft_cells_read |= (uint8_t)(1u << cell);
        return (int)cell;
    }
    return -1;
}

static span_t cell_span(const generator_t *generator, uint8_t device, uint32_t cell)
{
    span_t span = {false, generator->control[device], (uint16_t)(cell * CELL_SIZE), CELL_SIZE};
    return span;
}

static void cell_op(generator_t *generator)
{
    uint8_t device = generator->draft.device;
    op_t op = op_make(OP_UPDATE);
    uint32_t cell = random_below(&generator->random, CELLS);
    if (generator->draft_cells_read & 1u << cell) return;
    op.spans[0] = cell_span(generator, device, cell);
    op.numbers[0] = random_below(&generator->random, 1000);
    op.numbers[1] = 4;
    if (draft_add(generator, &op)) generator->draft_cells_written |= (uint8_t)(1u << cell);
}

// A kernel whose grid lies in a cell that an earlier submission has written.
static void indirect_op(generator_t *generator)
{
    uint8_t device = generator->draft.device;
    int cell = cell_choose(generator, device);
    op_t op;
    if (cell < 0 || !memory_op(generator, device, true, &op)) return;
    if (!(op_infos[op.kind].traits & TRAIT_KERNEL)) return;
    bool dynamic = generator->bits & KEEL_CAP_DYNAMIC_COUNTS;
    op.counts = dynamic && random_chance(&generator->random, 40) ? COUNTS_DYNAMIC : COUNTS_STATIC;
    op.spans[MAX_SPANS - 1] = cell_span(generator, device, (uint32_t)cell);
    op.spans[MAX_SPANS - 1].offset += CELL_COUNTS;
    op.spans[MAX_SPANS - 1].length = 12;
    draft_add(generator, &op);
}

static bool table_fill(generator_t *generator, size_t index, op_t *op)
{
    const recording_t *recording = &generator->graph->recordings[index];
    uint8_t device = generator->draft.device;
    size_t data = recording->slot_count - (size_t)generator->has_cell[index];
    if (!spans_choose(generator, device, SLOT_SIZE, data, op->spans)) return false;
    if (!generator->has_cell[index]) return true;
    int cell = (int)random_below(&generator->random, CELLS);
    if (generator->reads_cell[index]) cell = cell_choose(generator, device);
    if (cell < 0) return false;
    if (!generator->reads_cell[index]) {
        if (generator->draft_cells_read & 1u << cell) return false;
        generator->draft_cells_written |= (uint8_t)(1u << cell);
    }
    op->spans[data] = cell_span(generator, device, (uint32_t)cell);
    return true;
}

static void execute_op(generator_t *generator)
{
    const graph_t *graph = generator->graph;
    const action_t *draft = &generator->draft;
    size_t executes = 0;
    for (size_t i = 0; i < draft->op_count; i++) executes += draft->ops[i].kind == OP_EXECUTE;
    if (!graph->recording_count || executes == MAX_EXECUTES) return;
    uint32_t index = random_below(&generator->random, graph->recording_count);
    for (size_t i = 0; i < graph->recording_count; i++) {
        if (graph->recordings[index].device == draft->device && !generator->shot[index]) break;
        index = (index + 1) % graph->recording_count;
    }
    const recording_t *recording = &graph->recordings[index];
    op_t op = op_make(OP_EXECUTE);
    op.numbers[0] = index;
    op.numbers[1] = given_random(generator, graph->action_count, draft->op_count) % 1000;
    op.span_count = recording->slot_count;
    if (recording->device != draft->device || generator->shot[index]) return;
    if (generator->aborts[index] && generator->draft_pool) return;
    if (!table_fill(generator, index, &op)) return;
    if (!execute_check(graph, &op, draft->device, &generator->check)) return;
    if (!draft_add(generator, &op)) return;
    generator->shot[index] = recording->one_shot;
    generator->draft_fails |= generator->aborts[index];
}

static void call_op(generator_t *generator)
{
    op_t op = op_make(OP_CALL);
    uint16_t length = (uint16_t)random_range(&generator->random, 1, 32);
    if (!(generator->bits & KEEL_CAP_HOST_CALLS)) return;
    if (!span_choose(generator, generator->draft.device, length, &op.spans[0])) return;
    op.numbers[0] = random_below(&generator->random, 1000);
    op.numbers[1] = random_chance(&generator->random, 50) ? CALL_NOW : CALL_LATER;
    draft_add(generator, &op);
}

static void file_op(generator_t *generator)
{
    const graph_t *graph = generator->graph;
    random_t *random = &generator->random;
    uint16_t length = (uint16_t)random_range(random, 1, 64);
    bool read = random_chance(random, 50);
    op_t op = op_make(read ? OP_READ : OP_WRITE);
    size_t file = graph->space_count;
    for (size_t i = 0; i < graph->space_count; i++)
        if (graph->spaces[i].kind == SPACE_FILE) file = i;
    if (file == graph->space_count) return;
    span_t *in_file = &op.spans[read ? 0 : 1];
    in_file->id = (uint8_t)file;
    in_file->length = length;
    in_file->offset = (uint16_t)random_range(random, 0, graph->spaces[file].size - length);
    if (!span_choose(generator, generator->draft.device, length, &op.spans[read ? 1 : 0])) return;
    draft_add(generator, &op);
}

// Whether a buffer of the tight pool may have its memory: all others have given theirs back, or
// will have, in submissions made before.
static bool tight_follow(generator_t *generator, size_t space)
{
    const graph_t *graph = generator->graph;
    uint64_t after = 0, firm = 0;
    for (size_t i = 0; i < graph->space_count; i++) {
        const space_t *other = &graph->spaces[i];
        bool rival = i != space && other->kind == SPACE_POOL && other->pool == TIGHT_POOL &&
                     other->device == graph->spaces[space].device;
        if (!rival || generator->pool_states[i] == POOL_NEW) continue;
        if (generator->pool_states[i] == POOL_LIVE || generator->pool_actions[i] == THE_DRAFT)
            return false;
        after |= action_bit(generator->pool_actions[i]);
        firm |= action_bit(generator->pool_allocas[i]);
    }
    generator->draft.after |= after;
    generator->draft_firm |= firm;
    return true;
}

// Gives memory to a pool's buffer, uses it at once, or takes it away.
static void pool_op(generator_t *generator)
{
    const graph_t *graph = generator->graph;
    uint32_t space = 0;
    for (size_t tries = 0; tries < 6 && graph->spaces[space].kind != SPACE_POOL; tries++)
        space = random_below(&generator->random, graph->space_count);
    const space_t *what = &graph->spaces[space];
    uint8_t *state = &generator->pool_states[space];
    if (what->kind != SPACE_POOL || what->device != generator->draft.device) return;
    if (*state == POOL_GONE || generator->draft_fails) return;
    op_t op = op_make(*state == POOL_NEW ? OP_ALLOCA : OP_DEALLOCA);
    if (op.kind == OP_DEALLOCA && random_chance(&generator->random, generator->tight ? 5 : 30))
        return;
    op.spans[0].id = (uint8_t)space;
    op.spans[0].length = what->size;
    if (generator->draft.op_count + 3u > MAX_OPS) return;
    bool tight = op.kind == OP_ALLOCA && what->pool == TIGHT_POOL;
    if (tight && !tight_follow(generator, space)) return;
    draft_add(generator, &op);
    generator->draft_pool = true;
    if (op.kind == OP_DEALLOCA) {
        pool_follow(generator, space);
        generator->pool_actions[space] = THE_DRAFT;
        *state = POOL_GONE;
        return;
    }
    op_t fill = op_make(OP_FILL);
    fill.spans[0] = op.spans[0];
    fill.numbers[0] = (uint32_t)random_next(&generator->random);
    fill.numbers[1] = 4;
    draft_add(generator, &fill);
    *state = POOL_LIVE;
    generator->pool_actions[space] = generator->pool_allocas[space] = THE_DRAFT;
}

static bool stale_choose(generator_t *generator, op_t *op)
{
    const graph_t *graph = generator->graph;
    for (size_t i = 0; i < graph->space_count; i++) {
        const space_t *space = &graph->spaces[i];
        bool gone = space->kind == SPACE_POOL && generator->pool_states[i] == POOL_GONE;
        if (!gone || space->device != generator->draft.device) continue;
        *op = op_make(OP_FILL);
        op->spans[0].id = (uint8_t)i;
        op->spans[0].length = space->size;
        op->numbers[1] = 4;
        pool_follow(generator, i);
        return true;
    }
    return false;
}

// Something that makes the draft fail by itself.
static void failing_op(generator_t *generator)
{
    random_t *random = &generator->random;
    uint8_t device = generator->draft.device;
    op_t op;
    if (generator->draft_pool || generator->draft_fails) return;
    bool stale = random_chance(random, 50) && stale_choose(generator, &op);
    if (!stale && generator->draft.queue != TRANSFER_QUEUE && random_chance(random, 50)) {
        op = op_make(OP_ABORT);
        if (!(generator->bits & KEEL_CAP_KERNEL_STATUS)) return;
        if (!span_choose(generator, device, 16, &op.spans[0])) return;
        op.groups[0] = (uint8_t)random_range(random, 1, 5);
        op.groups[1] = op.groups[2] = 1;
        op.numbers[0] = random_below(random, op.groups[0]);
    } else if (!stale) {
        op = op_make(OP_CALL);
        if (!(generator->bits & KEEL_CAP_HOST_CALLS)) return;
        if (!span_choose(generator, device, 4, &op.spans[0])) return;
        op.numbers[1] = random_chance(random, 50) ? CALL_FAIL : CALL_FAIL_LATER;
    }
    generator->draft_fails = draft_add(generator, &op);
}

// Cells that a recording may write, in part, are no longer good for counts.
static void cells_update(generator_t *generator)
{
    const action_t *draft = &generator->draft;
    uint8_t device = draft->device;
    for (size_t i = 0; i < draft->op_count; i++) {
        const op_t *op = &draft->ops[i];
        bool update = op->kind == OP_UPDATE && op->spans[0].id == generator->control[device];
        if (update) generator->cells[device][op->spans[0].offset / CELL_SIZE] = THE_DRAFT_CELL;
        if (op->kind != OP_EXECUTE || !generator->has_cell[op->numbers[0]]) continue;
        if (generator->reads_cell[op->numbers[0]]) continue;
        generator->cells[device][op->spans[op->span_count - 1].offset / CELL_SIZE] = -1;
    }
}

// Puts a debug group around all of it.
static void draft_group(generator_t *generator)
{
    action_t *draft = &generator->draft;
    if (draft->op_count + 2u > MAX_OPS) return;
    memmove(&draft->ops[1], &draft->ops[0], draft->op_count * sizeof draft->ops[0]);
    draft->ops[0] = op_make(OP_GROUP);
    draft->ops[draft->op_count + 1] = op_make(OP_UNGROUP);
    draft->op_count = (uint8_t)(draft->op_count + 2);
}

void draft_ops(generator_t *generator, uint32_t count)
{
    random_t *random = &generator->random;
    action_t *draft = &generator->draft;
    bool kernels = draft->queue != TRANSFER_QUEUE;
    for (uint32_t i = 0; i < count && draft->op_count + 4u < MAX_OPS; i++) {
        uint32_t dice = random_below(random, 100);
        op_t op;
        if (dice < 8) {
            op = op_make(OP_BARRIER);
            draft->ops[draft->op_count++] = op;
        } else if (dice < 16) {
            call_op(generator);
        } else if (dice < 24) {
            file_op(generator);
        } else if (dice < 34 || (generator->tight && dice > 80)) {
            pool_op(generator);
        } else if (dice < 40) {
            cell_op(generator);
        } else if (dice < 47 && kernels) {
            indirect_op(generator);
        } else if (dice < 66 && kernels) {
            execute_op(generator);
        } else if (dice < 74 && generator->device_count > 1) {
            across_op(generator);
        } else if (memory_op(generator, draft->device, kernels, &op)) {
            draft_add(generator, &op);
        }
    }
    if (generator->graph->failures && random_chance(random, 9)) failing_op(generator);
    if (random_chance(random, 10)) draft_group(generator);
    cells_update(generator);
}
