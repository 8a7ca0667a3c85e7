// SPDX-License-Identifier: Apache-2.0
#include "cuda/limits.h"
#include "cuda/ptx.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAMES_MAX = 256, KERNELS_MAX = 64, STEPS_MAX = 1 << 16, PARTS_MAX = 8 };

typedef struct token_t {
    const char *text; // in the source
    size_t length;    // 0: there is no more
} token_t;

// A register, or with a count several that are numbered; memory; a place in the code.
typedef struct name_t {
    token_t token;
    uint32_t first, count;
    ptx_base_t base;
} name_t;

typedef struct names_t {
    name_t items[NAMES_MAX];
    uint32_t count;
} names_t;

typedef struct reader_t {
    const char *at;
    token_t token;
    unsigned line;
    char *why;
    size_t size;
    bool failed;

    // Of the kernel that is read.
    names_t registers, memory, labels;
    uint32_t register_count, frame;
    ptx_step_t *steps;
    token_t *branches; // by step: the label it goes to
    uint32_t count, room;
} reader_t;

// After the first failure there are no tokens any more.
__attribute__((format(printf, 2, 3))) static void refuse(reader_t *r, const char *format, ...)
{
    va_list arguments;
    if (r->failed) return;
    int length = snprintf(r->why, r->size, "line %u: ", r->line);
    va_start(arguments, format);
    if ((size_t)length < r->size)
        vsnprintf(r->why + length, r->size - (size_t)length, format, arguments);
    va_end(arguments);
    r->failed = true;
    r->at = "";
    r->token = (token_t){"", 0};
}

static void blanks_skip(reader_t *r)
{
    for (;;) {
        if (r->at[0] == '/' && r->at[1] == '/') {
            while (*r->at && *r->at != '\n') r->at++;
        } else if (!isspace((unsigned char)*r->at)) {
            return;
        }
        if (*r->at == '\n') r->line++;
        if (*r->at) r->at++;
    }
}

static bool in_word(char c)
{
    return isalnum((unsigned char)c) || (c && strchr("_$%.", c));
}

static void next(reader_t *r)
{
    blanks_skip(r);
    const char *begin = r->at;
    if (*r->at == '-' && isdigit((unsigned char)r->at[1])) r->at++;
    while (in_word(*r->at)) r->at++;
    if (r->at == begin && *r->at) r->at++;
    r->token = (token_t){begin, (size_t)(r->at - begin)};
}

static bool is(token_t token, const char *text)
{
    return strlen(text) == token.length && memcmp(token.text, text, token.length) == 0;
}

static bool same(token_t a, token_t b)
{
    return a.length == b.length && memcmp(a.text, b.text, a.length) == 0;
}

static bool accept(reader_t *r, const char *text)
{
    if (!is(r->token, text)) return false;
    next(r);
    return true;
}

static void expect(reader_t *r, const char *text)
{
    if (!accept(r, text))
        refuse(r, "'%s' was expected before '%.*s'", text, (int)r->token.length, r->token.text);
}

static void unknown(reader_t *r, token_t token)
{
    refuse(r, "this device does not know '%.*s'", (int)token.length, token.text);
}

static token_t take(reader_t *r)
{
    token_t token = r->token;
    if (!token.length) refuse(r, "the text ends too early");
    next(r);
    return token;
}

static bool number_parse(token_t token, int64_t *out)
{
    char *end;
    size_t skip = token.length && token.text[0] == '-';
    if (token.length <= skip || !isdigit((unsigned char)token.text[skip])) return false;
    *out = skip ? strtoll(token.text, &end, 0) : (int64_t)strtoull(token.text, &end, 0);
    return end == token.text + token.length;
}

static uint32_t number(reader_t *r)
{
    int64_t value = 0;
    token_t token = take(r);
    if (!number_parse(token, &value) || value < 0 || value > UINT16_MAX) unknown(r, token);
    return (uint32_t)value;
}

