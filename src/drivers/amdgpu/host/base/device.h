// SPDX-License-Identifier: Apache-2.0
// What all rooms know of a device and of its GPUs.
//
//     device.c      which GPUs a device has, and whether it has failed
//     symbols.c     HSA's functions
//     fault.c       memory faults
//     agent.c       what HSA says of a GPU; group.c: that several can be one device
//     caps.c        what a device is and can
#ifndef KEEL_SRC_DRIVERS_AMDGPU_HOST_BASE_DEVICE_H_
#define KEEL_SRC_DRIVERS_AMDGPU_HOST_BASE_DEVICE_H_

#include <keel/driver/driver.h>

#include "base/aio.h"
#include "base/lock.h"
#include "drivers/amdgpu/host/base/symbols.h"
#include "executable/cache.h"
#include "kit/across.h"
#include "kit/blocks.h"
#include "kit/chores.h"
#include "kit/device.h"
#include "kit/pages.h"
#include "kit/run.h"
#include "kit/transfer.h"

// For what a pointer points to, if that may be memory of the GPU's own, which the host does not
// see: KEEL_AMDGPU_DEVICE_PTR char *p. Clang refuses to read or write there. Addresses of such
// memory that are for the GPU alone are numbers.
#if defined __clang__
#define KEEL_AMDGPU_DEVICE_PTR __attribute__((noderef))
#else
#define KEEL_AMDGPU_DEVICE_PTR
#endif

enum {
    AMDGPU_SEGMENT = 256,                            // packets that a run has in the ring at a time
    AMDGPU_SLOTS = 16,                               // such segments of a queue; more of them wait
    AMDGPU_RING = 2 * AMDGPU_SLOTS * AMDGPU_SEGMENT, // packets
    AMDGPU_SIGNALS = 64,                             // that a device keeps for later
    AMDGPU_MAX_BINDINGS = 64,
    AMDGPU_MAX_CONSTANTS = 1024,
    AMDGPU_MAX_ARGUMENTS = 4096,
    AMDGPU_ALIGNMENT = 256,
    AMDGPU_PAGE = 4096,  // what HSA aligns memory to
    AMDGPU_PIECES = 64,  // packets of a copy to another device, at most
    AMDGPU_NODES = 8,    // GPUs of a device, at most
    AMDGPU_CONTROLS = 4, // schedulers of a GPU, at most
    AMDGPU_TRACE_SLOTS = 8192,
};

typedef enum amdgpu_builtin_t {
    AMDGPU_TIMESTAMP,
    AMDGPU_FILL,
    AMDGPU_COPY,
    AMDGPU_BUILTINS
} amdgpu_builtin_t;

// An argument of a kernel made elsewhere that its caller does not give.
typedef enum amdgpu_hidden_kind_t {
    AMDGPU_BLOCK_COUNT_X, // u32 each, as the next two
    AMDGPU_BLOCK_COUNT_Y,
    AMDGPU_BLOCK_COUNT_Z,
    AMDGPU_GROUP_SIZE_X, // u16 each, as the next two
    AMDGPU_GROUP_SIZE_Y,
    AMDGPU_GROUP_SIZE_Z,
    AMDGPU_GRID_DIMS, // u16
    AMDGPU_HIDDEN_KINDS
} amdgpu_hidden_kind_t;

typedef struct amdgpu_kernel_t {
    uint64_t object;                   // of HSA, on the first node
    uint64_t others[AMDGPU_NODES - 1]; // on the nodes behind it
    uint32_t arguments;                // bytes of the kernel's block, with those that are hidden
    uint32_t group, item;              // bytes of memory of a workgroup, and of a work-item
    bool raw;                          // dispatches give the block, or what stands at its beginning
    // Bytes at the block's beginning that are the dispatch's to give; UINT32_MAX: all that it has.
    uint32_t given;
    uint32_t hidden;                      // bits of amdgpu_hidden_kind_t: those that it takes
    uint32_t places[AMDGPU_HIDDEN_KINDS]; // where in the block they are
    _Atomic uint32_t traced;              // its name in a trace; 0: none so far
} amdgpu_kernel_t;

typedef struct amdgpu_run_t amdgpu_run_t;
typedef struct amdgpu_stamp_t amdgpu_stamp_t;         // stamp.c
typedef struct amdgpu_scheduler_t amdgpu_scheduler_t; // scheduler.h

typedef struct amdgpu_device_t amdgpu_device_t;

// Memory of one of HSA's pools, in chunks that are cut into blocks: small ones, and large ones.
enum { AMDGPU_BUCKETS = 2 };
typedef struct amdgpu_chunk_t amdgpu_chunk_t;
typedef struct amdgpu_chunks_t {
    amdgpu_device_t *device;
    hsa_amd_memory_pool_t pool;
    uint64_t size;                        // of a chunk
    uint64_t block_sizes[AMDGPU_BUCKETS]; // in bytes
    lock_t lock;                          // for what is below
    amdgpu_chunk_t *buckets[AMDGPU_BUCKETS];
    bool keeps; // a chunk of each bucket that no block is taken of
} amdgpu_chunks_t;

// A GPU of a device.
typedef struct amdgpu_node_t {
    int ordinal; // of HSA
    hsa_amd_memory_pool_t local;
    uint64_t memory;        // bytes of `local`
    _Atomic uint64_t taken; // of these, by buffers and programs of the device
    amdgpu_chunks_t chunks; // of `local`
} amdgpu_node_t;

