// SPDX-License-Identifier: Apache-2.0
// The interpreter: runs one kernel dispatch of a GFX9 GPU, on the calling thread and on others that
// it is told to use. It knows neither queues nor the runtime. An interpreter belongs to one thread
// at a time; several may run at once.
#ifndef SIM_AMD_ISA_ISA_H_
#define SIM_AMD_ISA_ISA_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum { GFX900, GFX906, GFX908, GFX90A, GFX942, GFX_COUNT } gfx_t;

// "gfx90a" and its like; GFX_COUNT for a name that is not among them.
gfx_t gfx_parse(const char *name, size_t length);
const char *gfx_name(gfx_t gfx);

// Dies that a GPU of this kind is made of, among which the workgroups of a dispatch are dealt out,
// and the compute units in all of them. Unit n is in die n modulo the number of dies.
enum { DIES_MAX = 8, UNITS_MAX = 64 };
unsigned gfx_dies(gfx_t gfx);
unsigned gfx_units(gfx_t gfx);
uint64_t gfx_units_all(gfx_t gfx); // a bit for each

// The clock of a GPU that never changes its pace: its rate, and where it stands at that time of
// clock_ns().
unsigned gfx_clock_khz(gfx_t gfx);
uint64_t gfx_ticks(gfx_t gfx, uint64_t ns);

// The upper halves of flat addresses that mean a workgroup's or a lane's own memory.
enum { APERTURE_LDS = 0x10000, APERTURE_SCRATCH = 0x20000 };

enum { LDS_SIZE_MAX = 64 * 1024, WORKGROUP_SIZE_MAX = 1024 };

// The SIMDs of a compute unit, and the waves that each holds at a time.
enum { UNIT_SIMDS = 4 };
unsigned gfx_simd_waves(gfx_t gfx);

typedef enum {
    FAULT_NONE,
    FAULT_INSTRUCTION, // the GPU does not know it, or it is not modelled
    FAULT_MEMORY,      // no such memory, or not for this node
    FAULT_APERTURE,    // beyond the workgroup's or the lane's own memory
    FAULT_TRAP,        // s_trap
} fault_kind_t;

typedef struct {
    fault_kind_t kind;
    uint64_t address; // of the memory
    char text[512];   // kernel, lane, instruction and address, for people
} fault_t;

// A kernel dispatch packet in plain words.
typedef struct {
    uint32_t grid[3]; // work-items; 1 in dimensions that are not used
    uint32_t group[3];
    uint32_t lds_size;
    uint32_t scratch_size; // per work-item
    bool gws;              // it may use the global wave sync
    uint64_t units;        // bit n: may run on compute unit n; 0: on all of them
    uint64_t kernel;       // address of the kernel descriptor
    uint64_t kernarg, packet, queue, id;
    uint64_t code; // what was decoded under another number is forgotten
} dispatch_t;

typedef struct isa isa_t;
typedef struct units units_t;

// What device code may ask of its surroundings.
typedef struct {
    void (*interrupt)(void *user, uint32_t event); // s_sendmsg(MSG_INTERRUPT): wake this event
    bool (*stop)(void *user);                      // true: leave the dispatch, asked now and then
    void (*meanwhile)(void *user); // called now and then, by the thread that dispatches only
    // Around the time in which a thread runs waves, which begins when enter returns. Between two
    // turns of the waves asked says that leave and enter should be called. NULL, all: at any time.
    void (*enter)(void *user);
    void (*leave)(void *user);
    bool (*asked)(void *user);
    void *user;
    units_t *units; // borrowed; that it shares with others; NULL: it has a GPU for itself
} isa_host_t;

// NULL when memory is short. The host is copied; node decides what memory may be touched.
isa_t *isa_create(gfx_t gfx, unsigned node, const isa_host_t *host);
void isa_destroy(isa_t *isa);

// Runs workgroups in an order that follows from the seed, and lets their waves take turns of random
// length in random order. Seed 0: in order, each wave as far as it gets.
void isa_shuffle(isa_t *isa, uint64_t seed);

// Weak memory: from now on waves see memory through the caches of the node, which all its weak
// interpreters share, and what they do to it happens late and in an order that follows from the
// seed that the first of them gave (isa/caches.h). False when memory is short.
bool isa_weak(isa_t *isa, uint64_t seed);

// How far a packet's acquire and release reach, by the numbers of its header.
typedef enum { SCOPE_NONE, SCOPE_AGENT, SCOPE_SYSTEM } scope_t;

// What the acquire and release of a packet do to the caches of a node, whose interpreters must not
// end meanwhile; nothing where no interpreter is weak. When a node has nothing to do, it settles:
// stores that are still under way arrive.
void node_acquire(unsigned node, scope_t scope);
void node_release(unsigned node, scope_t scope);
void node_settle(unsigned node);

// Forgets the caches of all nodes, in a process that was forked off another.
void node_forget(void);

// Runs the workgroups of a dispatch on so many threads at once; more than one are made here and
// end with the interpreter. False when they cannot be had: then it runs on fewer.
bool isa_threads(isa_t *isa, unsigned count);

// Runs until the last wave has ended. False on a fault, which isa_fault then describes, and when
// host->stop said so, with FAULT_NONE.
bool isa_dispatch(isa_t *isa, const dispatch_t *dispatch);

// Whether every workgroup of the dispatch has begun. Any thread may ask.
bool isa_placed(const isa_t *isa);

const fault_t *isa_fault(const isa_t *isa);

// Instructions run since creation, each counted once per wave. Not while a dispatch runs.
uint64_t isa_count(const isa_t *isa);

// The name of the kernel whose descriptor is at an address, or the address.
void kernel_name(uint64_t address, char *out, size_t size);

#endif