static name_t *name_add(reader_t *r, names_t *names, token_t token, uint32_t first)
{
    if (names->count == NAMES_MAX) {
        refuse(r, "a kernel has too many names");
        return NULL;
    }
    name_t *name = &names->items[names->count++];
    *name = (name_t){.token = token, .first = first, .count = 1};
    return name;
}

// The one that was declared last.
static const name_t *name_find(const names_t *names, token_t token)
{
    for (uint32_t i = names->count; i-- > 0;)
        if (same(names->items[i].token, token)) return &names->items[i];
    return NULL;
}

// "%rd<18>" declares %rd0 to %rd17.
static bool register_find(const reader_t *r, token_t token, uint32_t *index)
{
    const name_t *name = name_find(&r->registers, token);
    int64_t place = 0;
    if (!name) {
        token_t stem = token;
        while (stem.length && isdigit((unsigned char)stem.text[stem.length - 1])) stem.length--;
        token_t digits = {token.text + stem.length, token.length - stem.length};
        name = name_find(&r->registers, stem);
        if (!name || !number_parse(digits, &place) || place >= name->count) return false;
    }
    *index = name->first + (uint32_t)place;
    return true;
}

static bool type_parse(token_t token, ptx_type_t *type)
{
    if (is(token, "pred")) {
        *type = (ptx_type_t){1, false};
        return true;
    }
    static const char *const widths[] = {"8", "16", "32", "64"};
    for (unsigned i = 0; i < 4; i++) {
        token_t rest = {token.text + 1, token.length - 1};
        if (!token.length || !strchr("usb", token.text[0]) || !is(rest, widths[i])) continue;
        *type = (ptx_type_t){(uint8_t)(8u << i), token.text[0] == 's'};
        return true;
    }
    return false;
}

// ".b64" of a declaration.
static ptx_type_t type_take(reader_t *r)
{
    ptx_type_t type = {64, false};
    token_t token = take(r);
    if (!token.length || !type_parse((token_t){token.text + 1, token.length - 1}, &type))
        unknown(r, token);
    return type;
}

static void registers_declare(reader_t *r)
{
    type_take(r);
    do {
        name_t *name = name_add(r, &r->registers, take(r), r->register_count);
        if (name && accept(r, "<")) {
            name->count = number(r);
            expect(r, ">");
        }
        if (name) r->register_count += name->count;
        if (r->register_count > PTX_REGISTERS) refuse(r, "a kernel has too many registers");
    } while (accept(r, ","));
    expect(r, ";");
}

typedef struct declared_t {
    token_t name;
    uint32_t size, align;
} declared_t;

// "[.align 8] .b8 name[32]"
static declared_t memory_declare(reader_t *r)
{
    declared_t d = {0};
    if (accept(r, ".align")) d.align = number(r);
    d.size = type_take(r).bits / 8u;
    if (!d.align) d.align = d.size;
    d.name = take(r);
    if (accept(r, "[")) {
        d.size *= number(r);
        expect(r, "]");
    }
    if (!d.align || d.align > 16 || d.size > LIMIT_PARAMS) refuse(r, "a variable is too large");
    return d;
}

static void frame_declare(reader_t *r)
{
    declared_t d = memory_declare(r);
    name_t *name = name_add(r, &r->memory, d.name, r->frame);
    if (name) name->base = PTX_LOCAL;
    r->frame += (d.size + 15) / 16 * 16;
    if (r->frame > PTX_FRAME) refuse(r, "a kernel has too many variables");
    expect(r, ";");
}

static bool special_find(token_t token, uint32_t *index)
{
    static const struct {
        const char *text;
        ptx_special_t special;
    } specials[] = {
        {"%tid.", PTX_TID}, {"%ntid.", PTX_NTID}, {"%ctaid.", PTX_CTAID}, {"%nctaid.", PTX_NCTAID}};
    *index = PTX_TIMER;
    if (is(token, "%globaltimer")) return true;
    for (size_t i = 0; i < sizeof specials / sizeof *specials; i++) {
        size_t length = strlen(specials[i].text);
        if (token.length != length + 1 || memcmp(token.text, specials[i].text, length)) continue;
        *index = (uint32_t)specials[i].special + (uint32_t)(token.text[length] - 'x');
        return token.text[length] >= 'x' && token.text[length] <= 'z';
    }
    return false;
}

