// SPDX-License-Identifier: Apache-2.0
// A text of MSL for a whole source. The first lines tell the driver what it has to know:
//
//     // keel cc: kernels are called keel_NAME
//     // keel grid: the launch's
//     // keel variable: NAME OFFSET LENGTH CONSTANT
//     // keel values: BYTES IN HEX
//
// Variables and constants of the executable lie in one buffer, which kernels take at index 1.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/cc/msl/code.h"
#include "tools/cc/msl/flow.h"
#include "tools/cc/msl/msl.h"

static const char records[] = "keel_kernels";

static const ir_function_t *function_named(const ir_module_t *module, const char *name)
{
    for (uint32_t i = 0; i < module->function_count; i++)
        if (!strcmp(module->functions[i]->name, name)) return module->functions[i];
    return NULL;
}

// Marks values that are used in other blocks than their own.
static void uses_mark(const ir_block_t *block, const ir_value_t *value, bool by_phi)
{
    if (value->kind == IR_COMPUTED)
        for (uint32_t i = 0; i < value->inst->operand_count; i++)
            uses_mark(block, value->inst->operands[i], by_phi);
    if (value->kind == IR_LOCAL && value->inst && (by_phi || value->block != block))
        ((ir_value_t *)(uintptr_t)value)->wide = true;
}

static void uses_find(const ir_function_t *f)
{
    for (uint32_t b = 0; b < f->block_count; b++)
        for (uint32_t i = 0; i < f->blocks[b]->count; i++) {
            const ir_inst_t *inst = f->blocks[b]->insts[i];
            for (uint32_t k = 0; k < inst->operand_count; k++)
                uses_mark(f->blocks[b], inst->operands[k], inst->op == IR_OP_phi);
        }
}

// Workgroup memory is declared in the kernel, in units of its alignment.
static void memory_write(text_t *out, const ir_module_t *module)
{
    for (uint32_t i = 0; i < module->variable_count; i++) {
        ir_variable_t *v = module->variables[i];
        if (v->space != 3 || !v->used) continue;
        unsigned long long units = (ir_size(v->type) + 15) / 16;
        text_add(out, "threadgroup uint4 %s[%llu];\n", v->name, units ? units : 1);
        v->used = false;
    }
}

// The body of a kernel, and before it all variables.
static keel_status_t kernel_write(ir_module_t *module, const keel_image_entry_t *entry,
                                  bool variables, text_t *out)
{
    const keel_entry_info_t *info = &entry->info;
    const ir_function_t *found = function_named(module, info->name);
    if (!found || found->param_count != 1)
        return KEEL_ERROR(KEEL_INTERNAL, "clang made no code for kernel '%s'", info->name);
    ir_function_t *function = (ir_function_t *)(uintptr_t)found;
    text_t body = {0};
    code_t code = {.module = module, .function = function, .out = &body, .inst_text = inst_text};
    keel_status_t status = flow_find(module, function);
    if (!status) {
        places_find(&code);
        uses_find(function);
        shape_write(&code);
        status = code.status;
    }
    if (status) {
        char text[512];
        keel_status_format(status, text, sizeof text);
        keel_status_release(status);
        const char *colon = strstr(text, ": ");
        status =
            KEEL_ERROR(KEEL_UNSUPPORTED, "kernel '%s': %s", info->name, colon ? colon + 2 : text);
    }
    text_add(out,
             "\n[[max_total_threads_per_threadgroup(%u)]] kernel void keel_%s(constant uchar *v%s "
             "[[buffer(0)]]%s, uint3 item [[thread_position_in_threadgroup]], uint3 group "
             "[[threadgroup_position_in_grid]], uint3 groups [[threadgroups_per_grid]], uint lane "
             "[[thread_index_in_simdgroup]], uint "
             "lanes [[threads_per_simdgroup]]) {\n",
             info->group_size[0] * info->group_size[1] * info->group_size[2], info->name,
             function->params[0]->name,
             variables ? ", device uchar *keel_variables [[buffer(1)]]" : "");
    memory_write(out, module);
    if (code.leaves) text_add(out, "uint leave = 0;\n");
    text_append(out, &code.variables);
    text_append(out, &body);
    text_add(out, "}\n");
    text_finish(&code.variables);
    text_finish(&body);
    return status;
}

