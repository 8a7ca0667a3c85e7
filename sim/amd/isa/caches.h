// SPDX-License-Identifier: Apache-2.0
// Weak memory: the caches of a GPU, and the vector memory operations that are under way in it.
//
// It follows the memory model that LLVM documents for these GPUs (AMDGPUUsage, "Memory Model"),
// without tgsplit, and is as late and as disorderly as that allows, by a random seed. Values take
// this way; the numbers are those of the paragraphs below:
//
//     wave -- operations under way (1) -- vector L1 (2) --+
//     wave -- scalar cache (3) ---------------------------+-- L2 (4) -- memory -- host, copies
//
// 1. A vector load, store or atomic is issued and waits in a list of its compute unit, of which
//    which has all waves of a workgroup. It is performed at any later time,
//    in any order, but s_waitcnt vmcnt(n) waits until all but the n youngest of the wave are, and
//    only then are registers written: waves complete them in order. Operations of one unit on the
//    same place are performed as they were issued, so waves of one unit agree with each other
//    without any fence. A wave that ends leaves its stores behind.
// 2. Each unit keeps lines that it has read, until an acquire (buffer_wbinvl1*, buffer_inv sc1),
//    until another line takes its place, or by chance. Loads with glc (on gfx942 sc1) go past it.
//    Stores go through it and change the unit's own copy; atomics go past it and drop it.
// 3. Scalar loads and stores have a cache of their own for each UNITS_TOGETHER units of a die,
// which knows
//    nothing of the others. s_dcache_inv drops it, s_dcache_wb makes its stores visible.
// 4. All units share the L2, where atomics take place; the dies of a gfx942 share one, too. Of
//    fine-grained memory it keeps nothing. Of coarse-grained memory it keeps what was stored until
//    it is written back: at a release at system scope (by the packet, by buffer_wbl2, on gfx942
//    with sc0 and sc1), or when another line takes its place. Until then neither the host nor
//    another GPU nor a copy engine sees it. It also keeps what was read until an acquire at system
//    scope (by the packet, buffer_invl2, buffer_inv sc0 sc1), except that from gfx90a on it notices
//    when others write to the GPU's own memory.
//
// A packet's acquire at agent scope drops all L1 and scalar caches, at system scope what the L2
// has read too; its release at agent scope performs the stores that ended waves have left, at
// system scope it writes the L2 back too. With no scope nothing happens, and the stores are
// performed some time later. A workgroup that is switched out completes what it has under way, and
// finds nothing in the caches of the unit where it goes on. What is done in LDS and scratch is done
// at once, and counts for s_waitcnt like the rest; scalar loads happen at once.
//
// Each interpreter that has caches shares those of its node; a lock of theirs is held for each
// operation. Addresses are those of the device.
#ifndef SIM_AMD_ISA_CACHES_H_
#define SIM_AMD_ISA_CACHES_H_

#include "amd/isa/state.h"

enum { UNITS_TOGETHER = 2 };

typedef struct caches caches_t;

// What an operation under way does to memory. A write-back waits for all that was issued before it
// in its unit.
typedef enum { ACCESS_LOAD, ACCESS_STORE, ACCESS_ATOMIC, ACCESS_WRITE_BACK } access_kind_t;

// Changes a place in memory and returns what was there; operands are the words of a lane.
typedef uint64_t change_fn(void *place, const uint32_t *operands);

// A vector memory operation under way. The caller of caches_issue fills in what is above the line.
typedef struct access {
    access_kind_t kind;
    bool past_l1;
    uint8_t size;      // bytes that each lane touches
    uint16_t dst;      // first register that it writes when it is complete
    const op_t *op;    // which tells how
    change_fn *change; // of an atomic
    bool returns;      // an atomic with a result
    bool to_lds;       // a load whose words go to the workgroup's memory, where words says
    uint32_t words;    // the first lane's; the others follow
    uint64_t lanes;    // that take part
    uint64_t address[LANES];
    uint32_t data[LANES][4]; // to be stored, operands, or what was read
    // ---
    const wave_t *wave; // that waits for it; NULL: it has ended
    bool performed;
    uint64_t low, high; // addresses that it touches lie in [low, high)
    struct access *next;
} access_t;

// The caches of a node, made when the first interpreter asks for them, then with this seed. NULL
// when memory is short. The last caches_leave performs and writes back everything.
caches_t *caches_join(unsigned node, gfx_t gfx, uint64_t seed);
void caches_leave(caches_t *caches);

// The number of a unit, any of them.
unsigned caches_any_unit(caches_t *caches);

// An operation for the caller to fill in and to issue for a wave, or NULL when memory is short.
access_t *caches_prepare(caches_t *caches);
void caches_issue(caches_t *caches, const wave_t *wave, access_t *access);

// The oldest operation of a wave if more than so many are under way, performed and taken out, else
// NULL. The caller hands it back with caches_recycle.
access_t *caches_complete(caches_t *caches, const wave_t *wave, unsigned most);
void caches_recycle(caches_t *caches, access_t *access);

// The wave ends: its loads are dropped, its stores and atomics left to themselves.
void caches_end(caches_t *caches, const wave_t *wave);

// Time goes by: something that is under way may be performed. True when the wave that asks should
// let others go on, so that they meet in the middle of what they do.
bool caches_tick(caches_t *caches);

// What ended waves have left in a unit is performed, and its scalar stores are in the L2.
void caches_settle(caches_t *caches, unsigned unit);

// What the cache instructions of a wave do.
void caches_drop_l1(caches_t *caches, unsigned unit);
void caches_drop_l2(caches_t *caches);
void caches_drop_scalar(caches_t *caches, unsigned unit);
void caches_write_scalar(caches_t *caches, unsigned unit);

// Scalar loads and stores, of any size inside of one span.
void caches_scalar_read(caches_t *caches, unsigned unit, uint64_t address, void *out, size_t size);
void caches_scalar_write(caches_t *caches, unsigned unit, uint64_t address, const void *from,
                         size_t size);

// Reads as the L2 sees it: code, and descriptors of kernels.
void caches_fetch(caches_t *caches, uint64_t address, void *out, size_t size);

// Performs everything and leaves nothing in any cache.
void caches_flush(caches_t *caches);

// Completes everything that a wave has under way.
void weak_complete(wave_t *wave);

// The function that runs an instruction on caches; its operation's own where memory is not touched.
run_fn *weak_run(const insn_t *i);

#endif
