// SPDX-License-Identifier: Apache-2.0
#include "executable/spirv_module.h"

#include <stdlib.h>
#include <string.h>

#include "executable/build.h"
#include "executable/bytes.h"

enum {
    MEMORY_MODEL = 14,
    PHYSICAL_32 = 1,
    DECORATION_BLOCK = 2,
    DECORATION_BUFFER_BLOCK = 3,
    DECORATION_STRIDE = 6,
    DECORATION_MATRIX_STRIDE = 7,
    DECORATION_BUILT_IN = 11,
    DECORATION_READ_ONLY = 24,
    DECORATION_WRITE_ONLY = 25,
    DECORATION_BINDING = 33,
    DECORATION_SET = 34,
    DECORATION_OFFSET = 35,
};

uint32_t spirv_word(const spirv_module_t *module, uint32_t index)
{
    uint32_t word = bytes_u32(module->bytes + (uint64_t)index * 4);
    return module->swapped ? __builtin_bswap32(word) : word;
}

spirv_instruction_t spirv_at(const spirv_module_t *module, uint32_t word)
{
    uint32_t first = spirv_word(module, word);
    return (spirv_instruction_t){word, first & 0xffff, first >> 16};
}

uint32_t spirv_operand(const spirv_module_t *module, spirv_instruction_t instruction,
                       uint32_t index)
{
    return index < instruction.length ? spirv_word(module, instruction.at + index) : 0;
}

keel_status_t spirv_text(image_info_t *info, const spirv_module_t *module,
                         spirv_instruction_t instruction, uint32_t index, const char **text)
{
    uint32_t first = index < instruction.length ? index : instruction.length;
    uint64_t length = (uint64_t)(instruction.length - first) * 4;
    void *copy;
    *text = "";
    KEEL_TRY(image_alloc(info, length + 1, &copy));
    for (uint64_t i = 0; i < length; i++) {
        uint32_t word = spirv_word(module, instruction.at + first + (uint32_t)(i / 4));
        ((char *)copy)[i] = (char)(word >> (i % 4 * 8));
        if (!((char *)copy)[i]) break;
    }
    *text = copy;
    return NULL;
}

// Which operand is the id that an instruction defines; 0 if it defines none of interest.
static uint32_t result_operand(uint32_t opcode)
{
    if ((opcode >= 19 && opcode <= 33) || opcode == SPIRV_TYPE_ACCELERATION_STRUCTURE) return 1;
    if ((opcode >= 41 && opcode <= 46) || (opcode >= 48 && opcode <= 52)) return 2;
    return opcode == SPIRV_FUNCTION || opcode == SPIRV_VARIABLE ? 2 : 0;
}

static int def_compare(const void *a, const void *b)
{
    const spirv_def_t *x = a, *y = b;
    return (x->id > y->id) - (x->id < y->id);
}

static int member_compare(const void *a, const void *b)
{
    const spirv_member_t *x = a, *y = b;
    if (x->type != y->type) return x->type > y->type ? 1 : -1;
    if (x->member != y->member) return x->member > y->member ? 1 : -1;
    return (x->decoration > y->decoration) - (x->decoration < y->decoration);
}

spirv_def_t *spirv_find(const spirv_module_t *module, uint32_t id)
{
    spirv_def_t key = {.id = id};
    if (!module->def_count) return NULL;
    return bsearch(&key, module->defs, module->def_count, sizeof key, def_compare);
}

bool spirv_constant(const spirv_module_t *module, uint32_t id, uint32_t *value)
{
    const spirv_def_t *def = spirv_find(module, id);
    if (!def) return false;
    spirv_instruction_t i = spirv_at(module, def->at);
    if ((i.opcode != SPIRV_CONSTANT && i.opcode != SPIRV_SPEC_CONSTANT) || i.length < 4)
        return false;
    *value = spirv_operand(module, i, 3);
    return true;
}

// Whether the instruction is of interest: outside of functions, or the start of one.
static bool is_global(const spirv_instruction_t *i, bool *inside)
{
    bool global = !*inside;
    if (i->opcode == SPIRV_FUNCTION) *inside = true;
    if (i->opcode == SPIRV_FUNCTION_END) *inside = false;
    return global;
}

