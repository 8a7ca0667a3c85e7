// SPDX-License-Identifier: Apache-2.0
#include "executable/spirv.h"

#include <stdlib.h>
#include <string.h>

#include "executable/build.h"
#include "executable/spirv_module.h"

enum {
    MODEL_COMPUTE = 5,
    MODEL_KERNEL = 6,
    BUILT_IN_GROUP_SIZE = 25,
    FUNCTION_CALL = 57,
    EFFORT = 64, // how many times as long as the module the search for variables may be
};

enum {
    CLASS_CONSTANT = 0, // images, samplers; constant memory in OpenCL
    CLASS_UNIFORM = 2,
    CLASS_WORKGROUP = 4,
    CLASS_GLOBAL = 5,
    CLASS_PUSH = 9,
    CLASS_STORAGE = 12,
};

enum {
    DIMENSION_BUFFER = 5,
    DIMENSION_SUBPASS = 6,
};

typedef struct spirv_reader_t {
    spirv_module_t module;
    image_info_t *info;
    const spirv_def_t *group_size; // a constant that all entries have, or NULL
    uint64_t effort;               // words looked at in functions
    uint32_t *pending;             // ids of functions to be looked through; in info's memory
} spirv_reader_t;

static spirv_instruction_t instruction_of(const spirv_reader_t *r, const spirv_def_t *def)
{
    return spirv_at(&r->module, def->at);
}

// What a resource is, once arrays around it are taken off.
static const char *image_name(const spirv_reader_t *r, spirv_instruction_t type)
{
    bool storage = spirv_operand(&r->module, type, 7) == 2;
    switch (spirv_operand(&r->module, type, 3)) {
    case DIMENSION_BUFFER: return storage ? "storage texel buffer" : "uniform texel buffer";
    case DIMENSION_SUBPASS: return "input attachment";
    default: return storage ? "storage image" : "sampled image";
    }
}

// Buffers of texels are called sampled images, too, and have no sampler.
static const char *sampled_name(const spirv_reader_t *r, spirv_instruction_t type)
{
    const spirv_def_t *image = spirv_find(&r->module, spirv_operand(&r->module, type, 2));
    bool buffer =
        image && spirv_operand(&r->module, instruction_of(r, image), 3) == DIMENSION_BUFFER;
    return buffer ? "uniform texel buffer" : "combined image sampler";
}

static const char *resource_name(const spirv_reader_t *r, uint32_t class, const spirv_def_t *type)
{
    if (class == CLASS_STORAGE || type->buffer_block) return "storage buffer";
    if (class == CLASS_UNIFORM) return "uniform buffer";
    spirv_instruction_t i = instruction_of(r, type);
    switch (i.opcode) {
    case SPIRV_TYPE_IMAGE: return image_name(r, i);
    case SPIRV_TYPE_SAMPLER: return "sampler";
    case SPIRV_TYPE_SAMPLED_IMAGE: return sampled_name(r, i);
    case SPIRV_TYPE_ACCELERATION_STRUCTURE: return "acceleration structure";
    default: return "";
    }
}

// A block is read-only if the variable is, or every member.
static uint32_t resource_access(const spirv_reader_t *r, const char *name,
                                const spirv_def_t *variable, const spirv_def_t *type)
{
    if (strncmp(name, "storage", 7) != 0) return KEEL_ACCESS_READ;
    spirv_instruction_t i = instruction_of(r, type);
    uint32_t members = i.opcode == SPIRV_TYPE_STRUCT ? i.length - 2 : 0;
    uint32_t access = KEEL_ACCESS_ALL;
    if (variable->read_only || (members && type->read_only >= members)) access = KEEL_ACCESS_READ;
    if (variable->write_only || (members && type->write_only >= members))
        access &= ~(uint32_t)KEEL_ACCESS_READ;
    return access;
}

static keel_status_t name_read(const spirv_reader_t *r, const spirv_def_t *def, const char **name)
{
    *name = "";
    if (!def->name_at) return NULL;
    return spirv_text(r->info, &r->module, spirv_at(&r->module, def->name_at), 2, name);
}

