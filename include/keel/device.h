// SPDX-License-Identifier: Apache-2.0
// Devices: finding them, opening them, what they can do.
//
// A device is opened by URI: DRIVER://WHICH?OPTION=VALUE&... An option that the driver does not
// know is an error.
//
//     cpu://           workgroups on worker threads, one per core the process may use
//       threads=N      that many workers
//       cpus=0-3,8     the processors they are placed on; `any` leaves that to the system
//       spin_us=N      how long an idle worker polls before it sleeps
//       nodes=N        one logical device of N, each with workers, memory and a queue of its own
//       shuffle=SEED   whatever points and barriers do not order runs in a random order
//     cpu://inline     everything runs on the thread that submits, or that resolves the last wait
//     cuda://0         an NVIDIA GPU: by number, UUID (cuda://GPU-...) or PCI address
//       commands=graph|stream  how recordings run; left out: graphs for reusable ones. With
//                      stream dispatches that come again are plain launches, too
//       alloc=async|sync       pools of the vendor's, or cut by Keel from memory got in one piece
//       serial=1       waits after each operation, so that a fault names it
//       lib=PATH       another libcuda
//       context=0x...  a CUcontext of the caller's, and stream=0x...,0x... up to 8 CUstreams of
//                      his, one for each queue as they are made, the device's own first (0x1: the
//                      legacy default stream; the per-thread one, 0x2, is refused); a capture of
//                      such a stream has Keel's work in it, and loses the device
//     null://          completes all work and does none
//
// Other drivers come with the program, or are loaded by it (keel_driver_load).
//
// Lifetime. keel_device_release of the last reference closes the device: work not yet started fails
// with KEEL_CANCELLED, running work finishes, and the call returns when the device is quiet (except
// inside a host call of the device, where it does not wait; deferred calls must be completed
// first). Objects made from the device may outlive it; all but reading them and releasing them
// fails then.
//
// Loss. A device that can do no more work ends all that runs, all that waits, and its semaphores,
// with KEEL_DEVICE_LOST and the first cause, and so does work that is submitted later. After
// fork(2) the child's devices are lost: every call fails with KEEL_DEVICE_LOST, releases free host
// memory.
//
// All functions may be called from any thread.
#ifndef KEEL_DEVICE_H_
#define KEEL_DEVICE_H_

#include <keel/status.h>

typedef struct keel_device_t keel_device_t;
typedef struct keel_queue_t keel_queue_t;
typedef struct keel_pool_t keel_pool_t;

// What enumeration says about a device without opening it.
typedef struct keel_device_info_t {
    char uri[128];  // opens it
    char name[128]; // for people: "Neoverse-V1, 2 cores"
} keel_device_info_t;

// Lists the devices of `driver` ("cpu"), or of every driver for NULL. Writes up to `capacity` of
// them and the number there are to `*count`. A driver whose vendor library is missing has no
// devices; that is no error.
KEEL_EXTERN_C_BEGIN
KEEL_API keel_status_t keel_device_list(const char *driver, keel_device_info_t *devices,
                                        size_t capacity, size_t *count) KEEL_MUST_USE;
KEEL_EXTERN_C_END

// Adds the driver that is in the shared object at `path`, which has a slash in it: no folders are
// searched, and no variable of the environment is read. A program should load only what it trusts:
// the object runs with all of the program's rights. It stays loaded until the process ends. Loading
// it again does nothing. Any thread; returns when the object's own constructors have run.
//
// The object calls the Keel of this program, so the program is linked with libkeel.so, or exports
// its functions (-rdynamic). KEEL_NOT_FOUND if there is no such file; KEEL_UNSUPPORTED if the
// system cannot load it, it is no driver, it uses another copy of Keel, or it was built for another
// version; else as keel_driver_register (<keel/driver/driver.h>).
KEEL_EXTERN_C_BEGIN
KEEL_API keel_status_t keel_driver_load(const char *path) KEEL_MUST_USE;
KEEL_EXTERN_C_END

typedef struct keel_device_options_t {
    const char *name; // in messages and traces; NULL: the URI
} keel_device_options_t;

// Features that not every device has.
typedef enum keel_cap_t {
    KEEL_CAP_QUEUE_ALLOCA = 1 << 0,   // pools and queue-ordered allocation
    KEEL_CAP_DYNAMIC_COUNTS = 1 << 1, // dispatch counts written by the same recording
    KEEL_CAP_BRANCHES = 1 << 2,       // if, while and switch in recordings
    KEEL_CAP_EVENTS = 1 << 3,         // split barriers
    KEEL_CAP_TIMESTAMPS = 1 << 4,     // timestamps written by the device
    KEEL_CAP_RAW_ARGUMENTS = 1 << 5,  // dispatches with a block of raw arguments
    KEEL_CAP_FILES = 1 << 6,          // reads and writes of files
    KEEL_CAP_HOST_CALLS = 1 << 7,     // calls into the application, ordered by points
    KEEL_CAP_IMPORT_HOST = 1 << 8,    // buffers over memory of the application
    KEEL_CAP_EXPORT_FD = 1 << 9,      // buffers shared with other processes by file descriptor
    KEEL_CAP_DLPACK = 1 << 10,        // tensors in and out
    KEEL_CAP_GROUP_SIZE = 1 << 11,    // a workgroup size given at dispatch
    KEEL_CAP_EXECUTES = 1 << 12,      // dispatches are really executed (null:// does not)
    KEEL_CAP_KERNEL_STATUS = 1 << 13, // kernels of host_kernel.h run, and what they return counts
    KEEL_CAP_IMPORT_SEMAPHORE = 1 << 14, // semaphores of other APIs
} keel_cap_t;

