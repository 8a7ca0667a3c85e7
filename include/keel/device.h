// SPDX-License-Identifier: Apache-2.0
// Devices: finding them, opening them, what they can do.
//
// A device is opened by URI: DRIVER://WHICH?OPTION=VALUE&... The driver refuses an option that it
// does not know.
//
//     cpu://           runs workgroups on worker threads, one per core that the process may use
//       threads=N      uses N workers
//       cpus=0-3,8     pins the workers to these processors; `any` leaves placement to the system
//       spin_us=N      an idle worker polls for N microseconds before it sleeps
//       nodes=N        makes one logical device of N nodes, each with its own workers, memory and
//                      queue
//       memory=unified|discrete  says which memory the host can map: all (unified, the default), or
//                      as on a GPU only what is asked for with KEEL_MEMORY_HOST_VISIBLE. A program
//                      that runs with memory=discrete does not rely on default memory to be mapped
//       shuffle=SEED   runs what points and barriers do not order in a random order, for tests
//     cpu://inline     runs all work on the thread that submits it, or that resolves its last wait
//     cuda://0         an NVIDIA GPU: by number, UUID (cuda://GPU-...) or PCI address
//       commands=graph|stream  runs recordings as CUDA graphs or as calls on a stream. Without this
//                      option, reusable recordings run as graphs. With commands=stream, repeated
//                      dispatches are plain launches, too
//       alloc=async|sync       takes the memory of pools from CUDA's memory pools, or cuts it from
//                      large allocations
//       serial=1       waits after each operation, so that an error names the operation
//       lib=PATH       loads another libcuda
//       context=0x...  uses a CUcontext of the application
//       stream=0x...,0x...  uses up to 8 CUstreams of the application. Each queue takes the next
//                      one, the device's own queue first. 0x1 is the legacy default
//                      stream; the per-thread default stream 0x2 is refused. If the application
//                      captures such a stream, the capture contains Keel's work and the device is
//                      lost
//     hip://0          a GPU by AMD's HIP: by number, UUID (hip://GPU-...) or PCI address
//       commands=graph|stream  as for cuda://; on HIP 5.3 to 5.7 and 7, whose graphs are not right,
//                      recordings run as calls in any case
//       serial=1       waits after each operation, so that an error names the operation
//       lib=PATH       loads another libamdhip64
//       stream=0x...,0x...  uses up to 8 hipStream_t of the application, as for cuda://. HIP's
//                      default streams are refused
//     amdgpu://0       a GPU of AMD's by its queues, without HIP; amdgpu://0,1 is one device of two
//                      nodes. keel(1) has its options, and those of metal://
//     metal://0        a GPU by Apple's Metal
//     null://          completes all work and does none
//
// A program may bring further drivers (keel_driver_register), or load them (keel_driver_load).
//
// Closing. The keel_device_release that gives up the last reference closes the device. Objects made
// from the device may outlive it. They can then be read and released; every other call on them
// fails.
//
// Loss. When a device can do no more work, everything that runs on it or waits for it fails with
// KEEL_DEVICE_LOST and the first cause. So do its semaphores and all later submissions. After
// fork(2) every device is lost to the child: calls fail with KEEL_DEVICE_LOST, and releases free
// host memory only.
//
// Unless its comment says otherwise, a function may be called from any thread and does not wait.
#ifndef KEEL_DEVICE_H_
#define KEEL_DEVICE_H_

#include <keel/status.h>

typedef struct keel_device_t keel_device_t;
typedef struct keel_queue_t keel_queue_t;
typedef struct keel_pool_t keel_pool_t;

// A device that keel_device_list found. It is not open.
typedef struct keel_device_listing_t {
    char uri[128];  // keel_device_open takes it
    char name[128]; // for people: "Neoverse-V1, 2 cores"
} keel_device_listing_t;

KEEL_EXTERN_C_BEGIN

// Lists the devices of `driver` ("cpu"), or of all drivers if it is NULL. Writes at most `capacity`
// entries to `devices`, and the number of devices that exist to `*count`. A capacity of 0 only
// counts. A driver whose vendor library is missing has no devices; that is no error.
//
// Loads the vendors' libraries, which may take a second the first time. KEEL_NOT_FOUND if no driver
// has that name; the message lists the drivers.
KEEL_API keel_status_t keel_device_list(const char *driver, keel_device_listing_t *devices,
                                        size_t capacity, size_t *count) KEEL_MUST_USE;

