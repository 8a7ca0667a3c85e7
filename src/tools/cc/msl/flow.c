// SPDX-License-Identifier: Apache-2.0
#include "tools/cc/msl/flow.h"

typedef struct flow_t {
    arena_t *arena;
    ir_block_t **order; // of the blocks that are reached
    uint32_t count;
} flow_t;

static void list_add(arena_t *arena, ir_block_t ***list, uint32_t *count, ir_block_t *block)
{
    for (uint32_t i = 0; i < *count; i++)
        if ((*list)[i] == block) return;
    *list = arena_grow(arena, *list, *count);
    (*list)[(*count)++] = block;
}

// Writes the blocks behind `block`, then itself, from the end of the order on.
static void order_visit(flow_t *flow, ir_block_t *block)
{
    block->reached = true;
    const ir_inst_t *last = block->insts[block->count - 1];
    for (uint32_t i = 0; last->op != IR_OP_phi && i < last->block_count; i++) {
        ir_block_t *next = last->blocks[i];
        list_add(flow->arena, &block->into, &block->into_count, next);
        list_add(flow->arena, &next->from, &next->from_count, block);
    }
    for (uint32_t i = block->into_count; i-- > 0;)
        if (!block->into[i]->reached) order_visit(flow, block->into[i]);
    flow->order[flow->count++] = block;
}

static void order_reverse(flow_t *flow)
{
    for (uint32_t i = 0; i < flow->count / 2; i++) {
        ir_block_t *block = flow->order[i];
        flow->order[i] = flow->order[flow->count - 1 - i];
        flow->order[flow->count - 1 - i] = block;
    }
    for (uint32_t i = 0; i < flow->count; i++) flow->order[i]->order = i;
}

// The last block that dominates both.
static ir_block_t *common_dominator(ir_block_t *a, ir_block_t *b)
{
    while (a != b) {
        if (a->order > b->order)
            a = a->dominator;
        else
            b = b->dominator;
    }
    return a;
}

static void dominators_find(flow_t *flow)
{
    ir_block_t *first = flow->order[0];
    first->dominator = first;
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t i = 1; i < flow->count; i++) {
            ir_block_t *block = flow->order[i], *found = NULL;
            for (uint32_t k = 0; k < block->from_count; k++) {
                ir_block_t *from = block->from[k];
                if (!from->dominator) continue;
                found = found ? common_dominator(found, from) : from;
            }
            changed |= block->dominator != found;
            block->dominator = found;
        }
    }
    first->dominator = NULL;
}

static bool dominates(const ir_block_t *a, const ir_block_t *b)
{
    while (b && b->order > a->order) b = b->dominator;
    return a == b;
}

bool flow_is_back(const ir_block_t *from, const ir_block_t *to)
{
    return to->order <= from->order;
}

// Puts a block, or the outermost loop found so far that it is in, into a loop, and all that lead
// there. Inner loops are found first.
static void loop_fill(ir_block_t *block, ir_block_t *header)
{
    while (block->loop) block = block->loop;
    if (block == header) return;
    block->loop = header;
    for (uint32_t i = 0; i < block->from_count; i++) loop_fill(block->from[i], header);
}

static keel_status_t loops_find(flow_t *flow)
{
    for (uint32_t i = flow->count; i-- > 0;) {
        ir_block_t *header = flow->order[i];
        for (uint32_t k = 0; k < header->from_count; k++) {
            ir_block_t *from = header->from[k];
            if (!flow_is_back(from, header)) {
                header->forward_edges++;
                continue;
            }
            if (!dominates(header, from))
                return KEEL_ERROR(KEEL_UNSUPPORTED, "a loop has two entries: is it made by goto?");
            header->is_header = true;
        }
        for (uint32_t k = 0; header->is_header && k < header->from_count; k++)
            if (flow_is_back(header->from[k], header)) loop_fill(header->from[k], header);
    }
    return NULL;
}

// Whether a block is in a loop, as its header is.
static bool is_part(const ir_block_t *block, const ir_block_t *header)
{
    while (block && block != header) block = block->loop;
    return block;
}

// Where a block is written. Blocks come in their order, so lists are in order, too.
static void place_find(flow_t *flow, ir_block_t *block)
{
    ir_block_t *parent = block->dominator, *left = NULL;
    for (ir_block_t *loop = parent->is_header ? parent : parent->loop; loop; loop = loop->loop)
        if (!is_part(block, loop)) left = loop;
    if (left)
        list_add(flow->arena, &left->after, &left->after_count, block);
    else
        list_add(flow->arena, &parent->inside, &parent->inside_count, block);
}

keel_status_t flow_find(ir_module_t *module, ir_function_t *function)
{
    flow_t flow = {.arena = &module->arena};
    for (uint32_t i = 0; i < function->block_count; i++)
        if (!function->blocks[i]->defined || !function->blocks[i]->count)
            return KEEL_ERROR(KEEL_UNSUPPORTED, "clang made a block without instructions");
    flow.order = arena_new(&module->arena, function->block_count * sizeof(void *));
    order_visit(&flow, function->blocks[0]);
    order_reverse(&flow);
    dominators_find(&flow);
    KEEL_TRY(loops_find(&flow));
    for (uint32_t i = 1; i < flow.count; i++) place_find(&flow, flow.order[i]);
    return NULL;
}