struct amdgpu_device_t {
    keel_device_t base;
    keel_device_ops_t ops;    // what `base` has
    const hsa_symbols_t *hsa; // borrowed: they stay
    hsa_agent_t agent, cpu;   // of the first node
    uint32_t node_count;
    hsa_agent_t agents[AMDGPU_NODES];
    amdgpu_node_t nodes[AMDGPU_NODES];
    hsa_amd_memory_pool_t shared; // of the host, where both write
    uint32_t clock_khz;           // of the clock that kernels read
    bool traced;                  // each packet of a command tells its times
    uint32_t trace_slots;         // of a trace ring
    uint64_t system_hertz;        // of the times that HSA converts those to
    hsa_executable_t library;     // the driver's own kernels
    bool has_library;
    amdgpu_kernel_t builtins[AMDGPU_BUILTINS];
    amdgpu_scheduler_t *scheduler; // owned; NULL: the host schedules
    amdgpu_chunks_t chunks;        // of `shared`
    blocks_t blocks;               // of `chunks`
    cache_t modules;
    pages_user_t pages;
    keel_dlpack_place_t dlpack[AMDGPU_NODES + 3];
    runs_t runs;
    _Atomic(keel_status_t) failed;        // why a queue has ended; owned
    _Atomic bool whole;                   // it had a queue; the worker does nothing before that
    bool losing;                          // the worker's
    amdgpu_device_t *next_watched;        // fault.c's list
    _Atomic uint32_t unwatched;           // of the flights; changed under the lock
    lock_t lock;                          // for what is below
    amdgpu_run_t *flights;                // whose packets are in a ring
    hsa_signal_t signals[AMDGPU_SIGNALS]; // owned: for the next runs
    uint32_t signal_count;
    block_t *late;            // owned: amdgpu_late_keep
    lock_t side_lock;         // for what is below
    hsa_queue_t *side;        // for what no submission does; NULL: not yet
    hsa_signal_t late_signal; // owned: of a packet there that had not ended when the device failed
};

static inline amdgpu_device_t *amdgpu_device(const keel_device_t *device)
{
    return (amdgpu_device_t *)(void *)device;
}

static inline uint64_t amdgpu_kernel_object(const amdgpu_kernel_t *kernel, uint32_t node)
{
    return node ? kernel->others[node - 1] : kernel->object;
}

// Whether something failed for want of memory, of the host's or the GPU's.
static inline bool amdgpu_is_no_memory(keel_status_t status)
{
    keel_code_t code = keel_status_code(status);
    return code == KEEL_OUT_OF_MEMORY || code == KEEL_RESOURCE_EXHAUSTED;
}

// device.c
// Whether the GPU is one of the device's.
bool amdgpu_device_has(const amdgpu_device_t *device, hsa_agent_t gpu);
// Has the device's thread end the device. `cause` is consumed. Any thread, HSA's among them.
void amdgpu_device_fail(amdgpu_device_t *device, keel_status_t cause);
// Why the device has ended, as a new reference; NULL: it has not.
keel_status_t amdgpu_lost_cause(amdgpu_device_t *device);

// fault.c
// Has memory faults of the GPU end the device, until it is closed.
void amdgpu_fault_watch(amdgpu_device_t *device);
void amdgpu_fault_forget(amdgpu_device_t *device);
// HSA tells of a fault; on a thread of HSA's.
hsa_status_t amdgpu_fault(const hsa_amd_event_t *event, void *symbols);

// agent.c
// The GPU of that number. KEEL_NOT_FOUND.
keel_status_t amdgpu_agent_find(const hsa_symbols_t *hsa, int ordinal, hsa_agent_t *gpu,
                                hsa_agent_t *cpu) KEEL_MUST_USE;
keel_status_t amdgpu_agents_count(const hsa_symbols_t *hsa, int *count) KEEL_MUST_USE;
keel_status_t amdgpu_agent_memory(const hsa_symbols_t *hsa, hsa_agent_t gpu,
                                  hsa_amd_memory_pool_t *pool, uint64_t *size) KEEL_MUST_USE;
// The pool of the host's memory where both write.
keel_status_t amdgpu_agent_shared(const hsa_symbols_t *hsa, hsa_agent_t cpu,
                                  hsa_amd_memory_pool_t *pool) KEEL_MUST_USE;
// Whether a GPU comes to a pool of another one.
bool amdgpu_pool_is_reached(const hsa_symbols_t *hsa, hsa_agent_t gpu, hsa_amd_memory_pool_t pool);
// What HSA knows of memory.
keel_status_t amdgpu_pointer_ask(const hsa_symbols_t *hsa, const void *memory,
                                 hsa_amd_pointer_info_t *info) KEEL_MUST_USE;
// The same, and the agents that may use it: a list for mem_free.
keel_status_t amdgpu_agents_of(const hsa_symbols_t *hsa, uint64_t address,
                               hsa_amd_pointer_info_t *info, uint32_t *count,
                               hsa_agent_t **agents) KEEL_MUST_USE;
// The name of what the GPU runs: "gfx90a:sramecc+:xnack-".
enum { AMDGPU_TARGET = 64 };
keel_status_t amdgpu_agent_target(const hsa_symbols_t *hsa, hsa_agent_t gpu,
                                  char target[AMDGPU_TARGET]) KEEL_MUST_USE;

// group.c
// That the GPUs of a device can be one: each runs the same code, and uses the memory of the others.
// Fills in their pools.
keel_status_t amdgpu_group_check(amdgpu_device_t *device) KEEL_MUST_USE;

// caps.c
// Fills in clock, information and capabilities of a device whose GPUs and pools are known.
keel_status_t amdgpu_caps_read(amdgpu_device_t *device) KEEL_MUST_USE;

#endif
