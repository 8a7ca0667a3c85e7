// SPDX-License-Identifier: Apache-2.0
// LLVM's intermediate language, as much of it as clang makes of kernels: read from its text form
// into types, variables, and functions of blocks of instructions. Everything lives in the module's
// arena.
#ifndef TOOLS_CC_MSL_IR_H_
#define TOOLS_CC_MSL_IR_H_

#include <keel/status.h>
#include <stdbool.h>
#include <stdint.h>

#include "tools/cc/msl/text.h"

typedef enum ir_kind_t {
    IR_VOID,
    IR_INT, // of `bits`
    IR_HALF,
    IR_FLOAT,
    IR_DOUBLE,
    IR_PTR, // into address space `bits`
    IR_ARRAY,
    IR_STRUCT,
    IR_OTHER, // what kernels for Metal do not have: vectors, labels, long doubles
} ir_kind_t;

typedef struct ir_type_t ir_type_t;
struct ir_type_t {
    ir_kind_t kind;
    uint32_t bits;
    uint64_t count;           // elements of an array, fields of a struct
    const ir_type_t *element; // of an array
    const ir_type_t **fields;
    bool packed;
    const char *name; // of a struct, if it has one; filled in when its definition is read
};

uint64_t ir_size(const ir_type_t *type); // in memory, with padding at the end
uint64_t ir_align(const ir_type_t *type);
uint64_t ir_offset(const ir_type_t *type, uint64_t field);

typedef enum ir_value_kind_t {
    IR_LOCAL,    // a parameter or what an instruction makes
    IR_NUMBER,   // `number`: an integer, or the bits of a floating-point number of its type
    IR_NOTHING,  // null, undef, poison, zeroinitializer: zeros are right for all of these
    IR_BYTES,    // c"...": `name`, type->count long
    IR_LIST,     // an aggregate: `items`
    IR_VARIABLE, // the address of `variable`
    IR_NAMED,    // that of a function
    IR_COMPUTED, // `inst` of constants
} ir_value_kind_t;

typedef struct ir_inst_t ir_inst_t;
typedef struct ir_variable_t ir_variable_t;
typedef struct ir_block_t ir_block_t;

typedef struct ir_value_t ir_value_t;
struct ir_value_t {
    ir_value_kind_t kind;
    const ir_type_t *type;
    uint64_t number;
    const char *name;   // of a local without %, of a function without @
    ir_value_t **items; // type->count
    ir_variable_t *variable;
    ir_inst_t *inst; // that makes the local; NULL: a parameter
    // For who writes code.
    int place;         // where a pointer points: place_t of code.h
    ir_block_t *block; // where it is made
    bool wide;         // it is used in other blocks, too
};

struct ir_variable_t {
    const char *name;
    const ir_type_t *type;
    uint32_t space, align;
    bool constant, defined;
    const char *section; // "" if it is in none
    const ir_value_t *value;
    uint64_t offset; // for who writes code
    bool used;       // by a kernel
};

#define IR_OPS(X)                                                                                  \
    X(add)                                                                                         \
    X(sub)                                                                                         \
    X(mul)                                                                                         \
    X(udiv)                                                                                        \
    X(sdiv)                                                                                        \
    X(urem)                                                                                        \
    X(srem)                                                                                        \
    X(shl)                                                                                         \
    X(lshr)                                                                                        \
    X(ashr)                                                                                        \
    X(and)                                                                                         \
    X(or)                                                                                          \
    X(xor)                                                                                         \
    X(fadd)                                                                                        \
    X(fsub)                                                                                        \
    X(fmul)                                                                                        \
    X(fdiv)                                                                                        \
    X(frem)                                                                                        \
    X(fneg)                                                                                        \
    X(icmp)                                                                                        \
    X(fcmp)                                                                                        \
    X(select)                                                                                      \
    X(phi)                                                                                         \
    X(br)                                                                                          \
    X(switch)                                                                                      \
    X(ret)                                                                                         \
    X(unreachable)                                                                                 \
    X(load)                                                                                        \
    X(store)                                                                                       \
    X(alloca)                                                                                      \
    X(getelementptr)                                                                               \
    X(zext)                                                                                        \
    X(sext)                                                                                        \
    X(trunc)                                                                                       \
    X(bitcast)                                                                                     \
    X(fptrunc)                                                                                     \
    X(fpext)                                                                                       \
    X(fptoui)                                                                                      \
    X(fptosi)                                                                                      \
    X(uitofp)                                                                                      \
    X(sitofp)                                                                                      \
    X(inttoptr)                                                                                    \
    X(ptrtoint)                                                                                    \
    X(addrspacecast)                                                                               \
    X(call)                                                                                        \
    X(atomicrmw)                                                                                   \
    X(cmpxchg)                                                                                     \
    X(fence)                                                                                       \
    X(extractvalue)                                                                                \
    X(freeze)

typedef enum ir_op_t {
#define X(name) IR_OP_##name,
    IR_OPS(X)
#undef X
        IR_OP_COUNT
} ir_op_t;

struct ir_inst_t {
    ir_op_t op;
    ir_value_t *made; // NULL: nothing
    ir_value_t **operands;
    uint32_t operand_count;
    ir_block_t **blocks; // targets of a branch; where the operands of a phi come from
    uint32_t block_count;
    const ir_type_t *type; // that getelementptr counts in, that alloca makes
    const char *word;      // the predicate of a comparison, what atomicrmw does
    uint32_t align, index; // index: of extractvalue
    bool is_volatile, is_atomic;
};

struct ir_block_t {
    const char *name;
    ir_inst_t **insts; // the last one ends it
    uint32_t count;
    bool defined;
    // For flow.c.
    ir_block_t **into;     // where it may go, each once
    uint32_t into_count;   //
    ir_block_t **from;     //
    uint32_t from_count;   //
    uint32_t order;        // in reverse post-order
    bool reached;          //
    ir_block_t *dominator; // the immediate one; NULL: the first block
    ir_block_t
        *loop;      // the header of the innermost loop that it is in, other than itself; NULL: none
    bool is_header; //
    ir_block_t **inside;    // blocks that are written inside of it, as flow.h says
    uint32_t inside_count;  //
    ir_block_t **after;     // those that are written behind its loop
    uint32_t after_count;   //
    uint32_t forward_edges; // that lead to it, without those that close loops
};

typedef struct ir_function_t {
    const char *name;
    ir_value_t **params;
    uint32_t param_count;
    ir_block_t **blocks; // in the order of the text
    uint32_t block_count;
    uint32_t local_count, local_capacity; // a table by names
    ir_value_t **locals;
} ir_function_t;

typedef struct ir_module_t {
    arena_t arena;
    ir_type_t **types; // those with names
    uint32_t type_count;
    ir_variable_t **variables;
    uint32_t variable_count;
    ir_function_t **functions; // those that are defined
    uint32_t function_count;
} ir_module_t;

// Reads a text that ends in 0. The module is to be finished in any case.
keel_status_t ir_read(const char *text, ir_module_t *module) KEEL_MUST_USE;
void ir_finish(ir_module_t *module);

// Writes the bytes of a constant, of its type's size, where zeros are.
keel_status_t ir_bytes(const ir_value_t *value, unsigned char *to) KEEL_MUST_USE;

#endif
