// SPDX-License-Identifier: Apache-2.0
// What the files of the interpreter share beyond waves and instructions.
#ifndef SIM_AMD_ISA_STATE_H_
#define SIM_AMD_ISA_STATE_H_

#include <stdatomic.h>

#include "amd/isa/units.h"
#include "amd/isa/wave.h"

enum { BLOCK_WORDS = 1024, SPAN_CACHE = 8 };

// The decoded form of 4 KiB of code. Two more slots lead on to the next block, since the last
// instruction may reach over the end by one word.
typedef struct block {
    uint64_t base;
    struct block *next; // with the same hash; owned
    insn_t insns[BLOCK_WORDS + 2];
} block_t;

typedef struct pool {
    struct pool *next; // owned
    size_t used;
    uint32_t values[64][2 * LANES] __attribute__((aligned(64)));
} pool_t;

enum { BLOCK_HASH = 64, ENCODING_OPS = 1024 };

typedef enum {
    ENC_SOP2,
    ENC_SOPK,
    ENC_SOP1,
    ENC_SOPC,
    ENC_SOPP,
    ENC_SMEM,
    ENC_VOP2,
    ENC_VOP1,
    ENC_VOPC,
    ENC_VOP3,
    ENC_VOP3P,
    ENC_DS,
    ENC_FLAT,
    ENC_GLOBAL,
    ENC_SCRATCH,
    ENC_MUBUF,
    ENC_MTBUF,
    ENC_MIMG,
    ENC_VINTRP,
    ENC_EXP,
    ENC_COUNT,
} encoding_t;

// What one number of an encoding means on a GPU.
typedef struct {
    const char *name; // NULL: nothing
    const op_t *op;   // NULL: not modelled
} opcode_t;

// What sets one kind of GPU apart from the others, beyond the numbers of its instructions.
typedef struct {
    const char *name;
    uint8_t granule;      // vector registers that a kernel's descriptor counts as one
    uint8_t simd_waves;   // that a SIMD holds at a time
    uint16_t simd_rows;   // vector registers that they share
    uint32_t clock_khz;   // of the clock that never changes its pace
    uint8_t dies;         // numbered by HW_REG_XCC_ID
    uint8_t units;        // in all of them
    bool packed_ids;      // a work-item's numbers come in one register
    bool matrices_in_acc; // C and D of matrix instructions are always accumulation registers
    bool acc_in_memory;   // instructions on memory may name accumulation registers
    bool row_broadcast;   // DPP has row_newbcast
    bool own_scratch;     // waves know their scratch, and its instructions if a lane adds to it
    bool double_signs;    // BLGP of double precision negates the matrices
    bool scopes;          // coherence is said by sc0, sc1 and nt
} target_t;

// The facts of a kind of GPU; good for ever.
const target_t *gfx_target(gfx_t gfx);

// Where a workgroup runs. Usually one is enough; those that wait for others make room for them, as
// long as the compute units have some.
typedef struct {
    wave_t *waves; // owned
    unsigned wave_room;
    uint8_t *lds, *scratch; // owned
    uint64_t scratch_room;
    unsigned count;  // of waves; 0: no workgroup is here
    int unit;        // that it runs on; -1 while the host has the waves stopped
    unsigned rounds; // that its waves have had
    unsigned idles;  // of the last of them, in which it was idle
    bool idle;       // in the last round all of them waited, and none changed memory
} room_t;

struct isa {
    gfx_t gfx;
    const target_t *target; // borrowed for ever
    unsigned node;
    isa_host_t host;
    const opcode_t (*opcodes)[ENCODING_OPS]; // one table per encoding; borrowed for ever
    block_t *blocks[BLOCK_HASH];             // owned
    pool_t *pool;                            // owned; constants of decoded instructions
    block_t *last_block;
    span_t span[SPAN_CACHE]; // recently used memory, good while span_generation is current
    uint64_t span_generation;
    unsigned span_next;
    uint64_t code; // of the dispatch that code was decoded for
    fault_t fault;
    uint64_t count;
    uint64_t random; // state of the random order; 0 for none
    room_t *rooms;   // owned
    unsigned room_count;
    int budget;                 // branches that a wave gets at a time
    units_t *units;             // of the GPU
    bool owns_units;            // and no other interpreter's
    atomic_bool placed;         // every workgroup of its dispatch has begun
    const dispatch_t *dispatch; // borrowed while it runs
    struct crew *crew;          // owned; NULL: no other threads
    struct caches *caches;      // shared by the node; NULL: memory is not weak
    uint64_t weak_seed;         // of them
    bool watched, breaks;       // the dispatch is logged or debugged; a debugger stops in it
};

enum { PRELOAD_MAX = 16 };

// The part of a kernel descriptor that matters here.
typedef struct {
    int64_t entry;       // of the code, from the descriptor
    uint32_t resource1;  // float mode
    uint32_t resource2;  // which scalar registers are filled
    uint16_t properties; // which of them the user gets
    // Words of the arguments that are in registers, too, when the kernel begins.
    uint32_t preload[PRELOAD_MAX];
    unsigned preload_count;
} descriptor_t;

// Reads the descriptor of the dispatch's kernel, and the arguments that it wants in registers.
// False after a fault.
bool descriptor_read(isa_t *isa, uint64_t address, descriptor_t *out);

// One workgroup of a dispatch.
typedef struct {
    uint64_t number;
    uint32_t id[3], size[3];
    uint32_t items;
    unsigned waves;
} group_t;

