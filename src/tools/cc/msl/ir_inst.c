// SPDX-License-Identifier: Apache-2.0
// Instructions, one a line.
#include <string.h>

#include "tools/cc/msl/reader.h"

ir_block_t *block_named(ir_reader_t *r, const char *name)
{
    ir_function_t *f = r->function;
    for (uint32_t i = 0; i < f->block_count; i++)
        if (!strcmp(f->blocks[i]->name, name)) return f->blocks[i];
    ir_block_t *block = arena_new(&r->module->arena, sizeof *block);
    block->name = name;
    f->blocks = arena_grow(&r->module->arena, f->blocks, f->block_count);
    f->blocks[f->block_count++] = block;
    return block;
}

static void inst_block(ir_reader_t *r, ir_inst_t *inst)
{
    if (r->token.kind != TOKEN_LOCAL) {
        ir_reader_stray(r, "a label is expected");
        return;
    }
    inst->blocks = arena_grow(&r->module->arena, inst->blocks, inst->block_count);
    inst->blocks[inst->block_count++] = block_named(r, ir_reader_name(r));
}

// `, label %x`, or without the comma.
static void read_target(ir_reader_t *r, ir_inst_t *inst)
{
    ir_reader_take(r, ",");
    ir_reader_expect(r, "label");
    inst_block(r, inst);
}

static void read_two(ir_reader_t *r, ir_inst_t *inst)
{
    ir_reader_skip_flags(r);
    ir_value_t *first = read_typed(r);
    inst_operand(r, inst, first);
    if (inst->op == IR_OP_fneg || inst->op == IR_OP_freeze) {
        inst->type = first->type;
        return;
    }
    ir_reader_expect(r, ",");
    inst_operand(r, inst, read_value(r, first->type));
    inst->type = first->type;
}

static void read_compare(ir_reader_t *r, ir_inst_t *inst)
{
    ir_reader_skip_flags(r);
    inst->word = ir_reader_name(r);
    read_two(r, inst);
    inst->type = type_of(r, IR_INT, 1);
}

static void read_select(ir_reader_t *r, ir_inst_t *inst)
{
    ir_reader_skip_flags(r);
    for (int i = 0; i < 3; i++) {
        if (i) ir_reader_expect(r, ",");
        inst_operand(r, inst, read_typed(r));
    }
    inst->type = inst->operands[1]->type;
}

static void read_phi(ir_reader_t *r, ir_inst_t *inst)
{
    ir_reader_skip_flags(r);
    inst->type = read_type(r);
    do {
        ir_reader_expect(r, "[");
        inst_operand(r, inst, read_value(r, inst->type));
        ir_reader_expect(r, ",");
        inst_block(r, inst);
        ir_reader_expect(r, "]");
    } while (ir_reader_take(r, ",") && ir_reader_is(r, "["));
}

static void read_branch(ir_reader_t *r, ir_inst_t *inst)
{
    if (!ir_reader_is(r, "label")) {
        inst_operand(r, inst, read_typed(r));
        read_target(r, inst);
    }
    read_target(r, inst);
}

// Operand 0 is what is looked at, block 0 where else it goes to.
static void read_switch(ir_reader_t *r, ir_inst_t *inst)
{
    inst_operand(r, inst, read_typed(r));
    read_target(r, inst);
    ir_reader_expect(r, "[");
    while (!ir_reader_is(r, "]") && !r->status) {
        if (r->token.kind == TOKEN_LINE) {
            ir_reader_next(r);
            continue;
        }
        inst_operand(r, inst, read_typed(r));
        read_target(r, inst);
    }
    ir_reader_expect(r, "]");
}

// What follows the operands of an access of memory.
static void read_access(ir_reader_t *r, ir_inst_t *inst)
{
    while (r->token.kind != TOKEN_LINE && r->token.kind != TOKEN_END) {
        bool align = ir_reader_is(r, "align");
        ir_reader_next(r);
        if (align) inst->align = (uint32_t)ir_reader_number(r);
    }
}

static void read_load(ir_reader_t *r, ir_inst_t *inst)
{
    inst->is_atomic = ir_reader_take(r, "atomic");
    inst->is_volatile = ir_reader_take(r, "volatile");
    inst->type = read_type(r);
    ir_reader_expect(r, ",");
    inst_operand(r, inst, read_typed(r));
    read_access(r, inst);
}

static void read_store(ir_reader_t *r, ir_inst_t *inst)
{
    inst->is_atomic = ir_reader_take(r, "atomic");
    inst->is_volatile = ir_reader_take(r, "volatile");
    inst_operand(r, inst, read_typed(r));
    ir_reader_expect(r, ",");
    inst_operand(r, inst, read_typed(r));
    read_access(r, inst);
}

static void read_alloca(ir_reader_t *r, ir_inst_t *inst)
{
    const ir_type_t *element = read_type(r);
    inst->type = element;
    if (ir_reader_take(r, ",") && !ir_reader_is(r, "align") && !ir_reader_is(r, "addrspace")) {
        ir_value_t *count = read_typed(r);
        ir_type_t *array = arena_new(&r->module->arena, sizeof *array);
        *array = (ir_type_t){.kind = IR_ARRAY, .count = count->number, .element = element};
        if (count->kind != IR_NUMBER)
            ir_reader_stray(r, "a variable of constant length is expected");
        inst->type = array;
    }
    read_access(r, inst);
}

