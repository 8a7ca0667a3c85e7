// SPDX-License-Identifier: Apache-2.0
// A SPIR-V module taken apart: its types, constants, global variables and functions by id, with
// names and decorations.
#ifndef KEEL_SRC_EXECUTABLE_SPIRV_MODULE_H_
#define KEEL_SRC_EXECUTABLE_SPIRV_MODULE_H_

#include "executable/image.h"

enum {
    SPIRV_NAME = 5,
    SPIRV_ENTRY_POINT = 15,
    SPIRV_EXECUTION_MODE = 16,
    SPIRV_TYPE_BOOL = 20,
    SPIRV_TYPE_INT = 21,
    SPIRV_TYPE_FLOAT = 22,
    SPIRV_TYPE_VECTOR = 23,
    SPIRV_TYPE_MATRIX = 24,
    SPIRV_TYPE_IMAGE = 25,
    SPIRV_TYPE_SAMPLER = 26,
    SPIRV_TYPE_SAMPLED_IMAGE = 27,
    SPIRV_TYPE_ARRAY = 28,
    SPIRV_TYPE_RUNTIME_ARRAY = 29,
    SPIRV_TYPE_STRUCT = 30,
    SPIRV_TYPE_POINTER = 32,
    SPIRV_TYPE_FUNCTION = 33,
    SPIRV_CONSTANT = 43,
    SPIRV_CONSTANT_COMPOSITE = 44,
    SPIRV_SPEC_CONSTANT = 50,
    SPIRV_SPEC_CONSTANT_COMPOSITE = 51,
    SPIRV_FUNCTION = 54,
    SPIRV_FUNCTION_END = 56,
    SPIRV_VARIABLE = 59,
    SPIRV_DECORATE = 71,
    SPIRV_MEMBER_DECORATE = 72,
    SPIRV_EXECUTION_MODE_ID = 331,
    SPIRV_TYPE_ACCELERATION_STRUCTURE = 5341,
};

enum {
    SPIRV_HEADER_WORDS = 5,
    SPIRV_MODE_LOCAL_SIZE = 17,
    SPIRV_MODE_SUBGROUP_SIZE = 35,
    SPIRV_MODE_LOCAL_SIZE_ID = 38,
};

// What is known of an id.
typedef struct spirv_def_t {
    uint32_t id;
    uint32_t at;      // the word its instruction begins at
    uint32_t name_at; // the OpName's; 0: none, as of the next two
    uint32_t size_at; // of a function: the execution mode that gives the size of groups
    uint32_t wave_at; // of a function: the one that gives the size of sub-groups
    uint32_t set, binding, built_in; // UINT32_MAX: not decorated so
    uint32_t stride;                 // of an array's elements; 0: not decorated so
    uint32_t read_only, write_only;  // decorations: of a struct, how many of its members have them
    bool block, buffer_block;
    uint32_t user;        // the last entry that counted it, from 1
    uint64_t size, align; // of a type, in bytes; 0 where it has none
} spirv_def_t;

// A decoration of a struct's member.
typedef struct spirv_member_t {
    uint32_t type, member, decoration, value;
} spirv_member_t;

typedef struct spirv_module_t {
    const uint8_t *bytes;
    uint32_t words;
    bool swapped;       // the other byte order
    uint32_t version;   // 0x00010300 is 1.3
    uint32_t functions; // the word at which they begin
    uint32_t pointer_size;
    spirv_def_t *defs; // by id; in info's memory, as is the next
    uint32_t def_count;
    spirv_member_t *members; // by type and member
    uint32_t member_count;
} spirv_module_t;

// One instruction: its operands are the words from at + 1 up to at + length.
typedef struct spirv_instruction_t {
    uint32_t at, opcode, length;
} spirv_instruction_t;

// Reads a module; memory is info's.
keel_status_t spirv_module_read(image_info_t *info, const void *data, size_t size,
                                spirv_module_t *module) KEEL_MUST_USE;

uint32_t spirv_word(const spirv_module_t *module, uint32_t index);

// The instruction at a word that one begins at.
spirv_instruction_t spirv_at(const spirv_module_t *module, uint32_t word);

// An operand, the first being 1; 0 if the instruction is too short to have it.
uint32_t spirv_operand(const spirv_module_t *module, spirv_instruction_t instruction,
                       uint32_t index);

// NULL if the id is none of a type, constant, global variable or function.
spirv_def_t *spirv_find(const spirv_module_t *module, uint32_t id);

// The text that begins at operand `index`.
keel_status_t spirv_text(image_info_t *info, const spirv_module_t *module,
                         spirv_instruction_t instruction, uint32_t index,
                         const char **text) KEEL_MUST_USE;

// The value of a constant of up to 32 bits; false if the id is none. A specialization constant has
// its default.
bool spirv_constant(const spirv_module_t *module, uint32_t id, uint32_t *value);

#endif