// Adds the driver in the shared object at `path`, which must contain a slash: Keel searches no
// folders and reads no variable of the environment. The object runs with all rights of the program,
// so load only what you trust. It stays loaded until the process ends. Loading it again does
// nothing.
//
// Returns when the constructors of the object have run. The object calls the Keel of this program,
// so the program is linked with libkeel.so, or exports its functions (-rdynamic). KEEL_NOT_FOUND if
// there is no such file. KEEL_UNSUPPORTED if the system cannot load it, if it is no driver, uses
// another copy of Keel, or was built for another version. Else as keel_driver_register
// (<keel/driver/driver.h>).
KEEL_API keel_status_t keel_driver_load(const char *path) KEEL_MUST_USE;

KEEL_EXTERN_C_END

// Options of keel_device_open that are not in the URI.
typedef struct keel_device_options_t {
    const char *name; // used in messages and traces; NULL: the URI
} keel_device_options_t;

// Features that not every device has: the bits of keel_caps_t.bits. A call that needs a missing one
// fails with KEEL_UNSUPPORTED and names it.
typedef enum keel_cap_t {
    KEEL_CAP_QUEUE_ALLOCA = 1 << 0,      // pools and queue-ordered allocation
    KEEL_CAP_DYNAMIC_COUNTS = 1 << 1,    // dispatch counts written by the same recording
    KEEL_CAP_BRANCHES = 1 << 2,          // if, while and switch in recordings
    KEEL_CAP_EVENTS = 1 << 3,            // split barriers
    KEEL_CAP_TIMESTAMPS = 1 << 4,        // timestamps written by the device
    KEEL_CAP_RAW_ARGUMENTS = 1 << 5,     // dispatches with a block of raw arguments
    KEEL_CAP_FILES = 1 << 6,             // reads and writes of files
    KEEL_CAP_HOST_CALLS = 1 << 7,        // calls into the application, ordered by points
    KEEL_CAP_IMPORT_HOST = 1 << 8,       // buffers over memory of the application
    KEEL_CAP_EXPORT_FD = 1 << 9,         // buffers shared with other processes by file descriptor
    KEEL_CAP_DLPACK = 1 << 10,           // tensors in and out
    KEEL_CAP_GROUP_SIZE = 1 << 11,       // a workgroup size given at dispatch
    KEEL_CAP_EXECUTES = 1 << 12,         // operations are really executed (null:// does not)
    KEEL_CAP_KERNEL_STATUS = 1 << 13,    // kernels of host_kernel.h run, and may return a failure
    KEEL_CAP_IMPORT_SEMAPHORE = 1 << 14, // semaphores of other APIs
    KEEL_CAP_NATIVE = 1 << 15,           // handles of the vendor's own objects (native.h)
    KEEL_CAP_SHARED_SEMAPHORE = 1 << 16, // semaphores of several processes: on Linux every device
                                         // has it, the library sees to it
    KEEL_CAP_COPY_ACROSS = 1 << 17,      // copies to and from memory of other devices
} keel_cap_t;

// A kind of memory of the device that DLPack has a name for. A buffer is exported under the first
// place of its node whose `memory` bits it has. Tensors are imported from all places.
typedef struct keel_dlpack_place_t {
    int32_t type, id; // as in DLDevice
    uint32_t node;    // or KEEL_EVERY_NODE
    uint32_t memory;  // keel_memory_bit_t. Without KEEL_MEMORY_DEVICE_LOCAL the tensor's addresses
                      // are those of the host; with it they are those of the device; with
                      // KEEL_MEMORY_HOST_VISIBLE besides, both sides use the same addresses
} keel_dlpack_place_t;

// A place that is the same on all nodes.
#define KEEL_EVERY_NODE UINT32_MAX

