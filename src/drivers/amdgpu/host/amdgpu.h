// SPDX-License-Identifier: Apache-2.0
// The driver of AMD's GPUs over HSA. docs/amdgpu.md says how the model maps to HSA's.
//
//     driver.c      finding and opening devices
//     agent.c       what HSA says of a GPU; group.c: that several can be one device
//     caps.c        what a device is and can
//     memory.c      memory for the driver itself; chunk.c: what that is cut from
//     buffer.c      buffers in HSA's pools, and imports; pages.c: memory of the application
//     device.c      which GPUs a device has, and whether it has failed
//     ring.c        HSA queues: their rings, and packets in there
//     flight.c      runs whose packets are in a ring, and their completion
//     queue.c       Keel's queues, and who goes on with what is submitted to them
//     run.c         a submission: what becomes of each command
//     launch.c      kernels as packets
//     issue.c       commands as kernels; dispatch.c: kernels and their arguments
//     peek.c        words of the device's memory that the host must know
//     executable.c  code objects; builtin.c: the driver's own kernels
//     clock.c       the clock of the GPU
//     across.c      copies to and from memory of other devices
//     share.c       memory by descriptors, and HSA's own objects
//     stamp.c       when packets ran, for a trace
//     worker.c      the device's thread, and the end of a device whose queue has failed
//     fault.c       memory faults
#ifndef KEEL_SRC_DRIVERS_AMDGPU_HOST_AMDGPU_H_
#define KEEL_SRC_DRIVERS_AMDGPU_HOST_AMDGPU_H_

#include <keel/driver/driver.h>

#include "base/aio.h"
#include "base/lock.h"
#include "drivers/amdgpu/host/symbols.h"
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

typedef struct amdgpu_queue_t {
    keel_queue_t base;
    hsa_queue_t *queue;               // owned
    struct ring_queue_t *shared;      // owned: for a scheduler on the GPU; NULL: there is none
    struct amdgpu_control_t *control; // that scheduler
    block_t *advances;                // owned: what it has of the queue
    struct amdgpu_queue_t *next;      // of those that it has
    run_queue_t runs;
} amdgpu_queue_t;

// A submission that was started: its commands become packets.
struct amdgpu_run_t {
    run_t base;
    bool flying;         // its last packet was written, and the signal tells when it is over
    bool unwatched;      // by HSA, so the device's thread looks at the signal; under the lock
    uint32_t packets;    // in the ring
    bool behind;         // of these, one has the barrier bit and others in front of it
    hsa_signal_t signal; // owned; 0: none yet
    struct {
        amdgpu_run_t *next, **link;
    } flight;                // in amdgpu_device_t.flights, or in the scheduler's runs
    block_t *blocks;         // owned: what packets in the ring read
    struct record_t *record; // what the scheduler on the GPU has; NULL: it is the host's
    bool over;               // the GPU has ended the record; set where it is traced
    struct late_t *lates;    // of the record
    block_t *staging;        // owned: what is needed until the end
    uint32_t *peek;          // in staging: three words; NULL: none yet
    uint64_t peek_at;
    struct {
        const keel_command_t *command; // that packets are being made for; NULL: they are not traced
        const keel_cmd_execute_t *execute;
        uint32_t packets; // of it so far
        amdgpu_stamp_t *newest;
    } stamps;
};

static inline amdgpu_device_t *amdgpu_device(const keel_device_t *device)
{
    return (amdgpu_device_t *)(void *)device;
}

static inline amdgpu_queue_t *amdgpu_queue(const keel_queue_t *queue)
{
    return (amdgpu_queue_t *)(void *)queue;
}

static inline amdgpu_device_t *amdgpu_run_device(const amdgpu_run_t *run)
{
    return amdgpu_device(run->base.submission.queue->device);
}

// Which GPU of its device a run is for.
static inline uint32_t amdgpu_run_node(const amdgpu_run_t *run)
{
    return run->base.submission.queue->info.node;
}

