// SPDX-License-Identifier: Apache-2.0
// Blocks as statements, with a variable for each value.
#include <string.h>

#include "tools/cc/msl/code.h"

static const char *declared_type(code_t *code, const ir_value_t *value)
{
    if (value->type->kind != IR_PTR) return type_text(code, value->type);
    return PRINT(code, "%s uchar *", place_name((place_t)value->place));
}

// A value that other blocks use is declared before them all.
static void value_write(code_t *code, const ir_inst_t *inst, const char *text)
{
    const ir_value_t *made = inst->made;
    const char *type = declared_type(code, made);
    if (made->wide) text_add(&code->variables, "%s v%s;\n", type, made->name);
    text_add(code->out, "%s%sv%s = %s;\n", made->wide ? "" : type, made->wide ? "" : " ",
             made->name, text);
}

static void inst_write(code_t *code, const ir_inst_t *inst)
{
    switch (inst->op) {
    case IR_OP_phi:
        text_add(&code->variables, "%s v%s;\n", declared_type(code, inst->made), inst->made->name);
        return;
    case IR_OP_store: store_write(code, inst); return;
    case IR_OP_fence: text_add(code->out, "keel_fence();\n"); return;
    default: break;
    }
    const char *text = inst_text(code, inst);
    if (!text) return;
    if (inst->made)
        value_write(code, inst, text);
    else
        text_add(code->out, "%s;\n", text);
}

void block_write(code_t *code, const ir_block_t *block)
{
    for (uint32_t i = 0; i + 1 < block->count && !code->status; i++)
        inst_write(code, block->insts[i]);
}

static const ir_value_t *phi_value(const ir_inst_t *phi, const ir_block_t *from)
{
    for (uint32_t i = 0; i < phi->block_count; i++)
        if (phi->blocks[i] == from) return phi->operands[i];
    return NULL;
}

static bool is_phi_of(const ir_value_t *value, const ir_block_t *block)
{
    return value->kind == IR_LOCAL && value->inst && value->inst->op == IR_OP_phi &&
           value->block == block;
}

static const char *phi_text(code_t *code, const ir_value_t *value, const ir_value_t *made)
{
    if (value->type->kind != IR_PTR) return value_text(code, value);
    if (value->kind == IR_NOTHING)
        return PRINT(code, "(%s uchar *)0", place_name((place_t)made->place));
    return pointer_text(code, value);
}

// All at once: a phi may be what another one gets, which then has to be the old value.
void phis_write(code_t *code, const ir_block_t *from, const ir_block_t *to)
{
    bool together = false;
    uint32_t count = 0;
    while (count < to->count && to->insts[count]->op == IR_OP_phi) count++;
    for (uint32_t i = 0; i < count; i++) {
        const ir_value_t *value = phi_value(to->insts[i], from);
        together |= value && is_phi_of(value, to) && value != to->insts[i]->made;
    }
    if (together) text_add(code->out, "{\n");
    for (uint32_t i = 0; i < count; i++) {
        const ir_value_t *made = to->insts[i]->made, *value = phi_value(to->insts[i], from);
        if (!value || value == made) continue;
        const char *type = together ? PRINT(code, "%s next", declared_type(code, made)) : "v";
        text_add(code->out, "%s%s = %s;\n", type, made->name, phi_text(code, value, made));
    }
    for (uint32_t i = 0; i < count && together; i++) {
        const ir_value_t *made = to->insts[i]->made, *value = phi_value(to->insts[i], from);
        if (value && value != made) text_add(code->out, "v%s = next%s;\n", made->name, made->name);
    }
    if (together) text_add(code->out, "}\n");
}