// What a device can do and how much. Constant while the device is open.
typedef struct keel_caps_t {
    uint32_t bits;           // keel_cap_t: what the device can do
    uint32_t native;         // of these, what the driver does itself; the host emulates the rest
    uint32_t queue_families; // bits 1 << keel_queue_family_t
    int32_t min_priority;    // lowest priority of a queue
    int32_t max_priority;    // highest priority; it runs first
    uint32_t nodes;          // physical devices in this logical one
    uint32_t workers;        // units that run at the same time: cores, multiprocessors; 0: only the
                             // calling thread
    uint32_t max_bindings;   // per dispatch
    uint32_t max_slots;      // per binding table
    uint32_t max_constants;  // bytes per dispatch
    uint32_t max_arguments;  // bytes of raw arguments per dispatch
    uint32_t max_group_size; // work-items in a workgroup
    uint32_t max_group_sizes[3];  // and in each of its dimensions
    uint32_t subgroup_size;       // work-items that run in step (warp, wavefront); 1 on processors
    uint32_t max_local_memory;    // bytes of workgroup memory
    uint64_t max_groups;          // workgroups in a dispatch, all dimensions multiplied
    uint32_t max_group_counts[3]; // workgroups in each dimension, for entry points that are `raw`
                                  // (executable.h); for others only max_groups counts
    uint64_t max_buffer_size;     // bytes in device memory; buffers in host memory may be larger
    uint64_t buffer_alignment;    // bytes; of every allocation. Offsets of bindings need none
    uint32_t max_commands;        // operations in a recording or a submission
    uint32_t max_depth;           // blocks nested in each other
    uint32_t memory_types[8];     // combinations of keel_memory_bit_t, best first, ended by 0
    const keel_dlpack_place_t *dlpack; // ended by type 0; NULL without KEEL_CAP_DLPACK
} keel_caps_t;

// What keel_device_info tells about an open device: which piece of hardware it is, and what the
// vendor's software says of itself. All of it comes from the system or the vendor. What they do not
// tell is "", false or 0. Of a device with several nodes it is what holds for all of them.
typedef struct keel_device_info_t {
    const char *uri;    // that it was opened with
    const char *name;   // from keel_device_options_t, or the URI
    char hardware[128]; // what the system or the vendor calls it, for people: "NVIDIA H200"
    char vendor[32];    // who makes it, for people: "NVIDIA"
    char target[64];    // of images made for exactly this device, as containers name it:
                        // "x86_64-linux:v3", "nvptx:sm_90", "gfx942"; "": it takes any image
    char driver[32];    // version of the vendor's driver in the system: "580.159.04"
    char api[32];       // the vendor's interface with its version: "CUDA 13.0"
    char pci[32];       // address on PCI, in lower case: "0000:3b:00.0"
    uint8_t uuid[16];   // of the hardware, in the order in which people write it; of AMD's GPUs the
                        // characters of its 16 digits
    bool has_uuid;      // `uuid` is known
    bool has_numa_node; // `numa_node` is known
    uint32_t numa_node; // the host's memory node that is nearest, as the system numbers them
    uint64_t link;      // bytes per second that its link to the host carries at most each way, by
                        // the lanes and the rate of the PCI slot; packets' headers count as bytes
} keel_device_info_t;

// How data gets from the memory of one device into that of another, from the slowest way up.
typedef enum keel_reach_how_t {
    KEEL_REACH_NONE,   // not at all, for lack of KEEL_CAP_COPY_ACROSS
    KEEL_REACH_STAGED, // in pieces, through memory of the host
    KEEL_REACH_HOST,   // the memory of one is the host's, which the other one copies directly
    KEEL_REACH_PEER,   // one of the two copies from and to the other's memory, without the host
} keel_reach_how_t;

// What keel_device_reach tells about two devices. It is about the first of their memory types.
typedef struct keel_reach_t {
    keel_reach_how_t how;
    uint64_t bandwidth; // bytes per second each way, at most: what the slower of their links to the
                        // host carries, of those that are known (keel_device_info_t.link). 0: none
                        // is known, or the way does not lead through the host
} keel_reach_t;

// One moment on the host's clock and on the device's. Timestamps (keel_op_timestamp) are on the
// device's.
typedef struct keel_clock_pair_t {
    uint64_t host_ns;   // on keel_now_ns: the middle of two readings
    uint64_t device_ns; // on the device's clock: read between these two
    uint64_t error_ns;  // half of the time between the two readings of the host's clock
} keel_clock_pair_t;

// The memory of a device, in bytes.
typedef struct keel_memory_stats_t {
    uint64_t total;   // what the device has
    uint64_t budget;  // what this process can still take without hurting others, by the system
    uint64_t used;    // what buffers of keel_buffer_create and pools of this device hold
    uint64_t peak;    // the highest `used` so far
    uint64_t buffers; // how many buffers hold memory
} keel_memory_stats_t;