static ptx_operand_t operand_read(reader_t *r)
{
    ptx_operand_t operand = {0};
    token_t token = take(r);
    const name_t *name;
    if (register_find(r, token, &operand.index)) {
        operand.base = PTX_REGISTER;
    } else if (number_parse(token, &operand.offset)) {
        operand.base = PTX_NUMBER;
    } else if (special_find(token, &operand.index)) {
        operand.base = PTX_SPECIAL;
    } else if ((name = name_find(&r->memory, token))) {
        operand.base = name->base;
        operand.offset = name->first;
    } else {
        unknown(r, token);
    }
    return operand;
}

static ptx_operand_t address_read(reader_t *r)
{
    int64_t more = 0;
    expect(r, "[");
    ptx_operand_t operand = operand_read(r);
    if (accept(r, "+")) {
        token_t token = take(r);
        if (!number_parse(token, &more)) unknown(r, token);
        operand.offset += more;
    }
    expect(r, "]");
    return operand;
}

static ptx_operand_t register_read(reader_t *r)
{
    token_t token = r->token;
    ptx_operand_t operand = operand_read(r);
    if (operand.base != PTX_REGISTER)
        refuse(r, "'%.*s' is no register", (int)token.length, token.text);
    return operand;
}

// One operand, or as many as the vector has elements.
static void elements_read(reader_t *r, const ptx_step_t *step, ptx_operand_t *out)
{
    if (step->vector > 1) expect(r, "{");
    for (int i = 0; i < step->vector; i++) {
        if (i) expect(r, ",");
        out[i] = step->op == PTX_LOAD ? register_read(r) : operand_read(r);
    }
    if (step->vector > 1) expect(r, "}");
}

static const struct operation_t {
    const char *text; // with what must follow the name
    ptx_op_t op;
    int operands; // with the result
} operations[] = {
    {"mov", PTX_MOV, 2},          {"cvta", PTX_MOV, 2},
    {"cvt", PTX_CONVERT, 2},      {"ld", PTX_LOAD, 0},
    {"st", PTX_STORE, 0},         {"add", PTX_ADD, 3},
    {"sub", PTX_SUB, 3},          {"mul.lo", PTX_MUL, 3},
    {"mul.hi", PTX_MUL_HIGH, 3},  {"mul.wide", PTX_MUL_WIDE, 3},
    {"mad.lo", PTX_MAD, 4},       {"mad.wide", PTX_MAD_WIDE, 4},
    {"div", PTX_DIV, 3},          {"rem", PTX_REM, 3},
    {"min", PTX_MIN, 3},          {"max", PTX_MAX, 3},
    {"and", PTX_AND, 3},          {"or", PTX_OR, 3},
    {"xor", PTX_XOR, 3},          {"not", PTX_NOT, 2},
    {"neg", PTX_NEG, 2},          {"shl", PTX_SHL, 3},
    {"shr", PTX_SHR, 3},          {"setp", PTX_COMPARE, 3},
    {"selp", PTX_SELECT, 4},      {"membar.gl", PTX_FENCE, 0},
    {"membar.sys", PTX_FENCE, 0}, {"bra", PTX_BRANCH, 0},
    {"call", PTX_CALL, 0},        {"ret", PTX_RETURN, 0},
    {"exit", PTX_RETURN, 0},      {"trap", PTX_TRAP, 0},
    {"atom.cas", PTX_SWAP, 4},    {"atom.global.cas", PTX_SWAP, 4},
};