// A table that does not change, as the compiler makes them; of bytes, with the alignment of 8.
static keel_status_t table_write(const ir_variable_t *v, text_t *out)
{
    uint64_t size = ir_size(v->type), words = (size + 7) / 8;
    unsigned char *bytes = calloc(words + 1, 8);
    if (!bytes) return KEEL_ERROR(KEEL_RESOURCE_EXHAUSTED, "memory is short");
    keel_status_t status = ir_bytes(v->value, bytes);
    text_add(out, "constant ulong keel_table_%s[] = {", v->name);
    for (uint64_t i = 0; i < words || !i; i++) {
        unsigned long long word = 0;
        for (int k = 7; k >= 0; k--) word = word << 8 | bytes[i * 8 + (unsigned)k];
        text_add(out, "%s%lluul", i ? ", " : "", word);
    }
    text_add(out, "};\n");
    free(bytes);
    return status;
}

static bool is_variable(const ir_variable_t *v)
{
    return v->space != 3 && !v->constant && v->defined && strncmp(v->name, "llvm.", 5) != 0;
}

// Names of tables as MSL has them: without points.
static void tables_name(const ir_module_t *module)
{
    for (uint32_t i = 0; i < module->variable_count; i++)
        for (char *c = (char *)(uintptr_t)module->variables[i]->name;
             module->variables[i]->constant && *c; c++)
            if (*c == '.' || *c == '$') *c = '_';
}

static uint64_t variables_place(const ir_module_t *module)
{
    uint64_t end = 0;
    for (uint32_t i = 0; i < module->variable_count; i++) {
        ir_variable_t *v = module->variables[i];
        if (!is_variable(v)) continue;
        v->offset = end = (end + 15) / 16 * 16;
        end += ir_size(v->type);
    }
    return end;
}

static keel_status_t variables_write(const ir_module_t *module, uint64_t size, text_t *out)
{
    unsigned char *bytes = calloc(size + 1, 1);
    if (!bytes) return KEEL_ERROR(KEEL_RESOURCE_EXHAUSTED, "memory is short");
    keel_status_t status = NULL;
    for (uint32_t i = 0; i < module->variable_count && !status; i++) {
        const ir_variable_t *v = module->variables[i];
        if (!is_variable(v)) continue;
        text_add(out, "// keel variable: %s %llu %llu %d\n", v->name, (unsigned long long)v->offset,
                 (unsigned long long)ir_size(v->type), v->space == 4);
        status = ir_bytes(v->value, bytes + v->offset);
    }
    text_add(out, "// keel values: ");
    for (uint64_t i = 0; i < size; i++) text_add(out, "%02x", bytes[i]);
    text_add(out, "\n");
    free(bytes);
    return status;
}

static keel_status_t records_find(const ir_module_t *module, made_t *made)
{
    for (uint32_t i = 0; i < module->variable_count; i++) {
        const ir_variable_t *v = module->variables[i];
        if (strcmp(v->section, records) != 0) continue;
        uint64_t size = ir_size(v->type);
        unsigned char *bytes = calloc(size + 1, 1);
        if (!bytes) return KEEL_ERROR(KEEL_RESOURCE_EXHAUSTED, "memory is short");
        keel_status_t status = ir_bytes(v->value, bytes);
        if (!status) status = made_record(made, bytes, size);
        free(bytes);
        KEEL_TRY(status);
    }
    return NULL;
}

static keel_status_t module_write(ir_module_t *module, const made_t *made, text_t *out)
{
    text_t kernels = {0}, code = {0};
    uint64_t size = variables_place(module);
    keel_status_t status = NULL;
    tables_name(module);
    for (uint32_t i = 0; i < made->entry_count && !status; i++)
        status = kernel_write(module, &made->entries[i], size > 0, &kernels);
    text_add(out, "// keel cc: kernels are called keel_NAME\n// keel grid: the launch's\n");
    if (size && !status) status = variables_write(module, size, out);
    prelude_write(&code, text_of(&kernels));
    for (uint32_t i = 0; i < module->variable_count && !status; i++)
        if (module->variables[i]->constant && module->variables[i]->used)
            status = table_write(module->variables[i], &code);
    text_append(&code, &kernels);
    format_write(out, text_of(&code));
    text_finish(&kernels);
    text_finish(&code);
    return status;
}

keel_status_t msl_make(made_t *made)
{
    ir_module_t module;
    text_t out = {0};
    keel_status_t status = ir_read(made->bytes, &module);
    if (!status) status = records_find(&module, made);
    if (!status) status = made_has_kernels(made);
    if (!status) status = module_write(&module, made, &out);
    ir_finish(&module);
    if (!status) {
        free(made->bytes);
        made->bytes = out.bytes;
        made->size = out.length;
        return NULL;
    }
    text_finish(&out);
    return status;
}