KEEL_EXTERN_C_BEGIN

// Opens the device that `uri` names, and makes a queue and, with KEEL_CAP_QUEUE_ALLOCA, a pool for
// each of its nodes. A device may be opened several times: each is a device of its own. The URI has
// at most 1023 characters and 32 options.
//
// Loads the vendor's library and may start threads: it can take a second.
// KEEL_INVALID_ARGUMENT for a malformed URI, an unknown option or a bad value. KEEL_NOT_FOUND if
// there is no such driver, vendor library or device. KEEL_RESOURCE_EXHAUSTED if the system gives no
// threads.
KEEL_API keel_status_t keel_device_open(const char *uri, const keel_device_options_t *options,
                                        keel_device_t **device) KEEL_MUST_USE;

// Adds a reference and returns `device`. NULL is fine.
KEEL_API keel_device_t *keel_device_retain(keel_device_t *device);

// Gives up a reference. The last one closes the device: submissions that have not started fail with
// KEEL_CANCELLED, and so do running ones, as soon as the device can end them. Then all semaphores
// of the device fail with KEEL_CANCELLED. NULL is fine. To have work finish, wait for it first.
//
// A cpu device ends a dispatch at the next workgroup and a loop at the next iteration. On a GPU,
// commands that were issued to it run to their end, however long that takes: a kernel cannot be
// interrupted.
//
// Waits until all that is done, so deferred host calls must be completed first. In a callback of
// the device's own work (a host call, the release of imported memory) it does not wait: a thread of
// the library closes the device. If the system has no thread for that, the device stays open, and
// the log says so.
KEEL_API void keel_device_release(keel_device_t *device);

// Returns what the device is. This never changes, and is borrowed from the device: copy what is
// needed longer. It can be read also when the device is lost, and in the child of a fork. Never
// fails.
KEEL_API const keel_device_info_t *keel_device_info(const keel_device_t *device);

// Tells how copies between the memory of two devices go, which is the same in both directions, and
// how fast they can be at best. A device is its own peer. Nothing is measured or guessed.
KEEL_API keel_status_t keel_device_reach(keel_device_t *device, keel_device_t *other,
                                         keel_reach_t *reach) KEEL_MUST_USE;

// Returns what the device can do. Borrowed; it does not change.
KEEL_API const keel_caps_t *keel_device_caps(const keel_device_t *device);

// Returns the queue that node `index` started with. NULL if there is no such node. Borrowed until
// the device is closed.
KEEL_API keel_queue_t *keel_device_queue(keel_device_t *device, size_t index);

// Returns the pool that node `node` started with, which keel_queue_alloca uses by default. NULL if
// there is no such node, or without KEEL_CAP_QUEUE_ALLOCA. Borrowed until the device is closed.
KEEL_API keel_pool_t *keel_device_pool(keel_device_t *device, size_t node);

// Waits until everything that was submitted to the device's queues before the call has ended. It
// returns NULL also if some of that work failed. This includes submissions that still wait for
// their points, so do not call it on the thread that is to signal these.
//
// KEEL_DEADLINE_EXCEEDED if `timeout_ns` passed first. Must not be called in a host call of the
// same device: that work would wait for itself.
KEEL_API keel_status_t keel_device_wait_idle(keel_device_t *device,
                                             uint64_t timeout_ns) KEEL_MUST_USE;

// Reads the device's clock and the host's at nearly the same time, to relate timestamps to host
// time. The clocks drift, so ask again now and then. Devices without a clock of their own use
// the host's.
//
// On a GPU it runs a small kernel on a stream of its own and waits for that kernel.
// KEEL_DEVICE_LOST if the device is lost.
KEEL_API keel_status_t keel_device_clock(keel_device_t *device,
                                         keel_clock_pair_t *pair) KEEL_MUST_USE;

// Tells how much memory the device has and what this process uses. The numbers are those of the
// moment and may be out of date when the call returns.
KEEL_API keel_status_t keel_device_memory(keel_device_t *device,
                                          keel_memory_stats_t *stats) KEEL_MUST_USE;

KEEL_EXTERN_C_END

#endif