// A place where memory of the device lies, by the name that DLPack has for it. A buffer lies in the
// first one of its node whose `memory` it has; tensors are taken from all of them.
typedef struct keel_dlpack_place_t {
    int32_t type, id; // as in DLDevice
    uint32_t node;    // or KEEL_EVERY_NODE
    uint32_t memory;  // keel_memory_bit_t; without KEEL_MEMORY_DEVICE_LOCAL, addresses are the
                      // host's, with KEEL_MEMORY_HOST_VISIBLE besides those of both
} keel_dlpack_place_t;

#define KEEL_EVERY_NODE UINT32_MAX

typedef struct keel_caps_t {
    uint32_t bits;   // of keel_cap_t
    uint32_t native; // those of them that the driver does itself; the rest is emulated on the host
    uint32_t queue_families; // bits 1 << keel_queue_family_t
    int32_t min_priority;    // queue priorities; higher runs first
    int32_t max_priority;    //
    uint32_t nodes;          // physical devices in this logical one
    uint32_t
        workers; // things that run at the same time: cores, multiprocessors; 0: the calling thread
    uint32_t max_bindings;        // per dispatch
    uint32_t max_slots;           // per binding table
    uint32_t max_constants;       // bytes per dispatch
    uint32_t max_arguments;       // bytes of raw arguments per dispatch
    uint32_t max_group_size;      // work-items in a workgroup
    uint32_t max_group_sizes[3];  // and in each of its dimensions
    uint32_t subgroup_size;       // work-items that run in step (warp, wavefront): 1 on processors
    uint32_t max_local_memory;    // bytes of workgroup memory
    uint64_t max_groups;          // workgroups in a dispatch, all dimensions multiplied
    uint32_t max_group_counts[3]; // and in each of them, for entry points that are `raw`
                                  // (executable.h); others may have all groups in one
    uint64_t max_buffer_size;     // bytes of the device's own memory; the host's may be larger
    uint64_t buffer_alignment;    // of every allocation; offsets of bindings need none
    uint32_t max_commands;        // per recording
    uint32_t max_depth;           // blocks nested in each other
    uint32_t
        memory_types[8]; // the combinations of keel_memory_bit_t there are, best first, ended by 0
    const keel_dlpack_place_t *dlpack; // ended by type 0; NULL without KEEL_CAP_DLPACK
} keel_caps_t;

// A moment on both clocks. Timestamps of the device are nanoseconds on its own clock.
typedef struct keel_clock_pair_t {
    uint64_t host_ns;   // keel_now_ns
    uint64_t device_ns; // read between two readings of the host's clock
    uint64_t error_ns;  // half of the time between these two
} keel_clock_pair_t;

// Memory of a device in bytes.
typedef struct keel_memory_stats_t {
    uint64_t total;   // there is
    uint64_t budget;  // that this process may take without hurting others, as the system says now
    uint64_t used;    // by buffers and pools of this device
    uint64_t peak;    // the most that `used` has been
    uint64_t buffers; // how many buffers hold memory
} keel_memory_stats_t;

KEEL_EXTERN_C_BEGIN

KEEL_API keel_status_t keel_device_open(const char *uri, const keel_device_options_t *options,
                                        keel_device_t **device) KEEL_MUST_USE;
KEEL_API keel_device_t *keel_device_retain(keel_device_t *device);
KEEL_API void keel_device_release(keel_device_t *device);

KEEL_API const char *keel_device_uri(const keel_device_t *device);
KEEL_API const char *keel_device_name(const keel_device_t *device);
// What it is, for people, as the system or the vendor calls it: "NVIDIA H200".
KEEL_API const char *keel_device_hardware(const keel_device_t *device);
KEEL_API const keel_caps_t *keel_device_caps(const keel_device_t *device);

// What images made for this very device are marked with in containers: "x86_64-linux:v3",
// "nvptx:sm_90", "gfx942". "" if it takes any.
KEEL_API const char *keel_device_target(const keel_device_t *device);

// The queues a device starts with: one per node (queue 0 is on node 0). Borrowed. NULL if there is
// no such queue.
KEEL_API keel_queue_t *keel_device_queue(keel_device_t *device, size_t index);

// The pool that allocas without a pool use, one per node. Borrowed. NULL if there is no such node.
KEEL_API keel_pool_t *keel_device_pool(keel_device_t *device, size_t node);

// Returns once everything submitted to the device before the call has completed or failed; failures
// are not reported here. KEEL_DEADLINE_EXCEEDED if that took longer.
KEEL_API keel_status_t keel_device_wait_idle(keel_device_t *device,
                                             uint64_t timeout_ns) KEEL_MUST_USE;

KEEL_API keel_status_t keel_device_clock(keel_device_t *device,
                                         keel_clock_pair_t *pair) KEEL_MUST_USE;
KEEL_API keel_status_t keel_device_memory(keel_device_t *device,
                                          keel_memory_stats_t *stats) KEEL_MUST_USE;

KEEL_EXTERN_C_END

#endif