// Checks that instructions follow one another up to the end, and counts what there is to keep.
static keel_status_t stream_check(spirv_module_t *m)
{
    bool inside = false;
    m->functions = m->words;
    for (uint32_t at = SPIRV_HEADER_WORDS; at < m->words;) {
        spirv_instruction_t i = spirv_at(m, at);
        if (!i.length || i.length > m->words - at)
            return KEEL_ERROR(KEEL_CORRUPT, "the instruction at word %u has %u words", at,
                              i.length);
        if (i.opcode == SPIRV_FUNCTION && m->functions == m->words) m->functions = at;
        if (is_global(&i, &inside)) {
            uint32_t result = result_operand(i.opcode);
            if (result && i.length <= result)
                return KEEL_ERROR(KEEL_CORRUPT, "the instruction at word %u is too short", at);
            if (result) m->def_count++;
            if (i.opcode == SPIRV_MEMBER_DECORATE) m->member_count++;
            if (i.opcode == MEMORY_MODEL && spirv_operand(m, i, 1) == PHYSICAL_32)
                m->pointer_size = 4;
        }
        at += i.length;
    }
    return NULL;
}

static keel_status_t defs_collect(image_info_t *info, spirv_module_t *m)
{
    void *defs, *members;
    KEEL_TRY(image_alloc(info, (uint64_t)m->def_count * sizeof *m->defs, &defs));
    KEEL_TRY(image_alloc(info, (uint64_t)m->member_count * sizeof *m->members, &members));
    m->defs = defs;
    m->members = members;
    uint32_t count = 0, member_count = 0;
    bool inside = false;
    for (uint32_t at = SPIRV_HEADER_WORDS; at < m->words; at += spirv_at(m, at).length) {
        spirv_instruction_t i = spirv_at(m, at);
        if (!is_global(&i, &inside)) continue;
        uint32_t result = result_operand(i.opcode);
        if (result)
            m->defs[count++] = (spirv_def_t){
                .id = spirv_operand(m, i, result),
                .at = at,
                .set = UINT32_MAX,
                .binding = UINT32_MAX,
                .built_in = UINT32_MAX,
            };
        if (i.opcode == SPIRV_MEMBER_DECORATE)
            m->members[member_count++] =
                (spirv_member_t){spirv_operand(m, i, 1), spirv_operand(m, i, 2),
                                 spirv_operand(m, i, 3), spirv_operand(m, i, 4)};
    }
    qsort(m->defs, count, sizeof *m->defs, def_compare);
    qsort(m->members, member_count, sizeof *m->members, member_compare);
    for (uint32_t k = 1; k < count; k++)
        if (m->defs[k].id == m->defs[k - 1].id)
            return KEEL_ERROR(KEEL_CORRUPT, "id %u is defined twice", m->defs[k].id);
    return NULL;
}

static void decorate(spirv_def_t *def, uint32_t decoration, uint32_t value)
{
    switch (decoration) {
    case DECORATION_BLOCK: def->block = true; break;
    case DECORATION_BUFFER_BLOCK: def->buffer_block = true; break;
    case DECORATION_STRIDE: def->stride = value; break;
    case DECORATION_BUILT_IN: def->built_in = value; break;
    case DECORATION_READ_ONLY: def->read_only++; break;
    case DECORATION_WRITE_ONLY: def->write_only++; break;
    case DECORATION_BINDING: def->binding = value; break;
    case DECORATION_SET: def->set = value; break;
    }
}

static void annotation_read(const spirv_module_t *m, spirv_instruction_t i, spirv_def_t *def)
{
    uint32_t second = spirv_operand(m, i, 2), third = spirv_operand(m, i, 3);
    switch (i.opcode) {
    case SPIRV_NAME: def->name_at = i.at; break;
    case SPIRV_DECORATE: decorate(def, second, third); break;
    case SPIRV_MEMBER_DECORATE:
        if (third == DECORATION_READ_ONLY || third == DECORATION_WRITE_ONLY)
            decorate(def, third, 0);
        break;
    case SPIRV_EXECUTION_MODE:
    case SPIRV_EXECUTION_MODE_ID:
        if (second == SPIRV_MODE_LOCAL_SIZE || second == SPIRV_MODE_LOCAL_SIZE_ID)
            def->size_at = i.at;
        if (second == SPIRV_MODE_SUBGROUP_SIZE) def->wave_at = i.at;
        break;
    }
}

// Names, modes and decorations; they stand before what they are about.
static void annotations_read(spirv_module_t *m)
{
    for (uint32_t at = SPIRV_HEADER_WORDS; at < m->functions; at += spirv_at(m, at).length) {
        spirv_instruction_t i = spirv_at(m, at);
        bool annotates = i.opcode == SPIRV_NAME || i.opcode == SPIRV_DECORATE ||
                         i.opcode == SPIRV_MEMBER_DECORATE || i.opcode == SPIRV_EXECUTION_MODE ||
                         i.opcode == SPIRV_EXECUTION_MODE_ID;
        spirv_def_t *def = annotates ? spirv_find(m, spirv_operand(m, i, 1)) : NULL;
        if (def) annotation_read(m, i, def);
    }
}

