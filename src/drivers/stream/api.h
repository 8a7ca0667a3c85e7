// SPDX-License-Identifier: Apache-2.0
// What the stream core asks of a vendor: devices with streams, events that are recorded on them
// and waited for, graphs, and memory. A driver fills in the table. Differences between vendors are
// data here, and the core never asks which vendor it is:
//
// - A slot is required, or belongs to a feature (stream_feature_t). A device without a feature may
//   leave its slots NULL, and the core does without; docs/stream.md says how, slot by slot.
// - A quirk (stream_quirks_t) is a number or a flag: something that was measured and that the core
//   works around or makes use of. Zero stands for a vendor that has no such quirk.
//
// Every function but `enter` and `leave` is called between these two on the same thread. Errors
// come back as statuses made once, by the driver; KEEL_DEVICE_LOST is one after which nothing will
// ever work again. Unless said otherwise nothing blocks but for the vendor's own locks, and
// functions may be called from any thread.
#ifndef KEEL_SRC_DRIVERS_STREAM_API_H_
#define KEEL_SRC_DRIVERS_STREAM_API_H_

#include <keel/device.h>
#include <keel/driver/image.h>
#include <keel/native.h>
#include <keel/status.h>

#include "drivers/stream/arguments.h"
#include "kit/bind.h"
#include "kit/device.h"

// The driver's struct of an open device, and the vendor's handles.
typedef struct stream_vendor_t stream_vendor_t;
typedef void *stream_h;
typedef void *stream_event_h;
typedef void *stream_module_h;
typedef void *stream_function_h;
typedef void *stream_graph_h;
typedef void *stream_node_h;
typedef void *stream_exec_h;
typedef void *stream_pool_h;
typedef void *stream_outside_h;

// Gives something back. Waits for all that the device runs, or may.
typedef void stream_give_t(stream_vendor_t *v, void *what);

enum { STREAM_ALIGNMENT = 256 }; // of any allocation of a vendor's

// What a thread had before `enter`, as far as calls since then needed something else; the vendor's.
typedef struct stream_before_t {
    struct stream_before_t *outer; // entered before, and not left
    stream_vendor_t *vendor;
    void *context;
    int has, mode, error;
} stream_before_t;

// A kernel launch. `arguments` is the whole block of parameters, copied by the call.
typedef struct stream_launch_t {
    stream_function_h function;
    uint32_t groups[3], group_size[3];
    uint32_t local_memory; // dynamic
    uint32_t size;
    const void *arguments;
} stream_launch_t;

// What a device may have beyond what each must. The slots that belong to a feature are listed in
// slots.h. features.c refuses a device that has a feature and lacks one of its slots.
typedef enum stream_feature_t {
    STREAM_REQUIRED = 0,        // of a slot: no feature, every device has it
    STREAM_GRAPHS = 1 << 0,     // recordings become graphs, and each graph is launched by one call
    STREAM_CONDITIONS = 1 << 1, // graphs whose nodes run by a value that the device computes
    STREAM_UPDATABLE = 1 << 2,  // launches in graphs that the device gives a grid or arguments
    STREAM_UPLOAD = 1 << 3,     // graphs can be brought to the device before their first run
    STREAM_POOLS = 1 << 4,      // memory that is allocated and freed in the order of a stream
    STREAM_MANAGED = 1 << 5,    // memory that host and device may touch at the same time
    STREAM_SHARED = 1 << 6,     // memory that is exported as a file descriptor
    STREAM_OUTSIDE = 1 << 7,    // timeline semaphores of other APIs can be imported
    STREAM_ARGUMENTS = 1 << 8,  // the vendor says how large a kernel's block of arguments is
    STREAM_PEERS = 1 << 9,      // memory of other devices of the vendor can be copied
} stream_feature_t;