// The longest that the word begins with; what follows goes to `rest`.
static const struct operation_t *operation_find(token_t word, token_t *rest)
{
    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++) {
        size_t length = strlen(operations[i].text);
        if (word.length < length || memcmp(word.text, operations[i].text, length)) continue;
        if (word.length > length && word.text[length] != '.') continue;
        *rest = (token_t){word.text + length, word.length - length};
        return &operations[i];
    }
    return NULL;
}

static bool compare_parse(token_t part, uint8_t *detail)
{
    static const char *const names[] = {"eq", "ne", "lt", "le", "gt", "ge"};
    for (uint8_t i = 0; i < 6; i++) {
        if (!is(part, names[i])) continue;
        *detail = i;
        return true;
    }
    return false;
}

// What means nothing here: memory is all of one kind, threads do not run in step.
static bool part_is_void(const ptx_step_t *step, token_t part)
{
    static const char *const spaces[] = {"global", "param", "local", "to"};
    bool memory = step->op == PTX_LOAD || step->op == PTX_STORE || step->op == PTX_MOV;
    for (size_t i = 0; i < sizeof spaces / sizeof *spaces; i++)
        if (memory && is(part, spaces[i])) return true;
    return (step->op == PTX_BRANCH || step->op == PTX_CALL) && is(part, "uni");
}

// The types and the rest of an operation's name.
static void parts_read(reader_t *r, ptx_step_t *step, token_t word, token_t rest)
{
    unsigned types = 0;
    while (rest.length) {
        token_t part = {rest.text + 1, 0};
        while (part.length < rest.length - 1 && part.text[part.length] != '.') part.length++;
        rest = (token_t){part.text + part.length, rest.length - 1 - part.length};
        if (type_parse(part, types ? &step->from : &step->type)) {
            types++;
        } else if (step->op == PTX_COMPARE && compare_parse(part, &step->detail)) {
        } else if (is(part, "v2") || is(part, "v4")) {
            step->vector = (uint8_t)(part.text[1] - '0');
        } else if (!part_is_void(step, part)) {
            unknown(r, word);
        }
    }
    bool memory = step->op == PTX_LOAD || step->op == PTX_STORE;
    if (types != (step->op == PTX_CONVERT ? 2 : step->op < PTX_FENCE) ||
        (step->vector > 1 && !memory) || (memory && step->type.bits < 8))
        unknown(r, word);
}

// "call (result), function, (arguments)"
static void call_read(reader_t *r, ptx_step_t *step)
{
    static const struct {
        const char *name;
        int arguments;
        bool returns;
    } functions[PTX_FUNCTIONS] = {
        [PTX_SET_CONDITIONAL] = {"cudaGraphSetConditional", 2, false},
        [PTX_SET_GRID] = {"cudaGraphKernelNodeSetGridDim", 2, true},
        [PTX_SET_ENABLED] = {"cudaGraphKernelNodeSetEnabled", 2, true},
        [PTX_SET_PARAM] = {"cudaGraphKernelNodeSetParam", 4, true},
    };
    bool returns = accept(r, "(");
    if (returns) {
        step->operands[0] = operand_read(r);
        expect(r, ")");
        expect(r, ",");
    }
    token_t name = take(r);
    step->detail = 0;
    while (step->detail < PTX_FUNCTIONS && !is(name, functions[step->detail].name)) step->detail++;
    if (step->detail == PTX_FUNCTIONS || functions[step->detail].returns != returns) {
        unknown(r, name);
        return;
    }
    expect(r, ",");
    for (int i = 0; i < functions[step->detail].arguments; i++) {
        expect(r, i ? "," : "(");
        step->operands[1 + i] = operand_read(r);
        if (step->operands[1 + i].base != PTX_LOCAL) unknown(r, name);
    }
    expect(r, ")");
}

