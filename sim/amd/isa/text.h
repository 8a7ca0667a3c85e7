// SPDX-License-Identifier: Apache-2.0
// Instructions as the assembler writes them: what the two halves of the disassembler share.
#ifndef SIM_AMD_ISA_TEXT_H_
#define SIM_AMD_ISA_TEXT_H_

#include "amd/isa/state.h"

typedef struct {
    const target_t *target;
    const insn_t *i;
    char *out; // where the next character goes
    size_t room;
    bool some; // an operand has been written
} text_t;

void text_put(text_t *t, const char *format, ...) __attribute__((format(printf, 2, 3)));

// Begins an operand: a space or a comma before it.
void text_next(text_t *t);

// Operands: registers from a number on, and the source that a code of 9 bits stands for.
void text_vector(text_t *t, unsigned index, unsigned words);
void text_scalar(text_t *t, unsigned index, unsigned words);
void text_source(text_t *t, unsigned code, type_t type);

// What follows the name of an instruction on memory.
void text_memory(text_t *t);

static inline uint32_t text_bits(uint32_t word, unsigned low, unsigned count)
{
    return word >> low & (uint32_t)((1ull << count) - 1);
}

#endif
