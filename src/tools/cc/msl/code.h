// SPDX-License-Identifier: Apache-2.0
// What the writers of MSL share. A kernel is written as one function: clang has put all that it
// calls into it.
#ifndef TOOLS_CC_MSL_CODE_H_
#define TOOLS_CC_MSL_CODE_H_

#include "tools/cc/msl/ir.h"

// Where a pointer points. MSL wants it said of each; C does not say it, so it is found out: by
// where the pointer came from.
typedef enum place_t {
    PLACE_UNKNOWN, // nowhere: null
    PLACE_DEVICE,
    PLACE_GROUP,
    PLACE_CONSTANT,
    PLACE_THREAD,
    PLACE_MIXED, // not always the same
} place_t;

typedef struct code_t code_t;
struct code_t {
    ir_module_t *module;
    ir_function_t *function;
    const char *(*inst_text)(code_t *code, const ir_inst_t *inst); // what is computed
    text_t *out;                                                   // statements
    text_t variables;                                              // declarations before them
    keel_status_t status;                                          // the first failure
    struct scope_t *scope;                                         // of shape.c
    bool uses_doubles;
    bool leaves; // the variable `leave` is used
};

// Fails the function; the first failure stays.
void code_fail(code_t *code, keel_status_t status);

const char *place_name(place_t place); // device ...
void places_find(code_t *code);        // of all pointers of the function

// MSL for a value, in memory of the module. Of a type that is unsigned where C's may be signed.
const char *value_text(code_t *code, const ir_value_t *value);
const char *signed_text(code_t *code, const ir_value_t *value);
// The address as a pointer to bytes, or to elements of a type.
const char *pointer_text(code_t *code, const ir_value_t *value);
const char *pointer_to(code_t *code, const ir_value_t *value, const char *type);
const char *type_text(code_t *code, const ir_type_t *type);
place_t place_of(const ir_value_t *value);
// Integers of a width that MSL has not are in the next larger type, with zeros above their bits.
// LLVM makes them where it sees that a value has no more bits.
bool type_is_odd(const ir_type_t *type);
// An integer of the type, without what lies above its bits.
const char *fitted_text(code_t *code, const ir_type_t *type, const char *text);

// What an instruction computes, as an expression; NULL: it was written as statements.
const char *inst_text(code_t *code, const ir_inst_t *inst);
const char *call_text(code_t *code, const ir_inst_t *inst);
const char *atomic_text(code_t *code, const ir_inst_t *inst);
void store_write(code_t *code, const ir_inst_t *inst);
// An operation on doubles, which are done in software.
const char *double_text(code_t *code, const ir_inst_t *inst);

// All instructions but the last.
void block_write(code_t *code, const ir_block_t *block);
// What phis of `to` get when control comes from `from`.
void phis_write(code_t *code, const ir_block_t *from, const ir_block_t *to);
// The whole function as loops and conditions.
void shape_write(code_t *code);

#define PRINT(code, ...) arena_print(&(code)->module->arena, __VA_ARGS__)

#endif