static ptx_step_t *step_add(reader_t *r)
{
    if (r->count == r->room) {
        uint32_t room = r->room ? 2 * r->room : 64;
        ptx_step_t *steps = realloc(r->steps, room * sizeof *steps);
        if (steps) r->steps = steps;
        token_t *branches = realloc(r->branches, room * sizeof *branches);
        if (branches) r->branches = branches;
        if (!steps || !branches || room > STEPS_MAX) {
            refuse(r, "a kernel is too long");
            return NULL;
        }
        r->room = room;
    }
    r->branches[r->count] = (token_t){0};
    r->steps[r->count] = (ptx_step_t){.vector = 1};
    return &r->steps[r->count++];
}

static void step_read(reader_t *r)
{
    ptx_step_t step = {.vector = 1};
    if (accept(r, "@")) {
        step.guarded = true;
        step.wanted = !accept(r, "!");
        step.guard = register_read(r).index;
    }
    token_t word = take(r), rest = {0}, label = {0};
    const struct operation_t *operation = operation_find(word, &rest);
    if (!operation) {
        unknown(r, word);
        return;
    }
    step.op = (uint8_t)operation->op;
    parts_read(r, &step, word, rest);
    if (step.op == PTX_LOAD) {
        elements_read(r, &step, step.operands);
        expect(r, ",");
        step.operands[step.vector] = address_read(r);
    } else if (step.op == PTX_STORE) {
        step.operands[0] = address_read(r);
        expect(r, ",");
        elements_read(r, &step, step.operands + 1);
    } else if (step.op == PTX_CALL) {
        call_read(r, &step);
    } else if (step.op == PTX_BRANCH) {
        label = take(r);
    }
    for (int i = 0; i < operation->operands; i++) {
        if (i) expect(r, ",");
        step.operands[i] = !i                              ? register_read(r)
                           : step.op == PTX_SWAP && i == 1 ? address_read(r)
                                                           : operand_read(r);
    }
    expect(r, ";");
    ptx_step_t *added = step_add(r);
    if (!added) return;
    *added = step;
    r->branches[r->count - 1] = label;
}

static bool label_read(reader_t *r)
{
    const char *at = r->at;
    while (isspace((unsigned char)*at)) at++;
    if (*at != ':' || !in_word(r->token.text[0])) return false;
    name_add(r, &r->labels, take(r), r->count);
    expect(r, ":");
    return true;
}

// Statements up to the } that ends them; what they declare ends with them.
static void block_read(reader_t *r, int depth)
{
    uint32_t memory = r->memory.count;
    while (!r->failed && !accept(r, "}")) {
        if (depth < 4 && accept(r, "{"))
            block_read(r, depth + 1);
        else if (accept(r, ".reg"))
            registers_declare(r);
        else if (accept(r, ".local") || accept(r, ".param"))
            frame_declare(r);
        else if (!label_read(r))
            step_read(r);
    }
    r->memory.count = memory;
}

static void branches_resolve(reader_t *r)
{
    for (uint32_t i = 0; i < r->count; i++) {
        if (r->steps[i].op != PTX_BRANCH) continue;
        const name_t *label = name_find(&r->labels, r->branches[i]);
        if (!label) unknown(r, r->branches[i]);
        r->steps[i].target = label ? label->first : 0;
    }
}

static void params_read(reader_t *r, cuda_host_entry_t *entry, cuda_host_param_t *params)
{
    expect(r, "(");
    while (!r->failed && !accept(r, ")")) {
        if (entry->param_count) expect(r, ",");
        expect(r, ".param");
        declared_t d = memory_declare(r);
        if (r->failed || entry->param_count == NAMES_MAX) {
            refuse(r, "a kernel has too many parameters");
            return;
        }
        uint32_t offset = (entry->param_size + d.align - 1) / d.align * d.align;
        name_t *name = name_add(r, &r->memory, d.name, offset);
        if (name) name->base = PTX_PARAMETER;
        params[entry->param_count++] = (cuda_host_param_t){offset, d.size};
        entry->param_size = offset + d.size;
    }
}

