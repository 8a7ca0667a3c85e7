// SPDX-License-Identifier: Apache-2.0
// Blocks as loops and conditions. A block that several others lead to stands behind a scope, and
// they leave it: by running to its end, by break, or, from a scope further inside, by break with
// the variable `leave` set, which says where to.
#include "tools/cc/msl/code.h"
#include "tools/cc/msl/flow.h"

typedef struct scope_t {
    struct scope_t *outer;
    const ir_block_t *behind;   // what break leads to; NULL: nothing
    const ir_block_t *header;   // of a loop, what continue leads to; NULL: it is none
    const ir_block_t **passing; // where breaks lead that this scope is not the last to be left for
    uint32_t passing_count;
    bool left; // by break
} scope_t;

static void tree_write(code_t *code, const ir_block_t *block, const ir_block_t *next);

static void scope_pass(code_t *code, scope_t *scope, const ir_block_t *to)
{
    for (uint32_t i = 0; i < scope->passing_count; i++)
        if (scope->passing[i] == to) return;
    scope->passing = arena_grow(&code->module->arena, (void *)scope->passing, scope->passing_count);
    scope->passing[scope->passing_count++] = to;
}

// Goes to a block that a scope leads to. `set`: the variable says already where to.
static void jump_write(code_t *code, const ir_block_t *to, bool set)
{
    scope_t *scope = code->scope;
    if (scope && scope->header == to) {
        text_add(code->out, "%scontinue;\n", set ? "leave = 0;\n" : "");
        return;
    }
    if (!scope) {
        code_fail(code, KEEL_ERROR(KEEL_INTERNAL, "no scope leads to block %s", to->name));
        return;
    }
    scope->left = true;
    if (scope->behind == to) {
        text_add(code->out, "%sbreak;\n", set ? "leave = 0;\n" : "");
        return;
    }
    scope_pass(code, scope, to);
    code->leaves = true;
    if (!set) text_add(code->out, "leave = %u;\n", to->order + 1);
    text_add(code->out, "break;\n");
}

// Whether a block is written where the one block that leads to it ends.
static bool is_inline(const ir_block_t *from, const ir_block_t *to)
{
    if (to->forward_edges != 1 || flow_is_back(from, to)) return false;
    for (uint32_t i = 0; i < from->inside_count; i++)
        if (from->inside[i] == to) return true;
    return false;
}

// Goes from one block to another. `next` is what comes when nothing more is written.
static void edge_write(code_t *code, const ir_block_t *from, const ir_block_t *to,
                       const ir_block_t *next)
{
    phis_write(code, from, to);
    if (is_inline(from, to))
        tree_write(code, to, next);
    else if (to != next)
        jump_write(code, to, false);
}

static void condition_write(code_t *code, const ir_block_t *block, const ir_inst_t *last,
                            const ir_block_t *next)
{
    text_t *out = code->out, arms[2] = {{0}, {0}};
    for (int i = 0; i < 2; i++) {
        code->out = &arms[i];
        edge_write(code, block, last->blocks[i], next);
    }
    code->out = out;
    const char *condition = value_text(code, last->operands[0]);
    if (arms[0].length)
        text_add(out, "if (%s) {\n%s}", condition, text_of(&arms[0]));
    else if (arms[1].length)
        text_add(out, "if (!(%s)) {\n%s}", condition, text_of(&arms[1]));
    if (arms[0].length && arms[1].length) text_add(out, " else {\n%s}", text_of(&arms[1]));
    text_add(out, "\n");
    text_finish(&arms[0]);
    text_finish(&arms[1]);
}