// Gives a wave the registers that it begins with.
void wave_start(isa_t *isa, const room_t *room, const descriptor_t *kernel, const group_t *group,
                unsigned index);

// Records and logs a fault of the dispatch as a whole. Always false.
bool dispatch_fail(isa_t *isa, fault_kind_t kind, const char *text);

// The workgroups of a dispatch, of which every thread takes one after the other. The n-th is
// number first + n step, modulo their number.
typedef struct {
    const dispatch_t *dispatch;
    descriptor_t kernel;
    uint64_t counts[3], total, first, step;
    // The compute units that they may use, of each die that has such: workgroup n is on die n
    // modulo their number.
    uint64_t shares[DIES_MAX];
    unsigned share_count;
    demand_t demand;     // of one workgroup
    atomic_ullong next;  // to be taken
    atomic_bool *placed; // borrowed; of the interpreter that dispatches
    uint64_t seed;       // 0: no random order
    uint64_t weak;       // the seed of weak memory; 0: memory is not
} grid_t;

// Runs workgroups until none is left. False on a fault or when the host says stop; then the others
// take no more either.
bool grid_run(isa_t *isa, grid_t *grid);

// Lets the crew run workgroups too; crew_join waits until it has stopped, and gives the fault of
// one of them, else NULL. Neither does anything without a crew.
void crew_start(struct crew *crew, grid_t *grid);
const fault_t *crew_join(struct crew *crew);
void crew_destroy(struct crew *crew);
uint64_t crew_count(const struct crew *crew);

// Reads code, or what comes with a dispatch, which is at p.
void code_fetch(isa_t *isa, uint64_t address, const void *p, void *out, size_t size);

// Forgets decoded code.
void code_forget(isa_t *isa);

// The tables of a GPU, ENC_COUNT of them; made once.
const opcode_t (*opcode_tables(gfx_t gfx))[ENCODING_OPS];

// The slot of the instruction at an address, decoded or not. NULL after a fault when there is no
// code.
const insn_t *code_at(isa_t *isa, uint64_t address);

// The address of an instruction.
uint64_t code_address(const isa_t *isa, const insn_t *i);

// Goes to another address; NULL after a fault.
const insn_t *wave_jump(wave_t *w, const insn_t *from, uint64_t address);

// Decodes the code of one slot in place. The slot's run is never NULL afterwards.
void insn_decode(isa_t *isa, insn_t *i, const uint32_t *code);

// A decoded instruction as the assembler writes it for this GPU.
void insn_text(const isa_t *isa, const insn_t *i, char *out, size_t size);

// Registers that a source of a matrix instruction takes, or (3) its result.
unsigned matrix_registers(const op_t *op, unsigned which);

// Whether its third source has the indices of a sparse matrix.
bool matrix_sparse(const op_t *op);

// 64 lanes of a constant, and 64 more of its upper word; NULL when memory is short.
const uint32_t *pool_constant(isa_t *isa, uint64_t value);

// Records the first fault, logs it, and stops the wave. Always NULL.
const insn_t *wave_fault(wave_t *w, const insn_t *i, fault_kind_t kind, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

// A memory fault at an address, seen by a lane (negative: by the whole wave). Always NULL.
const insn_t *wave_memory_fault(wave_t *w, const insn_t *i, int lane, uint64_t address);

// The span that holds [address, address + size) and may be touched, else NULL. Good until the next
// call.
const span_t *isa_span(isa_t *isa, uint64_t address, uint64_t size);

// Stops the wave here, to go on at an instruction later. Always NULL.
static inline const insn_t *wave_leave(wave_t *w, const insn_t *next, wave_state_t state)
{
    w->pc = next;
    w->state = state;
    return NULL;
}

// Runs an instruction that is not decoded, not known, or at the end of a block.
const insn_t *run_undecoded(wave_t *w, const insn_t *i);
const insn_t *run_unknown(wave_t *w, const insn_t *i);

// Vector instructions: as they are, with masks, and with modifiers.
const insn_t *run_vector(wave_t *w, const insn_t *i);
const insn_t *run_vector_mask(wave_t *w, const insn_t *i);
const insn_t *run_vector_modified(wave_t *w, const insn_t *i);

// What an operation on a buffer is with the lds bit; NULL when it has none. And the load to a
// register that one to the workgroup's memory is otherwise; any other operation is itself.
const op_t *memory_with_lds(const op_t *op);
const op_t *memory_without_lds(const op_t *op);

// An instruction on a buffer: as it is where all lanes are inside.
const insn_t *run_buffer(wave_t *w, const insn_t *i);

// A float operation: as it is in the usual mode, else with the mode's rounding.
const insn_t *run_float(wave_t *w, const insn_t *i);

// Flushes denormals of a type in w's mode: going into an operation, or coming out of one.
void wave_flush(const wave_t *w, uint32_t *lanes, type_t type, bool out);

// One source over all lanes.
const uint32_t *wave_source(wave_t *w, const insn_t *i, unsigned k);

// Moves w->result into the destination where exec (and more) has a lane.
void wave_merge(wave_t *w, const insn_t *i, uint64_t lanes);

// The operations, each in the file that implements them.
typedef struct {
    const op_t *ops;
    size_t count;
} op_list_t;
extern const op_list_t scalar_ops, scalar_memory_ops, indexing_ops, integer_ops, float_ops,
    half_ops, compare_ops, cross_ops, packed_ops, fp8_ops, matrix_ops, memory_ops, lds_ops,
    lds_rare_ops, gws_ops;

#endif