// What was measured of a vendor and matters to the core. Each driver says where its values come
// from; zero is the well-behaved vendor.
typedef struct stream_quirks_t {
    // A launch blocks when a stream has this many launches pending that have not ended: the core
    // stops before that, and the queue's own thread goes on. 0: a launch never blocks.
    uint32_t pending;
    // Of the room for so many launches, what one fill or copy takes, and one event that is recorded
    // or waited for. 0: as much as a launch, and none.
    uint32_t transfer_room, event_room;
    // A launch as a graph of one kernel is cheaper than a plain launch: the device keeps so many
    // graphs for that. 0: it is not.
    uint32_t launch_graphs;
    // The vendor keeps room on the device for graphs, and waits for the device when it needs more:
    // so many graphs are made and destroyed when the device is opened. 0: it never waits for that.
    uint32_t graph_room;
    // What lies side by side in a graph is dear: so many commands of a recording do, and the
    // others follow each other. 0: all may.
    uint32_t graph_branches;
    // A kernel of the core's fills or copies up to this many bytes sooner than the vendor's own
    // call. 0: never.
    uint32_t small_transfer;
    // From this many dispatches with changed arguments on, one kernel that changes them on the
    // device is faster than the host (STREAM_UPDATABLE). 0: the host always changes them.
    uint32_t rebind_least;
    // A fill that begins inside a word of this many bytes, and ends before the end of that word,
    // writes elsewhere: a kernel of the core's does it. 0: any fill is right.
    uint32_t fill_word;
    bool full_shared; // a call that a full stream blocks holds up other streams: none is to be made
    bool graph_unrolls; // on a stream a graph takes the room of all its nodes, else of one launch
    bool graph_kernels; // copies and fills in graphs go wrong in memory of the host: kernels do all
    bool graph_waits;   // to make a graph, the vendor may wait for the device
    bool free_waits;    // to free memory or unload code, the vendor waits for the device
    bool locks_pages;   // page-locking takes whole pages, each once; else bytes, in as many pieces
    bool pool_lags;     // a freed piece of a pool is free only behind a wait for something after it
    bool host_copies_wait; // a copy within the host's memory waits for the stream before it
                           // returns: kernels do them
    bool host_fills_wait;  // so does a fill of it
    bool host_stays;       // a stream brings no memory of the host to other devices: they fetch it
    bool waits_shared; // a stream that waits holds up others of its priority: watchers have none
} stream_quirks_t;

// What the vendor's objects are called in native.h, and those of the device. 0: there are none.
typedef struct stream_natives_t {
    keel_native_t device, context, stream, event;
    uint64_t device_handle, context_handle;
} stream_natives_t;

// What the device is like.
typedef struct stream_limits_t {
    keel_device_info_t info; // without uri and name
    uint32_t processors;
    uint32_t max_group_size;
    uint32_t max_group_sizes[3]; // per dimension
    uint32_t subgroup_size;
    uint32_t max_local_memory;
    uint32_t max_arguments;       // bytes of a block of parameters
    uint32_t max_group_counts[3]; // of a launch, per dimension
    int32_t least, greatest;      // priorities of streams, as the vendor counts them
    uint64_t memory;              // bytes
    uint32_t clock_khz;           // of what STREAM_TIMESTAMP reads; 0: it reads nanoseconds
    uint32_t features;            // bits of stream_feature_t
    stream_quirks_t quirks;
    stream_natives_t natives;
    device_dlpack_t dlpack;
} stream_limits_t;

// Where a node goes: behind these.
typedef struct stream_place_t {
    stream_graph_h graph;
    const stream_node_h *after;
    size_t count;
} stream_place_t;

typedef enum stream_event_kind_t {
    STREAM_EVENT_POLLED, // for other streams, and for hosts that poll
    STREAM_EVENT_SLEEPS, // a host may sleep until it comes, which makes recording it dearer
} stream_event_kind_t;

typedef enum stream_condition_t {
    STREAM_IF,    // the body runs if the condition is not 0
    STREAM_WHILE, // the body runs while it is
} stream_condition_t;

// The kernels that the core needs itself, each with one block of parameters as its struct says.
typedef enum stream_builtin_t {
    STREAM_TIMESTAMP, // builtin_timestamp_t
    STREAM_FILL,      // builtin_fill_t
    STREAM_COUNTS,    // builtin_counts_t
    STREAM_GRID,      // stream_grid_args_t; STREAM_UPDATABLE
    STREAM_BRANCH,    // stream_branch_args_t; STREAM_CONDITIONS
    STREAM_COPY,      // builtin_copy_t
    STREAM_REBIND,    // stream_rebind_args_t; STREAM_UPDATABLE
    STREAM_BUILTINS,
} stream_builtin_t;

