// SPDX-License-Identifier: Apache-2.0
// PTX, as far as small kernels need it: integers, memory, branches within a kernel, and calls of
// the functions that CUDA has for device code. Threads of a block run one after the other, so there
// are no barriers, and no shared memory. What is not known is refused when the text is loaded.
#ifndef SIM_CUDA_PTX_H_
#define SIM_CUDA_PTX_H_

#include "cuda/image.h"

#include <stdbool.h>

enum {
    PTX_REGISTERS = 1024, // of a kernel
    PTX_FRAME = 4096,     // bytes of a thread's own memory, with arguments of calls
};

typedef enum ptx_op_t {
    PTX_MOV,
    PTX_LOAD,
    PTX_STORE,
    PTX_CONVERT,
    PTX_ADD,
    PTX_SUB,
    PTX_MUL,
    PTX_MUL_HIGH,
    PTX_MUL_WIDE,
    PTX_MAD,
    PTX_MAD_WIDE,
    PTX_DIV,
    PTX_REM,
    PTX_MIN,
    PTX_MAX,
    PTX_AND,
    PTX_OR,
    PTX_XOR,
    PTX_NOT,
    PTX_NEG,
    PTX_SHL,
    PTX_SHR,
    PTX_COMPARE,
    PTX_SELECT,
    PTX_SWAP, // atom.cas
    PTX_FENCE,
    PTX_BRANCH,
    PTX_CALL,
    PTX_RETURN,
    PTX_TRAP,
} ptx_op_t;

typedef enum ptx_compare_t { PTX_EQ, PTX_NE, PTX_LT, PTX_LE, PTX_GT, PTX_GE } ptx_compare_t;

typedef enum ptx_function_t {
    PTX_SET_CONDITIONAL,
    PTX_SET_GRID,
    PTX_SET_ENABLED,
    PTX_SET_PARAM,
    PTX_FUNCTIONS,
} ptx_function_t;

typedef struct ptx_type_t {
    uint8_t bits; // 1 for predicates
    bool is_signed;
} ptx_type_t;

typedef enum ptx_base_t {
    PTX_REGISTER,  // index
    PTX_NUMBER,    // the offset alone
    PTX_SPECIAL,   // index: ptx_special_t
    PTX_PARAMETER, // the address of the kernel's parameters
    PTX_LOCAL,     // the address of the thread's frame
} ptx_base_t;

// Of each of the first four: x, y, z.
typedef enum ptx_special_t {
    PTX_TID = 0,
    PTX_NTID = 3,
    PTX_CTAID = 6,
    PTX_NCTAID = 9,
    PTX_TIMER = 12,
} ptx_special_t;

// A value, or an address to load from: the base and an offset.
typedef struct ptx_operand_t {
    ptx_base_t base;
    uint32_t index;
    int64_t offset;
} ptx_operand_t;

typedef struct ptx_step_t {
    uint8_t op;      // ptx_op_t
    uint8_t detail;  // ptx_compare_t, ptx_function_t
    uint8_t vector;  // elements that are loaded or stored
    bool guarded;    // runs if the predicate is `wanted`
    bool wanted;     //
    uint32_t guard;  // that register
    uint32_t target; // of a branch: a step
    ptx_type_t type;
    ptx_type_t from;           // of a conversion
    ptx_operand_t operands[5]; // results first; of a call, what it returns and its arguments
} ptx_step_t;

typedef struct ptx_kernel_t {
    ptx_step_t *steps; // the last one returns
    uint32_t count;
} ptx_kernel_t;

// A loaded text.
typedef struct ptx_module_t {
    cuda_host_image_t image; // entries without functions, no variables
    ptx_kernel_t *kernels;   // by entry
} ptx_module_t;

// Whether it looks like a text of PTX.
bool ptx_is(const char *text);

// NULL, and why, if it cannot be run.
ptx_module_t *ptx_load(const char *text, char *why, size_t size);
void ptx_unload(ptx_module_t *module);

// Why a kernel ends.
enum { PTX_TRAPPED = 1, PTX_MISALIGNED = 716 };

// Runs all threads of one block, as cuda_host_kernel_fn. A misaligned access is an error, as on a
// card.
int ptx_run(const ptx_kernel_t *kernel, const void *params, const cuda_host_block_t *block);

#endif