// Takes arrays off a type and counts their elements; a runtime array makes that 0.
static const spirv_def_t *array_strip(const spirv_reader_t *r, const spirv_def_t *type,
                                      uint32_t *count)
{
    uint64_t elements = 1;
    for (int depth = 0; type && depth < 8; depth++) {
        spirv_instruction_t i = instruction_of(r, type);
        uint32_t length = 0;
        if (i.opcode == SPIRV_TYPE_ARRAY)
            spirv_constant(&r->module, spirv_operand(&r->module, i, 3), &length);
        else if (i.opcode != SPIRV_TYPE_RUNTIME_ARRAY)
            break;
        elements = length < UINT32_MAX / (elements ? elements : 1) ? elements * length : 0;
        type = spirv_find(&r->module, spirv_operand(&r->module, i, 2));
    }
    *count = (uint32_t)elements;
    return type;
}

static keel_status_t binding_add(spirv_reader_t *r, keel_image_entry_info_t *entry, uint32_t class,
                                 const spirv_def_t *variable, const spirv_def_t *pointee)
{
    uint32_t count;
    const spirv_def_t *type = array_strip(r, pointee, &count);
    if (!type || variable->binding == UINT32_MAX) return NULL;
    keel_image_binding_t *binding;
    KEEL_TRY(image_add_binding(r->info, entry, &binding));
    binding->type = resource_name(r, class, type);
    binding->set = variable->set == UINT32_MAX ? 0 : variable->set;
    binding->binding = variable->binding;
    binding->count = count;
    binding->access = resource_access(r, binding->type, variable, type);
    KEEL_TRY(name_read(r, variable, &binding->name));
    return binding->name[0] ? NULL : name_read(r, type, &binding->name);
}

// Counts a variable that an entry uses.
static keel_status_t variable_use(spirv_reader_t *r, uint32_t index, uint32_t id)
{
    spirv_def_t *variable = spirv_find(&r->module, id);
    if (!variable || variable->user == index + 1) return NULL;
    spirv_instruction_t i = instruction_of(r, variable);
    if (i.opcode != SPIRV_VARIABLE) return NULL;
    variable->user = index + 1;
    const spirv_def_t *pointer = spirv_find(&r->module, spirv_operand(&r->module, i, 1));
    if (!pointer || instruction_of(r, pointer).opcode != SPIRV_TYPE_POINTER)
        return KEEL_ERROR(KEEL_CORRUPT, "variable %u has no type of pointers", id);
    const spirv_def_t *type =
        spirv_find(&r->module, spirv_operand(&r->module, instruction_of(r, pointer), 3));
    if (!type) return KEEL_ERROR(KEEL_CORRUPT, "variable %u has no type", id);
    keel_image_entry_info_t *entry = &r->info->entries[index];
    uint32_t class = spirv_operand(&r->module, i, 3);
    switch (class) {
    case CLASS_PUSH: entry->constants = (uint32_t)type->size; return NULL;
    case CLASS_WORKGROUP: {
        uint64_t total = entry->local_memory + type->size;
        entry->local_memory = total < UINT32_MAX ? (uint32_t)total : UINT32_MAX - 1;
        return NULL;
    }
    case CLASS_CONSTANT:
    case CLASS_UNIFORM:
    case CLASS_STORAGE: return binding_add(r, entry, class, variable, type);
    default: return NULL;
    }
}

// Which operands of an instruction in a function may be variables: from..to.
static void operands_of_interest(spirv_instruction_t i, uint32_t *from, uint32_t *to)
{
    *from = *to = 0;
    switch (i.opcode) {
    case FUNCTION_CALL: *from = 4, *to = i.length - 1; break;
    case 60: // ImageTexelPointer
    case 61: // Load
    case 65: // AccessChain and its relatives
    case 66:
    case 67:
    case 68:
    case 70:                                        //
    case 83:                                        // CopyObject
    case 227: *from = *to = 3; break;               // AtomicLoad
    case 62:                                        // Store
    case 228: *from = *to = 1; break;               // AtomicStore
    case 63: *from = 1, *to = 2; break;             // CopyMemory
    case 169:                                       // Select
    case 245: *from = 3, *to = i.length - 1; break; // Phi
    default:
        if (i.opcode >= 229 && i.opcode <= 242) *from = *to = 3; // other atomics
    }
}