typedef struct stream_api_t {
    const char *driver; // the scheme of its URIs

    // From here on calls that need it find the device's context as the thread's, and spoil nothing
    // of what others record of their streams; `leave` puts back what was there.
    void (*enter)(stream_vendor_t *v, stream_before_t *before);
    void (*leave)(stream_before_t *before);
    // Frees it; `in_child` of a fork is seen to by the caller.
    void (*close_device)(stream_vendor_t *v);
    // The same device with a context of its own, whose streams may be parked: what has to wait for
    // all streams of a context does not wait for those of another.
    keel_status_t (*beside)(stream_vendor_t *v, stream_vendor_t **beside);
    uint64_t (*memory)(stream_vendor_t *v); // bytes that are free; UINT64_MAX: unknown

    keel_status_t (*stream_create)(stream_vendor_t *v, int32_t priority, stream_h *stream);
    void (*stream_destroy)(stream_vendor_t *v, stream_h stream);
    keel_status_t (*stream_drain)(stream_vendor_t *v, stream_h stream); // blocks
    keel_status_t (*event_create)(stream_vendor_t *v, stream_event_kind_t kind,
                                  stream_event_h *event);
    void (*event_destroy)(stream_vendor_t *v, stream_event_h event);
    keel_status_t (*event_record)(stream_vendor_t *v, stream_event_h event, stream_h stream);
    keel_status_t (*event_query)(stream_vendor_t *v, stream_event_h event, bool *over);
    keel_status_t (*event_sync)(stream_vendor_t *v, stream_event_h event); // blocks
    keel_status_t (*stream_wait)(stream_vendor_t *v, stream_h stream, stream_event_h event);
    // Calls `fn` on a thread of the vendor's when the stream is there, but not after an error; it
    // must not call the vendor.
    keel_status_t (*stream_call)(stream_vendor_t *v, stream_h stream, void (*fn)(void *user),
                                 void *user);
    // A timeline semaphore of another API, as the context knows it. Takes the file descriptor over
    // unless it fails, with any code. To be destroyed when no stream has it any more.
    keel_status_t (*outside_import)(stream_vendor_t *v, int fd, stream_outside_h *outside);
    void (*outside_destroy)(stream_vendor_t *v, stream_outside_h outside);
    keel_status_t (*outside_signal)(stream_vendor_t *v, stream_outside_h outside, uint64_t value,
                                    stream_h stream);
    keel_status_t (*outside_wait)(stream_vendor_t *v, stream_outside_h outside, uint64_t value,
                                  stream_h stream);

    keel_status_t (*alloc_device)(stream_vendor_t *v, uint64_t size, uint64_t *address);
    stream_give_t *free_device; // by its address
    keel_status_t (*alloc_host)(stream_vendor_t *v, uint64_t size, void **data);
    stream_give_t *free_host;
    keel_status_t (*alloc_managed)(stream_vendor_t *v, uint64_t size, uint64_t *address);
    // Where the allocation starts that has the byte; KEEL_INVALID_ARGUMENT: none has.
    keel_status_t (*allocation)(stream_vendor_t *v, uint64_t address, uint64_t *start);
    keel_status_t (*host_address)(stream_vendor_t *v, void *data, uint64_t *address);
    // Page-locks memory for all devices of the process: as pages_ops_t.lock, but for the address.
    keel_status_t (*host_register)(stream_vendor_t *v, void *data, uint64_t size, bool written,
                                   bool *already);
    void (*host_unregister)(stream_vendor_t *v, void *data);
    // Memory that other processes may map: made behind a handle, in multiples of the granularity,
    // and mapped, for the device to read and write, where addresses were reserved. An import leaves
    // the descriptor open, and fails with any code if it is none of the vendor's. A map of more
    // than there is fails, and leaves the addresses as they were.
    keel_status_t (*shared_granularity)(stream_vendor_t *v, uint64_t *bytes);
    keel_status_t (*shared_create)(stream_vendor_t *v, uint64_t size, uint64_t *handle);
    keel_status_t (*shared_export)(stream_vendor_t *v, uint64_t handle, int *fd);
    keel_status_t (*shared_import)(stream_vendor_t *v, int fd, uint64_t *handle);
    void (*shared_release)(stream_vendor_t *v, uint64_t handle);
    keel_status_t (*shared_reserve)(stream_vendor_t *v, uint64_t size, uint64_t *address);
    void (*shared_unreserve)(stream_vendor_t *v, uint64_t address, uint64_t size);
    keel_status_t (*shared_map)(stream_vendor_t *v, uint64_t address, uint64_t size,
                                uint64_t handle);
    void (*shared_unmap)(stream_vendor_t *v, uint64_t address, uint64_t size);

    // A pool that keeps `threshold` bytes when they come back.
    keel_status_t (*pool_create)(stream_vendor_t *v, uint64_t threshold, stream_pool_h *pool);
    void (*pool_destroy)(stream_vendor_t *v, stream_pool_h pool);
    keel_status_t (*pool_alloc)(stream_vendor_t *v, stream_pool_h pool, stream_h stream,
                                uint64_t size, uint64_t *address);
    keel_status_t (*pool_free)(stream_vendor_t *v, stream_h stream, uint64_t address);
    uint64_t (*pool_reserved)(stream_vendor_t *v, stream_pool_h pool);
    keel_status_t (*pool_trim)(stream_vendor_t *v, stream_pool_h pool, uint64_t keep);

    keel_status_t (*fill)(stream_vendor_t *v, stream_h stream, const bound_fill_t *fill);
    keel_status_t (*copy)(stream_vendor_t *v, stream_h stream, const bound_copy_t *copy);
    // Whether copy_peer goes between the two devices, in both directions.
    bool (*peers)(const stream_vendor_t *v, const stream_vendor_t *other);
    // From memory of one device to memory of another, on a stream of either of them, which is `v`.
    keel_status_t (*copy_peer)(stream_vendor_t *v, stream_h stream, const bound_copy_t *copy,
                               stream_vendor_t *to, stream_vendor_t *from);
    keel_status_t (*launch)(stream_vendor_t *v, stream_h stream, const stream_launch_t *launch);

    // What an image for `target` is worth here: as executable_rank.
    uint32_t (*image_rank)(stream_vendor_t *v, keel_image_kind_t kind, const char *target);
    // `data` is followed by a zero byte; `size` is 0 for the core's own. The compiler's own words
    // are part of an error. KEEL_RESOURCE_EXHAUSTED if there is no memory for it: it is asked for
    // again when what pools hold has been given back.
    keel_status_t (*module_load)(stream_vendor_t *v, const void *data, size_t size,
                                 stream_module_h *module);
    stream_give_t *module_unload;
    // Finds a kernel and loads it: its first launch must not have to. `local_memory` is static.
    keel_status_t (*module_function)(stream_vendor_t *v, stream_module_h module, const char *name,
                                     stream_function_h *function, uint32_t *local_memory);
    keel_status_t (*module_global)(stream_vendor_t *v, stream_module_h module, const char *name,
                                   uint64_t *address, uint64_t *size);
    keel_status_t (*function_allow)(stream_vendor_t *v, stream_function_h function,
                                    uint32_t local_memory); // dynamic, that much at most
    // Bytes of its block of parameters.
    keel_status_t (*function_arguments)(stream_vendor_t *v, stream_function_h function,
                                        uint32_t *size);
    // The image with the built-in kernels, and how each is called in there.
    const void *(*builtin_image)(stream_vendor_t *v);
    const char *const *builtin_names;

    keel_status_t (*graph_create)(stream_vendor_t *v, stream_graph_h *graph);
    stream_give_t *graph_destroy;
    keel_status_t (*graph_launch)(stream_vendor_t *v, const stream_place_t *place,
                                  const stream_launch_t *launch, stream_node_h *node);
    keel_status_t (*graph_copy)(stream_vendor_t *v, const stream_place_t *place,
                                const bound_copy_t *copy, stream_node_h *node);
    keel_status_t (*graph_fill)(stream_vendor_t *v, const stream_place_t *place,
                                const bound_fill_t *fill, stream_node_h *node);
    keel_status_t (*graph_join)(stream_vendor_t *v, const stream_place_t *place,
                                stream_node_h *node);
    keel_status_t (*graph_order)(stream_vendor_t *v, stream_graph_h graph, stream_node_h first,
                                 stream_node_h then);
    // A condition for a node of `graph`, 0 at each start; and a node with a body that runs by
    // it, or as long as it is not 0.
    keel_status_t (*graph_condition)(stream_vendor_t *v, stream_graph_h graph, uint64_t *condition);
    keel_status_t (*graph_branch)(stream_vendor_t *v, const stream_place_t *place,
                                  stream_condition_t kind, uint64_t condition, stream_node_h *node,
                                  stream_graph_h *body);
    // Lets the device change the grid and the arguments of a launch, and the host no more. The
    // graph is to be uploaded to the stream it runs on, before it does.
    keel_status_t (*graph_updatable)(stream_vendor_t *v, stream_node_h node, uint64_t *handle);
    keel_status_t (*graph_instantiate)(stream_vendor_t *v, stream_graph_h graph,
                                       stream_exec_h *exec);
    stream_give_t *exec_destroy;
    keel_status_t (*exec_run)(stream_vendor_t *v, stream_exec_h exec, stream_h stream);
    keel_status_t (*exec_upload)(stream_vendor_t *v, stream_exec_h exec, stream_h stream);
    // Changes a node in runs to come.
    keel_status_t (*exec_set_launch)(stream_vendor_t *v, stream_exec_h exec, stream_node_h node,
                                     const stream_launch_t *launch);
    keel_status_t (*exec_set_copy)(stream_vendor_t *v, stream_exec_h exec, stream_node_h node,
                                   const bound_copy_t *copy);
    keel_status_t (*exec_set_fill)(stream_vendor_t *v, stream_exec_h exec, stream_node_h node,
                                   const bound_fill_t *fill);
} stream_api_t;

// KEEL_INTERNAL if a slot is NULL that is required, or that belongs to one of the features, or if a
// feature lacks another one that it needs (updatable launches: uploads).
keel_status_t stream_api_check(const stream_api_t *api, uint32_t features);

#endif