// As conditions: break would leave MSL's switch. Each target is written once.
static void switch_write(code_t *code, const ir_block_t *block, const ir_inst_t *last,
                         const ir_block_t *next)
{
    const char *value = value_text(code, last->operands[0]);
    for (uint32_t i = 0; i < block->into_count; i++) {
        const ir_block_t *to = block->into[i];
        if (to == last->blocks[0]) continue;
        const char *before = "if (";
        for (uint32_t k = 1; k < last->block_count; k++) {
            if (last->blocks[k] != to) continue;
            text_add(code->out, "%s%s == %s", before, value, value_text(code, last->operands[k]));
            before = " || ";
        }
        text_add(code->out, ") {\n");
        edge_write(code, block, to, next);
        text_add(code->out, "} else ");
    }
    text_add(code->out, "{\n");
    edge_write(code, block, last->blocks[0], next);
    text_add(code->out, "}\n");
}

static void end_write(code_t *code, const ir_block_t *block, const ir_block_t *next)
{
    const ir_inst_t *last = block->insts[block->count - 1];
    if (last->op == IR_OP_ret || last->op == IR_OP_unreachable)
        text_add(code->out, "return;\n");
    else if (block->into_count == 1)
        edge_write(code, block, block->into[0], next);
    else if (last->op == IR_OP_br)
        condition_write(code, block, last, next);
    else
        switch_write(code, block, last, next);
}

// Where what is inside a scope went that leaves more than that scope.
static void passing_write(code_t *code, const scope_t *scope)
{
    for (uint32_t i = 0; i < scope->passing_count; i++) {
        text_add(code->out, "if (leave == %u) {\n", scope->passing[i]->order + 1);
        jump_write(code, scope->passing[i], true);
        text_add(code->out, "}\n");
    }
}

typedef struct nest_t {
    const ir_block_t *block;
    ir_block_t **behind; // blocks that several others lead to, in order
    uint32_t count;
    bool is_loop;
} nest_t;

static void nest_write(code_t *code, const nest_t *nest, uint32_t count, const ir_block_t *next);

static void body_write(code_t *code, const ir_block_t *block, const ir_block_t *next)
{
    ir_block_t **behind = arena_new(&code->module->arena, block->inside_count * sizeof(void *));
    nest_t nest = {.block = block, .behind = behind};
    for (uint32_t i = 0; i < block->inside_count; i++)
        if (block->inside[i]->forward_edges != 1 || !is_inline(block, block->inside[i]))
            behind[nest.count++] = block->inside[i];
    nest_write(code, &nest, nest.count, next);
}

// What is in the innermost scope of a nest: the block itself, or its loop.
static void core_write(code_t *code, const nest_t *nest, const ir_block_t *next)
{
    if (nest->is_loop) {
        body_write(code, nest->block, nest->block);
    } else {
        block_write(code, nest->block);
        end_write(code, nest->block, next);
    }
}

// The block and the first `count` of those behind it: each but the last leaves a scope that ends
// before the next. A scope that nothing leaves by break is none.
static void nest_write(code_t *code, const nest_t *nest, uint32_t count, const ir_block_t *next)
{
    const ir_block_t *behind = count ? nest->behind[count - 1] : next;
    bool is_loop = nest->is_loop && !count;
    if (!count && !is_loop) {
        core_write(code, nest, next);
        return;
    }
    scope_t scope = {.outer = code->scope, .behind = behind};
    text_t *out = code->out, inside = {0};
    if (is_loop) scope.header = nest->block;
    code->out = &inside;
    code->scope = &scope;
    if (is_loop)
        core_write(code, nest, behind);
    else
        nest_write(code, nest, count - 1, behind);
    code->scope = scope.outer;
    code->out = out;
    text_add(out, is_loop ? "while (true) {\n" : scope.left ? "do {\n" : "");
    text_append(out, &inside);
    text_add(out, is_loop ? "}\n" : scope.left ? "} while (false);\n" : "");
    text_finish(&inside);
    passing_write(code, &scope);
    if (count) tree_write(code, behind, next);
}

static void tree_write(code_t *code, const ir_block_t *block, const ir_block_t *next)
{
    if (!block->is_header) {
        body_write(code, block, next);
        return;
    }
    nest_t nest = {block, block->after, block->after_count, true};
    nest_write(code, &nest, nest.count, next);
}

void shape_write(code_t *code)
{
    tree_write(code, code->function->blocks[0], NULL);
}