// Looks through one function; those it calls are added to the pending ones.
static keel_status_t function_search(spirv_reader_t *r, uint32_t index, const spirv_def_t *function,
                                     uint32_t *pending)
{
    const spirv_module_t *m = &r->module;
    for (uint32_t at = function->at; at < m->words;) {
        spirv_instruction_t i = spirv_at(m, at);
        if (i.opcode == SPIRV_FUNCTION_END) break;
        if ((r->effort += i.length) > (uint64_t)m->words * EFFORT)
            return KEEL_ERROR(KEEL_UNSUPPORTED,
                              "its entry points share too much code to be told apart");
        uint32_t from, to;
        operands_of_interest(i, &from, &to);
        for (uint32_t k = from; k && k <= to; k++)
            KEEL_TRY(variable_use(r, index, spirv_operand(m, i, k)));
        spirv_def_t *called =
            i.opcode == FUNCTION_CALL ? spirv_find(m, spirv_operand(m, i, 3)) : NULL;
        if (called && called->user != index + 1 &&
            spirv_at(m, called->at).opcode == SPIRV_FUNCTION) {
            called->user = index + 1;
            r->pending[(*pending)++] = called->id;
        }
        at += i.length;
    }
    return NULL;
}

// All variables that functions use which can be reached from an entry.
static keel_status_t functions_search(spirv_reader_t *r, uint32_t index, spirv_def_t *function)
{
    function->user = index + 1;
    uint32_t pending = 0;
    r->pending[pending++] = function->id;
    while (pending)
        KEEL_TRY(
            function_search(r, index, spirv_find(&r->module, r->pending[--pending]), &pending));
    return NULL;
}

static keel_status_t param_add(spirv_reader_t *r, keel_image_entry_info_t *entry,
                               const spirv_def_t *type)
{
    keel_image_param_t *param;
    KEEL_TRY(image_add_param(r->info, entry, &param));
    spirv_instruction_t i = instruction_of(r, type);
    uint32_t class = i.opcode == SPIRV_TYPE_POINTER ? spirv_operand(&r->module, i, 2) : UINT32_MAX;
    uint64_t align = type->align ? type->align : r->module.pointer_size;
    uint64_t size = type->size ? type->size : r->module.pointer_size;
    param->kind = class == CLASS_WORKGROUP                           ? KEEL_PARAM_LOCAL
                  : class == CLASS_GLOBAL || class == CLASS_CONSTANT ? KEEL_PARAM_POINTER
                  : type->size                                       ? KEEL_PARAM_VALUE
                                                                     : KEEL_PARAM_OPAQUE;
    uint64_t offset = (entry->param_size + align - 1) / align * align;
    if (offset + size > UINT32_MAX)
        return KEEL_ERROR(KEEL_CORRUPT, "'%s' has too large parameters", entry->name);
    param->offset = (uint32_t)offset;
    param->size = (uint32_t)size;
    param->align = (uint32_t)align;
    entry->param_size = (uint32_t)(offset + size);
    return NULL;
}

// The parameters of a kernel of OpenCL, from the type of its function.
static keel_status_t params_read(spirv_reader_t *r, keel_image_entry_info_t *entry,
                                 const spirv_def_t *function)
{
    const spirv_def_t *type =
        spirv_find(&r->module, spirv_operand(&r->module, instruction_of(r, function), 4));
    spirv_instruction_t i = type ? instruction_of(r, type) : (spirv_instruction_t){0};
    if (i.opcode != SPIRV_TYPE_FUNCTION)
        return KEEL_ERROR(KEEL_CORRUPT, "the function of '%s' has no type", entry->name);
    for (uint32_t k = 3; k < i.length; k++) {
        const spirv_def_t *param = spirv_find(&r->module, spirv_operand(&r->module, i, k));
        if (!param) return KEEL_ERROR(KEEL_CORRUPT, "a parameter of '%s' has no type", entry->name);
        KEEL_TRY(param_add(r, entry, param));
    }
    return NULL;
}