static bool member_find(const spirv_module_t *m, uint32_t type, uint32_t member,
                        uint32_t decoration, uint32_t *value)
{
    spirv_member_t key = {type, member, decoration, 0};
    if (!m->member_count) return false;
    const spirv_member_t *found =
        bsearch(&key, m->members, m->member_count, sizeof key, member_compare);
    if (found) *value = found->value;
    return found != NULL;
}

static uint64_t align_up(uint64_t value, uint64_t align)
{
    return align ? (value + align - 1) / align * align : value;
}

// Offsets are as decorated; where they are not, members follow one another.
static void struct_measure(const spirv_module_t *m, spirv_def_t *def, spirv_instruction_t i)
{
    uint64_t next = 0;
    def->align = 1;
    for (uint32_t k = 2; k < i.length; k++) {
        const spirv_def_t *type = spirv_find(m, spirv_operand(m, i, k));
        uint64_t size = type ? type->size : 0, align = type && type->align ? type->align : 1;
        uint32_t offset, stride;
        if (!member_find(m, def->id, k - 2, DECORATION_OFFSET, &offset)) {
            uint64_t natural = align_up(next, align);
            offset = natural < UINT32_MAX ? (uint32_t)natural : UINT32_MAX;
        }
        if (type && spirv_at(m, type->at).opcode == SPIRV_TYPE_MATRIX &&
            member_find(m, def->id, k - 2, DECORATION_MATRIX_STRIDE, &stride))
            size = (uint64_t)stride * spirv_operand(m, spirv_at(m, type->at), 3);
        uint64_t end = offset + size;
        if (end > next) next = end;
        if (align > def->align) def->align = align;
    }
    def->size = next;
}

// Sizes that would not fit into 32 bits are of no interest to anybody: they stay at the largest.
static uint64_t times(uint64_t size, uint64_t count)
{
    return count && size > UINT32_MAX / count ? UINT32_MAX : size * count;
}

static void type_measure(const spirv_module_t *m, spirv_def_t *def)
{
    spirv_instruction_t i = spirv_at(m, def->at);
    const spirv_def_t *inner = spirv_find(m, spirv_operand(m, i, 2));
    uint32_t count = spirv_operand(m, i, 3);
    uint64_t stride;
    switch (i.opcode) {
    case SPIRV_TYPE_BOOL: def->size = def->align = 4; break;
    case SPIRV_TYPE_INT:
    case SPIRV_TYPE_FLOAT: def->size = def->align = spirv_operand(m, i, 2) / 8; break;
    case SPIRV_TYPE_VECTOR:
    case SPIRV_TYPE_MATRIX:
        def->size = inner ? times(inner->size, count) : 0;
        def->align = inner ? inner->align : 0;
        break;
    case SPIRV_TYPE_ARRAY:
        if (!inner || !spirv_constant(m, spirv_operand(m, i, 3), &count)) break;
        stride = def->stride ? def->stride : align_up(inner->size, inner->align);
        def->size = times(stride, count);
        def->align = inner->align;
        break;
    case SPIRV_TYPE_STRUCT: struct_measure(m, def, i); break;
    case SPIRV_TYPE_POINTER: def->size = def->align = m->pointer_size; break;
    }
    if (def->size > UINT32_MAX) def->size = UINT32_MAX;
}

keel_status_t spirv_module_read(image_info_t *info, const void *data, size_t size,
                                spirv_module_t *module)
{
    *module = (spirv_module_t){.bytes = data, .pointer_size = 8};
    if (size < SPIRV_HEADER_WORDS * 4 || size % 4)
        return KEEL_ERROR(KEEL_CORRUPT, "a module of %zu bytes is cut off", size);
    if (size / 4 > UINT32_MAX / 2)
        return KEEL_ERROR(KEEL_UNSUPPORTED, "a module of %zu bytes is too large", size);
    module->words = (uint32_t)(size / 4);
    module->swapped = spirv_word(module, 0) == 0x03022307;
    if (spirv_word(module, 0) != 0x07230203)
        return KEEL_ERROR(KEEL_CORRUPT, "it does not begin like SPIR-V");
    module->version = spirv_word(module, 1);
    KEEL_TRY(stream_check(module));
    KEEL_TRY(defs_collect(info, module));
    annotations_read(module);
    // In the order of the module, in which a type follows those it is made of.
    bool inside = false;
    for (uint32_t at = SPIRV_HEADER_WORDS; at < module->words; at += spirv_at(module, at).length) {
        spirv_instruction_t i = spirv_at(module, at);
        if (is_global(&i, &inside) && result_operand(i.opcode) == 1)
            type_measure(module, spirv_find(module, spirv_operand(module, i, 1)));
    }
    return NULL;
}