static void sizes_read(reader_t *r, cuda_host_entry_t *entry)
{
    while (!r->failed && !accept(r, "{")) {
        bool fixed = accept(r, ".reqntid");
        uint32_t sizes[3] = {1, 1, 1}, count = 0;
        if (!fixed) expect(r, ".maxntid");
        do sizes[count++] = number(r);
        while (count < 3 && accept(r, ","));
        if (fixed) memcpy(entry->threads, sizes, sizeof sizes);
        entry->max_threads = sizes[0] * sizes[1] * sizes[2];
    }
}

// The rest of ".entry name(...) {...}". The strings and arrays are the module's.
static void kernel_read(reader_t *r, cuda_host_entry_t *entry, ptx_kernel_t *kernel)
{
    r->registers.count = r->memory.count = r->labels.count = 0;
    r->register_count = r->frame = r->count = r->room = 0;
    r->steps = NULL;
    r->branches = NULL;
    token_t name = take(r);
    cuda_host_param_t *params = calloc(NAMES_MAX, sizeof *params);
    entry->name = strndup(name.text, name.length);
    entry->params = params;
    entry->registers = 16;
    if (!params || !entry->name) refuse(r, "memory is short");
    if (params) params_read(r, entry, params);
    sizes_read(r, entry);
    block_read(r, 0);
    branches_resolve(r);
    ptx_step_t *last = step_add(r);
    if (last) last->op = PTX_RETURN;
    kernel->steps = r->steps;
    kernel->count = r->count;
    free(r->branches);
}

static void module_read(reader_t *r, ptx_module_t *module, cuda_host_entry_t *entries)
{
    next(r);
    expect(r, ".version");
    take(r);
    expect(r, ".target");
    do take(r);
    while (accept(r, ","));
    expect(r, ".address_size");
    if (number(r) != 64) refuse(r, "addresses have 64 bits here");
    while (r->token.length) {
        if (accept(r, ".extern")) {
            if (!accept(r, ".func")) unknown(r, r->token);
            while (r->token.length && !is(r->token, ";")) next(r);
            expect(r, ";");
            continue;
        }
        accept(r, ".visible");
        if (!is(r->token, ".entry")) unknown(r, r->token);
        if (module->image.entry_count == KERNELS_MAX) refuse(r, "there are too many kernels");
        if (!accept(r, ".entry")) return;
        uint32_t index = module->image.entry_count++;
        kernel_read(r, &entries[index], &module->kernels[index]);
    }
}

bool ptx_is(const char *text)
{
    while (isspace((unsigned char)*text)) text++;
    return strncmp(text, "//", 2) == 0 || strncmp(text, ".version", 8) == 0;
}

ptx_module_t *ptx_load(const char *text, char *why, size_t size)
{
    ptx_module_t *module = calloc(1, sizeof *module);
    reader_t *r = calloc(1, sizeof *r);
    cuda_host_entry_t *entries = calloc(KERNELS_MAX, sizeof *entries);
    snprintf(why, size, "memory is short");
    bool good = module && r && entries;
    if (good) {
        module->image = (cuda_host_image_t){.abi = CUDA_HOST_ABI, .entries = entries};
        module->kernels = calloc(KERNELS_MAX, sizeof *module->kernels);
        *r = (reader_t){.at = text, .line = 1, .why = why, .size = size};
        if (module->kernels) module_read(r, module, entries);
        good = module->kernels && !r->failed;
    } else {
        free(entries);
    }
    free(r);
    if (good) return module;
    ptx_unload(module);
    return NULL;
}

void ptx_unload(ptx_module_t *module)
{
    if (!module) return;
    for (uint32_t i = 0; i < module->image.entry_count; i++) {
        free((char *)(uintptr_t)module->image.entries[i].name);
        free((cuda_host_param_t *)(uintptr_t)module->image.entries[i].params);
        if (module->kernels) free(module->kernels[i].steps);
    }
    free((cuda_host_entry_t *)(uintptr_t)module->image.entries);
    free(module->kernels);
    free(module);
}
