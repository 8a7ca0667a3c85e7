// SPDX-License-Identifier: Apache-2.0
// A module: types, variables, functions.
#include <string.h>

#include "tools/cc/msl/reader.h"

// %struct.x = type { ... }
static void read_definition(ir_reader_t *r)
{
    ir_type_t *type = type_named(r, ir_reader_name(r));
    ir_reader_expect(r, "=");
    ir_reader_expect(r, "type");
    if (ir_reader_is(r, "opaque")) {
        ir_reader_skip_line(r);
        return;
    }
    const char *name = type->name;
    *type = *read_type(r);
    type->name = name;
    ir_reader_skip_line(r);
}

// @x = internal addrspace(3) global TYPE VALUE, section "...", align 4
static void read_variable(ir_reader_t *r)
{
    ir_variable_t *v = variable_named(r, ir_reader_name(r));
    ir_reader_expect(r, "=");
    bool declared = false;
    while (r->token.kind == TOKEN_WORD && !ir_reader_is(r, "global") &&
           !ir_reader_is(r, "constant")) {
        declared |= ir_reader_is(r, "external");
        bool space = ir_reader_take(r, "addrspace");
        if (!space) ir_reader_next(r);
        if (!ir_reader_take(r, "(")) continue;
        if (space) v->space = (uint32_t)ir_reader_number(r);
        if (!space) ir_reader_next(r);
        ir_reader_expect(r, ")");
    }
    v->constant = ir_reader_is(r, "constant");
    ir_reader_next(r);
    v->type = read_type(r);
    v->defined = !declared;
    if (v->defined) v->value = read_value(r, v->type);
    while (ir_reader_take(r, ",")) {
        if (ir_reader_take(r, "section"))
            v->section = ir_reader_name(r);
        else if (ir_reader_take(r, "align"))
            v->align = (uint32_t)ir_reader_number(r);
        else
            break;
    }
    ir_reader_skip_line(r);
}

static void read_params(ir_reader_t *r, ir_function_t *f)
{
    uint32_t unnamed = 0;
    ir_reader_expect(r, "(");
    while (!ir_reader_is(r, ")") && !r->status) {
        const ir_type_t *type = read_type(r);
        while (r->token.kind == TOKEN_WORD) { // attributes
            bool align = ir_reader_is(r, "align");
            ir_reader_next(r);
            if (ir_reader_is(r, "("))
                ir_reader_skip_group(r);
            else if (align)
                ir_reader_next(r);
        }
        const char *name = r->token.kind == TOKEN_LOCAL
                               ? ir_reader_name(r)
                               : arena_print(&r->module->arena, "%u", unnamed);
        unnamed++;
        ir_value_t *param = local_named(r, name);
        param->type = type;
        f->params = arena_grow(&r->module->arena, f->params, f->param_count);
        f->params[f->param_count++] = param;
        if (!ir_reader_take(r, ",")) break;
    }
    ir_reader_expect(r, ")");
}

void read_function(ir_reader_t *r)
{
    ir_module_t *m = r->module;
    ir_function_t *f = arena_new(&m->arena, sizeof *f);
    m->functions = arena_grow(&m->arena, m->functions, m->function_count);
    m->functions[m->function_count++] = f;
    while (r->token.kind != TOKEN_GLOBAL && r->token.kind != TOKEN_END) ir_reader_next(r);
    f->name = ir_reader_name(r);
    r->function = f;
    read_params(r, f);
    while (!ir_reader_is(r, "{") && r->token.kind != TOKEN_END) ir_reader_next(r);
    ir_reader_skip_line(r);
    ir_block_t *block = NULL;
    while (!ir_reader_is(r, "}") && !r->status && r->token.kind != TOKEN_END) {
        if (r->token.kind == TOKEN_LINE) {
            ir_reader_next(r);
        } else if (ir_reader_is(r, "#")) { // what debuggers want to know
            ir_reader_skip_line(r);
        } else if (r->token.kind == TOKEN_LABEL) {
            block = block_named(r, ir_reader_name(r));
            block->defined = true;
        } else {
            if (!block) block = block_named(r, arena_print(&m->arena, "%u", f->param_count));
            block->defined = true;
            read_instruction(r, block);
        }
    }
    r->function = NULL;
    ir_reader_skip_line(r);
}

keel_status_t ir_read(const char *text, ir_module_t *module)
{
    *module = (ir_module_t){0};
    ir_reader_t r = {.module = module, .at = text};
    ir_reader_next(&r);
    while (r.token.kind != TOKEN_END && !r.status) {
        if (r.token.kind == TOKEN_LOCAL)
            read_definition(&r);
        else if (r.token.kind == TOKEN_GLOBAL)
            read_variable(&r);
        else if (ir_reader_is(&r, "define"))
            read_function(&r);
        else
            ir_reader_skip_line(&r);
    }
    return r.status;
}

void ir_finish(ir_module_t *module)
{
    arena_finish(&module->arena);
}