// Memory that packets of the run read, which both see, until they have ended.
KEEL_MUST_USE static inline keel_status_t amdgpu_run_piece(amdgpu_run_t *run, uint64_t size,
                                                           void **data, uint64_t *address)
{
    return blocks_piece(&amdgpu_run_device(run)->blocks, NULL, &run->blocks, size ? size : 1, data,
                        address);
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

// chunk.c
// Memory of a pool, which all GPUs of the device may use.
keel_status_t amdgpu_pool_allocate(amdgpu_device_t *device, hsa_amd_memory_pool_t pool,
                                   uint64_t size,
                                   KEEL_AMDGPU_DEVICE_PTR void **memory) KEEL_MUST_USE;
// Of blocks of these two sizes.
void amdgpu_chunks_init(amdgpu_chunks_t *chunks, amdgpu_device_t *device,
                        hsa_amd_memory_pool_t pool, uint64_t small, uint64_t large);
// Memory of at least `size` bytes: a block, or what HSA makes for it alone. Any thread.
keel_status_t amdgpu_chunks_take(amdgpu_chunks_t *chunks, uint64_t size,
                                 KEEL_AMDGPU_DEVICE_PTR void **memory) KEEL_MUST_USE;
void amdgpu_chunks_give_back(amdgpu_chunks_t *chunks, KEEL_AMDGPU_DEVICE_PTR void *memory);
// Gives HSA the chunks that no block is taken of. Any thread.
void amdgpu_chunks_trim(amdgpu_chunks_t *chunks);
// The same, and from now on each as soon as its last block comes back.
void amdgpu_chunks_close(amdgpu_chunks_t *chunks);

// memory.c
// Of a device whose GPUs, and their pools, are known.
keel_status_t amdgpu_memory_start(amdgpu_device_t *device) KEEL_MUST_USE;
// What is still taken goes when it comes back. Also after a failed start.
void amdgpu_memory_close(amdgpu_device_t *device);
// What the driver keeps of a pool for later goes back. Any thread.
void amdgpu_memory_trim(amdgpu_device_t *device, hsa_amd_memory_pool_t pool);
// Memory of a GPU's own.
keel_status_t amdgpu_local_alloc(amdgpu_device_t *device, uint32_t node, uint64_t size,
                                 uint64_t *address) KEEL_MUST_USE;
void amdgpu_local_free(amdgpu_device_t *device, uint32_t node, uint64_t address, uint64_t size);

// pages.c
extern const pages_ops_t amdgpu_pages_ops;

// buffer.c
keel_status_t amdgpu_buffer_alloc(keel_buffer_t *buffer);
void amdgpu_buffer_free(keel_buffer_t *buffer);
keel_status_t amdgpu_buffer_import(keel_buffer_t *buffer);
void amdgpu_buffer_forget(keel_buffer_t *buffer);

// ring.c
// An HSA queue of a GPU, for packets of several threads.
keel_status_t amdgpu_ring_make(amdgpu_device_t *device, uint32_t node, uint32_t size,
                               hsa_queue_t **queue) KEEL_MUST_USE;
// Destroys a queue that amdgpu_ring_make has made. Not on a thread of HSA's.
void amdgpu_ring_destroy(amdgpu_device_t *device, hsa_queue_t *queue);
// A queue that amdgpu_ring_make has made has failed; HSA calls this.
void amdgpu_queue_failed(hsa_status_t status, hsa_queue_t *queue, void *device);
// Writes a packet of 64 bytes: `header` is its first four. Returns its number.
uint64_t amdgpu_packet_write(const hsa_symbols_t *hsa, hsa_queue_t *queue, const void *packet,
                             uint32_t header);
// Until the packet of a signal has ended. False: the device has failed, and it may never end.
bool amdgpu_signal_await(amdgpu_device_t *device, hsa_signal_t signal);
// Whether a tool stands between the queue and the hardware; or the GPU is too old for a doorbell
// that the GPU itself could ring.
bool amdgpu_queue_is_watched(const hsa_queue_t *queue);
// How packets are written into a queue without HSA's functions. KEEL_UNSUPPORTED: a tool watches
// it.
keel_status_t amdgpu_queue_describe(hsa_queue_t *queue, uint32_t room,
                                    struct ring_queue_t *ring) KEEL_MUST_USE;
// That the rings of queues lie in the GPU's own memory, or in the host's, as wanted.
// KEEL_UNSUPPORTED.
keel_status_t amdgpu_rings_check(amdgpu_device_t *device, bool wanted) KEEL_MUST_USE;

// queue.c
keel_status_t amdgpu_queue_create(keel_device_t *device, const keel_queue_options_t *options,
                                  keel_queue_t **queue);
void amdgpu_queue_destroy(keel_queue_t *queue);
void amdgpu_queue_submit(keel_queue_t *queue, keel_submission_t *submission);

// flight.c
// A signal for the run, before its first packet.
keel_status_t amdgpu_signal_need(amdgpu_run_t *run) KEEL_MUST_USE;
void amdgpu_signals_destroy(amdgpu_device_t *device);
// Keeps a list of blocks that the GPU may still write to, until the device goes. Any thread.
void amdgpu_late_keep(amdgpu_device_t *device, block_t *list);
// The run is over: gives back what it has.
void amdgpu_run_finish(run_t *run);
// Writes the last packet and tells the GPU, if there are any; the run waits for it.
void amdgpu_commit(run_t *run);
// The packets have ended: takes back what they needed.
void amdgpu_settle(run_t *run);
// Ends those that have ended and that HSA does not watch. True: there are some to look for again.
// The device's thread.
bool amdgpu_flights_look(amdgpu_device_t *device);
// The oldest submission of the queue whose packets are in its ring; 0: none are.
uint64_t amdgpu_flight_first(amdgpu_device_t *device, const keel_queue_t *queue);
// The device is lost: the host ends what is in its rings.
void amdgpu_flights_end(amdgpu_device_t *device);

// run.c
extern const run_ops_t amdgpu_run_ops;
void amdgpu_host_start(keel_submission_t *submission); // the host walks over it; the waits are over

// launch.c
// The scopes of a packet's fences, in its header. docs/amdgpu.md says which packet needs which.
enum {
    AMDGPU_ACQUIRE = 3 << HSA_PACKET_HEADER_SCACQUIRE_FENCE_SCOPE, // the bits
    AMDGPU_RELEASE = 3 << HSA_PACKET_HEADER_SCRELEASE_FENCE_SCOPE,
    AMDGPU_ACQUIRE_AGENT = HSA_FENCE_SCOPE_AGENT << HSA_PACKET_HEADER_SCACQUIRE_FENCE_SCOPE,
    AMDGPU_ACQUIRE_SYSTEM = HSA_FENCE_SCOPE_SYSTEM << HSA_PACKET_HEADER_SCACQUIRE_FENCE_SCOPE,
    AMDGPU_RELEASE_AGENT = HSA_FENCE_SCOPE_AGENT << HSA_PACKET_HEADER_SCRELEASE_FENCE_SCOPE,
    AMDGPU_RELEASE_SYSTEM = HSA_FENCE_SCOPE_SYSTEM << HSA_PACKET_HEADER_SCRELEASE_FENCE_SCOPE,
};
// A kernel with `size` bytes of arguments, for which it has a copy made.
typedef struct amdgpu_launch_t {
    const amdgpu_kernel_t *kernel;
    uint32_t groups[3], group_size[3];
    uint32_t local; // bytes of memory of a workgroup, in all
    const void *arguments;
    uint32_t size;
} amdgpu_launch_t;
// The packet of a launch whose arguments lie at an address; the header has the fences, and no
// barrier.
void amdgpu_packet_make(const amdgpu_launch_t *launch, uint64_t arguments, uint32_t fences,
                        hsa_kernel_dispatch_packet_t *packet);
// Writes its packet, for a run that has room for one.
keel_status_t amdgpu_launch(amdgpu_run_t *run, const amdgpu_launch_t *launch) KEEL_MUST_USE;

// issue.c
// A command that the GPU does, for a run that has room for a packet.
keel_status_t amdgpu_issue(amdgpu_run_t *run, const keel_command_t *command,
                           const keel_cmd_execute_t *execute) KEEL_MUST_USE;
keel_status_t amdgpu_issue_copy(amdgpu_run_t *run, const bound_copy_t *copy) KEEL_MUST_USE;

// dispatch.c
// That HSA can count the work-items.
keel_status_t amdgpu_grid_check(const amdgpu_launch_t *launch) KEEL_MUST_USE;
// The block of a kernel made elsewhere, of AMDGPU_MAX_ARGUMENTS bytes: what the dispatch gives, and
// behind it what the grid of the launch says, where the kernel looks for it. Sets launch->size.
keel_status_t amdgpu_raw_block(const binder_t *binder, const keel_cmd_dispatch_t *command,
                               amdgpu_launch_t *launch, unsigned char *block) KEEL_MUST_USE;
keel_status_t amdgpu_dispatch(amdgpu_run_t *run, const keel_cmd_dispatch_t *command,
                              const keel_cmd_execute_t *execute) KEEL_MUST_USE;

// peek.c
// The words that the host must know before it goes on with a command; NULL: none, or they came with
// the execution.
const keel_ref_t *amdgpu_peek_ref(const keel_command_t *command);
// Whether the host sees them by itself.
keel_status_t amdgpu_peek_sees(const keel_ref_t *ref, const keel_cmd_execute_t *execute,
                               bool *sees) KEEL_MUST_USE;
// Has the GPU copy them to where it does, for a run that has room for a packet.
keel_status_t amdgpu_peek(amdgpu_run_t *run, const keel_ref_t *ref,
                          const keel_cmd_execute_t *execute) KEEL_MUST_USE;

// builtin.c
keel_status_t amdgpu_builtins_load(amdgpu_device_t *device) KEEL_MUST_USE;
// The same, of a device library that is given. KEEL_UNSUPPORTED for one of another version.
keel_status_t amdgpu_library_load(amdgpu_device_t *device, const void *data,
                                  size_t size) KEEL_MUST_USE;
void amdgpu_builtins_unload(amdgpu_device_t *device);

// clock.c
keel_status_t amdgpu_device_clock(keel_device_t *device, uint64_t *now_ns);
// Has the GPU take no more packets of what is beside the queues: the device is lost.
void amdgpu_side_inactivate(amdgpu_device_t *device);
void amdgpu_side_close(amdgpu_device_t *device);

// executable.c
uint32_t amdgpu_executable_rank(keel_device_t *device, keel_image_kind_t kind, const char *target);
keel_status_t amdgpu_executable_load(keel_device_t *device, const keel_image_t *image,
                                     keel_executable_t **executable);
void amdgpu_executable_unload(keel_executable_t *executable);
keel_status_t amdgpu_executable_global(keel_executable_t *executable, const char *name,
                                       keel_external_buffer_t *where);
keel_status_t amdgpu_executable_write(keel_executable_t *executable,
                                      const keel_external_buffer_t *where, const void *data);
extern const cache_class_t amdgpu_module_class;
// Loads a code object, or that of a bundle which is for the device.
keel_status_t amdgpu_code_load(amdgpu_device_t *device, const void *data, size_t size,
                               hsa_executable_t *executable) KEEL_MUST_USE;
keel_status_t amdgpu_kernel_find(amdgpu_device_t *device, hsa_executable_t executable,
                                 const char *name, amdgpu_kernel_t *kernel) KEEL_MUST_USE;
// Where a variable is on the first node.
keel_status_t amdgpu_variable_find(amdgpu_device_t *device, hsa_executable_t executable,
                                   const char *name, uint64_t *address) KEEL_MUST_USE;

// stamp.c
// Whether the device is traced; before its first queue.
void amdgpu_trace_open(amdgpu_device_t *device);
// Packets of the run are made for a command from here on; NULL: for none.
void amdgpu_stamps_of(amdgpu_run_t *run, const keel_command_t *command,
                      const keel_cmd_execute_t *execute);
// Has a packet tell its times, if it is made for a command and the device is traced.
void amdgpu_stamp(amdgpu_run_t *run, hsa_kernel_dispatch_packet_t *packet);
// The packets of the run have ended: puts their times into the trace. False: the times of some have
// not come, and the GPU may still write them into the run's blocks.
bool amdgpu_stamps_record(amdgpu_run_t *run);

// across.c
// Whether the GPU comes to the memory of another device, which is of this driver.
bool amdgpu_device_peers(keel_device_t *device, keel_device_t *other);
// run_ops_t; room for AMDGPU_PIECES packets is there.
keel_status_t amdgpu_across(run_t *run, const keel_cmd_across_t *c,
                            run_across_t *how) KEEL_MUST_USE;
keel_status_t amdgpu_peer(keel_device_t *device, const keel_cmd_across_t *c) KEEL_MUST_USE;

// share.c
keel_status_t amdgpu_buffer_export(keel_buffer_t *buffer, keel_external_buffer_t *external);
keel_status_t amdgpu_import_descriptor(keel_buffer_t *buffer) KEEL_MUST_USE;
void amdgpu_descriptor_forget(keel_buffer_t *buffer);
bool amdgpu_device_native(keel_device_t *device, keel_queue_t *queue, keel_native_t kind,
                          uint64_t *handle);

// fault.c
// Has memory faults of the GPU end the device, until it is closed.
void amdgpu_fault_watch(amdgpu_device_t *device);
void amdgpu_fault_forget(amdgpu_device_t *device);
// HSA tells of a fault; on a thread of HSA's.
hsa_status_t amdgpu_fault(const hsa_amd_event_t *event, void *symbols);

// worker.c
uint64_t amdgpu_worker(void *device); // the work of the device's thread

#endif
