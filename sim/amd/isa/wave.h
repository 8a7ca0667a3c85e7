// SPDX-License-Identifier: Apache-2.0
// The state of a wave of 64 lanes, and its instructions in decoded form.
//
// Code is decoded once into an array with one slot for each word, so that a slot's neighbour is the
// next instruction and a branch is a pointer. To run is to call the slot's function, which returns
// the slot to go on with, or NULL to leave the wave. Vector registers are arrays of 64 lanes, and a
// vector operation is a pure function over such arrays, which compilers turn into vector code; the
// exec mask, modifiers and scalar operands are seen to around it.
#ifndef SIM_AMD_ISA_WAVE_H_
#define SIM_AMD_ISA_WAVE_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "amd/map.h"

enum { LANES = 64 };

// Scalar registers with a name.
enum { SGPR_FLAT_SCRATCH = 102, SGPR_VCC = 106, SGPR_M0 = 124, SGPR_EXEC = 126, SGPR_COUNT = 128 };

// Accumulation registers follow the ordinary vector registers.
enum { VGPR_ACC = 256, VGPR_COUNT = 512 };

typedef struct isa isa_t;
typedef struct wave wave_t;
typedef struct insn insn_t;
typedef struct op op_t;

typedef const insn_t *run_fn(wave_t *w, const insn_t *i);

// A vector operation over all lanes. 64-bit values lie in two neighbouring arrays, low words first.
// The mask is a carry or a condition per lane, going in and coming out; most operations ignore it.
// The destination may be any of the sources.
typedef uint64_t lanes_fn(uint32_t *d, const uint32_t *a, const uint32_t *b, const uint32_t *c,
                          uint64_t mask);

typedef enum {
    TYPE_NONE,
    TYPE_u32,
    TYPE_i32,
    TYPE_f32,
    TYPE_u64,
    TYPE_i64,
    TYPE_f64,
    TYPE_u16,
    TYPE_i16,
    TYPE_f16,
    TYPE_f16x2, // both halves of a word
    TYPE_none = TYPE_NONE,
} type_t;

static inline unsigned type_words(type_t type)
{
    return type == TYPE_NONE ? 0 : type >= TYPE_u64 && type <= TYPE_f64 ? 2 : 1;
}

static inline bool type_is_float(type_t type)
{
    return type == TYPE_f32 || type == TYPE_f64 || type == TYPE_f16 || type == TYPE_f16x2;
}

// Facts about an operation.
enum {
    OP_MASK_IN = 1 << 0,     // takes a mask: vcc, or the third source where it is encoded
    OP_MASK_OUT = 1 << 1,    // gives a mask
    OP_EXEC_OUT = 1 << 2,    // gives the mask to exec too
    OP_VCC_IN = 1 << 3,      // takes vcc as its mask in every encoding
    OP_READS_DST = 1 << 4,   // the third source is the destination
    OP_LITERAL_B = 1 << 5,   // a literal follows and is the second source
    OP_LITERAL_C = 1 << 6,   // a literal follows and is the third source
    OP_KEEP_HIGH = 1 << 7,   // a 16-bit result leaves the other half alone
    OP_SCALAR_DST = 1 << 8,  // the destination of a vector instruction is a scalar register
    OP_SATURATES = 1 << 9,   // clamp means saturation, which the operation after this one does
    OP_MATRIX = 1 << 10,     // of the encoding of matrix instructions
    OP_FLOAT = 1 << 11,      // rounds and flushes, though its types do not tell
    OP_BITS = 1 << 12,       // neither, though its types are those of numbers
    OP_MODE_IN = 1 << 13,    // takes the mode register as its mask
    OP_KEEP_BYTES = 1 << 14, // a byte of the result goes where opsel says; the others stay
    OP_OF_BYTES = 1 << 15,   // converts a byte or two of its source
};

// What an operation is, apart from its number.
struct op {
    const char *name;
    run_fn *run;
    lanes_fn *lanes;
    uint8_t dst, src[3]; // type_t
    uint16_t flags;
    uint16_t detail; // for run
};

typedef enum { FROM_NOTHING, FROM_VECTOR, FROM_SCALAR, FROM_CONSTANT, FROM_STATUS } from_t;

// Where a source comes from. A constant is in insn_t.value; status is vccz, execz or scc.
typedef struct {
    uint8_t from; // from_t
    uint8_t words;
    uint16_t index;
} source_t;