static int binding_compare(const void *a, const void *b)
{
    const keel_image_binding_t *x = a, *y = b;
    if (x->set != y->set) return x->set > y->set ? 1 : -1;
    return (x->binding > y->binding) - (x->binding < y->binding);
}

static void group_size_read(const spirv_reader_t *r, const spirv_def_t *function,
                            keel_image_entry_info_t *entry)
{
    const spirv_module_t *m = &r->module;
    if (function->wave_at) entry->wave_size = spirv_operand(m, spirv_at(m, function->wave_at), 3);
    if (!function->size_at && !r->group_size) return;
    spirv_instruction_t i = spirv_at(m, r->group_size ? r->group_size->at : function->size_at);
    bool literal = !r->group_size && spirv_operand(m, i, 2) == SPIRV_MODE_LOCAL_SIZE;
    for (uint32_t k = 0; k < 3; k++) {
        uint32_t value = spirv_operand(m, i, 3 + k);
        if (literal || spirv_constant(m, value, &value)) entry->group_size[k] = value;
    }
}

static keel_status_t entry_read(spirv_reader_t *r, spirv_instruction_t i)
{
    uint32_t model = spirv_operand(&r->module, i, 1);
    if (model != MODEL_COMPUTE && model != MODEL_KERNEL) return NULL;
    uint32_t index = r->info->entry_count;
    keel_image_entry_info_t *entry;
    KEEL_TRY(image_add_entry(r->info, &entry));
    KEEL_TRY(spirv_text(r->info, &r->module, i, 3, &entry->name));
    spirv_def_t *function = spirv_find(&r->module, spirv_operand(&r->module, i, 2));
    if (!function || instruction_of(r, function).opcode != SPIRV_FUNCTION)
        return KEEL_ERROR(KEEL_CORRUPT, "entry point '%s' has no function", entry->name);
    group_size_read(r, function, entry);
    if (model == MODEL_KERNEL) KEEL_TRY(params_read(r, entry, function));
    // The interface lists too little before 1.4, and may list too much since.
    KEEL_TRY(functions_search(r, index, function));
    if (entry->binding_count)
        qsort(entry->bindings, entry->binding_count, sizeof *entry->bindings, binding_compare);
    return NULL;
}

// A constant decorated as the size of groups takes the place of what modes say; NULL if there is
// none.
static const spirv_def_t *group_constant(const spirv_module_t *m)
{
    for (uint32_t k = 0; k < m->def_count; k++) {
        uint32_t opcode = spirv_at(m, m->defs[k].at).opcode;
        if (m->defs[k].built_in == BUILT_IN_GROUP_SIZE &&
            (opcode == SPIRV_CONSTANT_COMPOSITE || opcode == SPIRV_SPEC_CONSTANT_COMPOSITE))
            return &m->defs[k];
    }
    return NULL;
}

static keel_status_t module_describe(spirv_reader_t *r)
{
    const spirv_module_t *m = &r->module;
    void *pending;
    KEEL_TRY(image_alloc(r->info, ((uint64_t)m->def_count + 1) * sizeof *r->pending, &pending));
    r->pending = pending;
    r->group_size = group_constant(m);
    for (uint32_t at = SPIRV_HEADER_WORDS; at < m->functions; at += spirv_at(m, at).length) {
        spirv_instruction_t i = spirv_at(m, at);
        if (i.opcode == SPIRV_ENTRY_POINT) KEEL_TRY(entry_read(r, i));
    }
    r->info->target = "spirv";
    return image_format(r->info, &r->info->version, "%u.%u", m->version >> 16 & 0xff,
                        m->version >> 8 & 0xff);
}

keel_status_t spirv_read(const void *data, size_t size, image_info_t *info)
{
    spirv_reader_t reader = {.info = info};
    KEEL_TRY(image_begin(info, KEEL_IMAGE_SPIRV, size));
    keel_status_t status = spirv_module_read(info, data, size, &reader.module);
    if (!status) status = module_describe(&reader);
    return image_end(info, status);
}