// What stands before the type that a call returns.
static void skip_conventions(ir_reader_t *r)
{
    static const char *const words[] = {"spir_func", "fastcc",  "coldcc",  "ccc",     "range",
                                        "noundef",   "zeroext", "signext", "nonnull", "noalias"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (!ir_reader_take(r, words[i])) continue;
        if (ir_reader_is(r, "(")) ir_reader_skip_group(r);
        i = (size_t)-1;
    }
}

static void skip_metadata(ir_reader_t *r)
{
    while (!ir_reader_is(r, ",") && !ir_reader_is(r, ")") && r->token.kind != TOKEN_END) {
        if (ir_reader_is(r, "("))
            ir_reader_skip_group(r);
        else
            ir_reader_next(r);
    }
}

// Operand 0 is the function.
static void read_call(ir_reader_t *r, ir_inst_t *inst)
{
    skip_conventions(r);
    inst->type = read_type(r);
    if (ir_reader_is(r, "(")) ir_reader_skip_group(r); // the types of all parameters
    inst_operand(r, inst, read_value(r, inst->type));
    ir_reader_expect(r, "(");
    while (!ir_reader_is(r, ")") && !r->status) {
        if (ir_reader_is(r, "metadata"))
            skip_metadata(r);
        else
            inst_operand(r, inst, read_typed(r));
        if (!ir_reader_take(r, ",")) break;
    }
    ir_reader_expect(r, ")");
}

// atomicrmw [volatile] add ptr %p, i32 1 ...; cmpxchg [weak] [volatile] ptr %p, i32 a, i32 b ...
static void read_atomic(ir_reader_t *r, ir_inst_t *inst)
{
    ir_reader_take(r, "weak");
    inst->is_volatile = ir_reader_take(r, "volatile");
    if (inst->op == IR_OP_atomicrmw) inst->word = ir_reader_name(r);
    inst_operand(r, inst, read_typed(r));
    for (int i = 0; i < (inst->op == IR_OP_cmpxchg ? 2 : 1); i++) {
        ir_reader_expect(r, ",");
        inst_operand(r, inst, read_typed(r));
    }
    inst->type = inst->operands[1]->type;
    read_access(r, inst);
}

static void read_extract(ir_reader_t *r, ir_inst_t *inst)
{
    ir_value_t *from = read_typed(r);
    inst_operand(r, inst, from);
    ir_reader_expect(r, ",");
    inst->index = (uint32_t)ir_reader_number(r);
    bool fits = from->type->kind == IR_STRUCT && inst->index < from->type->count;
    inst->type = fits ? from->type->fields[inst->index] : from->type;
}

static void read_operands(ir_reader_t *r, ir_inst_t *inst)
{
    switch (inst->op) {
    case IR_OP_icmp:
    case IR_OP_fcmp: read_compare(r, inst); break;
    case IR_OP_select: read_select(r, inst); break;
    case IR_OP_phi: read_phi(r, inst); break;
    case IR_OP_br: read_branch(r, inst); break;
    case IR_OP_switch: read_switch(r, inst); break;
    case IR_OP_ret:
        if (!ir_reader_is(r, "void")) inst_operand(r, inst, read_typed(r));
        break;
    case IR_OP_unreachable:
    case IR_OP_fence: break;
    case IR_OP_load: read_load(r, inst); break;
    case IR_OP_store: read_store(r, inst); break;
    case IR_OP_alloca: read_alloca(r, inst); break;
    case IR_OP_getelementptr: read_steps(r, inst); break;
    case IR_OP_call: read_call(r, inst); break;
    case IR_OP_atomicrmw:
    case IR_OP_cmpxchg: read_atomic(r, inst); break;
    case IR_OP_extractvalue: read_extract(r, inst); break;
    default:
        if (inst->op >= IR_OP_zext && inst->op <= IR_OP_addrspacecast)
            read_conversion(r, inst);
        else
            read_two(r, inst);
    }
}

void read_instruction(ir_reader_t *r, ir_block_t *block)
{
    const char *made = NULL;
    if (r->token.kind == TOKEN_LOCAL) {
        made = ir_reader_name(r);
        ir_reader_expect(r, "=");
    }
    ir_reader_skip_flags(r);
    ir_inst_t *inst = arena_new(&r->module->arena, sizeof *inst);
    *inst = (ir_inst_t){.op = op_named(&r->token)};
    if (inst->op == IR_OP_COUNT) {
        ir_reader_stray(r, "an instruction that Metal has is expected");
        return;
    }
    ir_reader_next(r);
    ir_reader_skip_flags(r);
    read_operands(r, inst);
    ir_reader_skip_line(r);
    if (r->status) return;
    if (made) {
        bool address = inst->op == IR_OP_alloca || inst->op == IR_OP_getelementptr;
        inst->made = local_named(r, made);
        inst->made->inst = inst;
        inst->made->block = block;
        inst->made->type = address ? type_of(r, IR_PTR, 0) : inst->type;
    }
    block->insts = arena_grow(&r->module->arena, block->insts, block->count);
    block->insts[block->count++] = inst;
}