typedef struct {
    uint8_t neg, abs; // bit per source
    uint8_t omod, clamp;
    uint8_t opsel;     // bit per source, bit 3: destination
    uint8_t sdwa, dpp; // encodings with an extra word
    uint8_t dst_sel, dst_unused, src_sel[2], src_sext[2];
    uint8_t row_mask, bank_mask, bound_zero;
    uint16_t dpp_control;
} modifiers_t;

struct insn {
    run_fn *run;
    run_fn *plain; // of float operations and those on buffers: as it runs usually
    lanes_fn *lanes;
    const op_t *op;       // NULL where the number is unknown
    const char *name;     // as the assembler calls it; NULL where it does not know it either
    const insn_t *target; // of a branch, once it was taken
    union {
        uint64_t bits;         // for scalar instructions
        const uint32_t *lanes; // for vector instructions: the constant for each lane, twice
    } value[3];
    source_t src[3];
    uint16_t dst;  // first register
    uint16_t sdst; // where a mask goes
    uint16_t mask; // where a mask comes from
    uint8_t words; // of code
    uint8_t dst_words;
    uint32_t raw[2];
    int32_t offset;   // immediate of branches and memory instructions
    uint16_t address; // first register of an address or resource
    uint16_t data[2]; // registers to be stored
    uint16_t scalar;  // register that is added to an address
    uint8_t segment;  // encoding_t of a memory instruction
    uint8_t has_scalar, has_vector, has_index, returns;
    modifiers_t mod;
};

typedef enum {
    WAVE_RUNNING,
    WAVE_AT_BARRIER,
    WAVE_YIELDED,
    WAVE_DONE,
    WAVE_FAULTED,
} wave_state_t;

struct wave {
    uint32_t v[VGPR_COUNT][LANES] __attribute__((aligned(64)));
    uint32_t operand[3][2 * LANES] __attribute__((aligned(64))); // broadcast or modified sources
    uint32_t result[4 * LANES] __attribute__((aligned(64)));     // before it is merged
    uint32_t lane_mask[LANES] __attribute__((aligned(64)));      // exec as of mask_for, all bits
    uint32_t s[SGPR_COUNT] __attribute__((aligned(64)));
    uint64_t mask_for;
    uint32_t scc;
    uint32_t mode;   // as wave_set_mode left it
    bool plain_mode; // rounds to nearest and keeps denormals
    wave_state_t state;
    const insn_t *pc; // while it does not run
    unsigned number;  // in its workgroup
    uint64_t group;   // number of that
    int budget;       // branches until others get their turn
    bool gws_waits;   // at a barrier of the GPU, in this phase of it
    uint32_t gws_phase;
    bool stores_pending;
    bool stored;  // stores of this turn have been waited for
    isa_t *isa;   // borrowed
    uint8_t *lds; // borrowed; of the workgroup
    uint32_t lds_size;
    uint8_t *scratch;      // borrowed; interleaved by lane, as the hardware does
    uint64_t scratch_base; // its address as the kernel computes it
    uint32_t scratch_size; // per lane
    unsigned unit;         // where its workgroup runs
};

static inline uint64_t wave_s64(const wave_t *w, unsigned n)
{
    uint64_t value;
    memcpy(&value, &w->s[n], sizeof value);
    return value;
}

static inline void wave_set_s64(wave_t *w, unsigned n, uint64_t value)
{
    memcpy(&w->s[n], &value, sizeof value);
}

// The mode register: how floats round (bits 0 to 3) and which denormals stay (4 to 7).
static inline void wave_set_mode(wave_t *w, uint32_t mode)
{
    w->mode = mode;
    w->plain_mode = (mode & 0xff) == 0xf0;
}

static inline uint64_t wave_exec(const wave_t *w)
{
    return wave_s64(w, SGPR_EXEC);
}

// All bits of the lanes that are set in a mask, for each lane.
void lanes_expand(uint32_t *out, uint64_t mask);

// exec in that form.
static inline const uint32_t *wave_lane_mask(wave_t *w)
{
    uint64_t exec = wave_exec(w);
    if (w->mask_for != exec) {
        lanes_expand(w->lane_mask, exec);
        w->mask_for = exec;
    }
    return w->lane_mask;
}

// A loop over the lanes l of a mask.
#define EACH_ACTIVE_LANE(exec)                                                                     \
    for (uint64_t rest = (exec), l; rest && (l = (uint64_t)__builtin_ctzll(rest), true);           \
         rest &= rest - 1)

static inline const insn_t *insn_next(const insn_t *i)
{
    return i + i->words;
}

#endif
