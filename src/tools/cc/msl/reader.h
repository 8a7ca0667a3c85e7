// SPDX-License-Identifier: Apache-2.0
// What the readers of LLVM's text share. The first failure stays, and the rest of the text is then
// empty: so only who asked for the module has to look.
#ifndef TOOLS_CC_MSL_READER_H_
#define TOOLS_CC_MSL_READER_H_

#include "tools/cc/msl/ir.h"

typedef enum token_kind_t {
    TOKEN_END,
    TOKEN_LINE,   // the end of a line
    TOKEN_WORD,   // i32, add, 12, -5, 0x1F, 1.0e+00
    TOKEN_LOCAL,  // %x
    TOKEN_GLOBAL, // @x
    TOKEN_STRING, // "x"
    TOKEN_BYTES,  // c"x"
    TOKEN_LABEL,  // x: at the beginning of a line
    TOKEN_OTHER,  // one character, or metadata
} token_kind_t;

typedef struct token_t {
    token_kind_t kind;
    const char *text; // without the mark and quotes
    size_t length;
} token_t;

typedef struct ir_reader_t {
    ir_module_t *module;
    const char *at;
    token_t token; // the next one
    keel_status_t status;
    ir_function_t *function; // that is read; NULL: none
} ir_reader_t;

void ir_reader_next(ir_reader_t *r);
bool ir_reader_is(const ir_reader_t *r, const char *text); // a word or character
bool ir_reader_take(ir_reader_t *r, const char *text);     // goes on if it is
void ir_reader_expect(ir_reader_t *r, const char *text);   // fails if it is not
void ir_reader_skip_line(ir_reader_t *r);                  // to behind its end
void ir_reader_skip_group(ir_reader_t *r);                 // what ( begins
void ir_reader_skip_flags(ir_reader_t *r);                 // words such as nuw, inbounds, tail
char *ir_reader_name(ir_reader_t *r);                      // of the token, with escapes undone
uint64_t ir_reader_number(ir_reader_t *r);                 // an integer that is no value
void ir_reader_fail(ir_reader_t *r, keel_status_t status); // the first stays; takes the status
void ir_reader_stray(ir_reader_t *r, const char *what);    // fails: the token does not fit

const ir_type_t *read_type(ir_reader_t *r);
ir_type_t *type_named(ir_reader_t *r, const char *name);
const ir_type_t *type_of(ir_reader_t *r, ir_kind_t kind, uint32_t bits);

ir_value_t *read_value(ir_reader_t *r, const ir_type_t *type);
ir_value_t *read_typed(ir_reader_t *r); // the type before it
ir_value_t *local_named(ir_reader_t *r, const char *name);
ir_variable_t *variable_named(ir_reader_t *r, const char *name);
// The operands of getelementptr and of conversions, which constants have, too.
void read_steps(ir_reader_t *r, ir_inst_t *inst);
void read_conversion(ir_reader_t *r, ir_inst_t *inst);
void inst_operand(ir_reader_t *r, ir_inst_t *inst, ir_value_t *value);
ir_op_t op_named(const token_t *token); // IR_OP_COUNT: none

void read_function(ir_reader_t *r);
void read_instruction(ir_reader_t *r, ir_block_t *block);
ir_block_t *block_named(ir_reader_t *r, const char *name);

#endif
