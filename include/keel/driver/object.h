// SPDX-License-Identifier: Apache-2.0
// The objects of the API as drivers see them. A driver embeds these at offset 0 of its own structs;
// the library fills in what is common before it calls the driver, and drivers read it freely. Each
// pointer says who keeps it alive: owned, retained (a reference is held) or borrowed.
#ifndef KEEL_DRIVER_OBJECT_H_
#define KEEL_DRIVER_OBJECT_H_

#include <keel/keel.h>

// A field that several threads write. A driver in C++ sees it as std::atomic, of the same layout.
#ifdef __cplusplus
#include <atomic>
#define KEEL_ATOMIC(type) std::atomic<type>
#define KEEL_ALIGNAS(n)   alignas(n)
#else
#include <stdatomic.h>
#define KEEL_ATOMIC(type) _Atomic(type)
#define KEEL_ALIGNAS(n)   _Alignas(n)
#endif

typedef struct keel_device_ops_t keel_device_ops_t;
typedef struct keel_submission_t keel_submission_t;

typedef struct keel_object_t {
    KEEL_ATOMIC(uint32_t) refs;
    uint32_t
        generation; // of fork(2): an object of another one belongs to a process that is not ours
} keel_object_t;

struct keel_device_t {
    keel_object_t
        object; // keeps the memory: one for the application's references together, one per object
    KEEL_ATOMIC(uint32_t) users;             // references of the application; the last one closes
    KEEL_ATOMIC(bool) closed;                // no new work is taken
    KEEL_ATOMIC(struct keel_status *) ended; // owned: why nothing may wait any more; NULL: it may
    const keel_device_ops_t *ops;
    keel_caps_t caps;                          // filled by the driver's open
    keel_device_info_t info;                   // likewise, as far as it is known; but uri and name
    char *uri;                                 // owned
    char *name;                                // owned
    keel_queue_t **queues;                     // owned: the first one of each node
    keel_pool_t **pools;                       // owned: the default one of each node
    KEEL_ATOMIC(uint64_t) used, peak, buffers; // bytes and buffers, for keel_device_memory
    KEEL_ATOMIC(uint32_t) numbers;             // of queues, so far
    KEEL_ATOMIC(struct chores_t *) calls;      // owned: those of keel_on; NULL: none yet
    KEEL_ATOMIC(uint32_t) lock;                // for the lists below
    keel_queue_t *all_queues;                  // borrowed, linked by keel_queue_t.link
    keel_semaphore_t *all_semaphores;          // borrowed, linked by keel_semaphore_t.link
    keel_pool_t *all_pools;                    // borrowed, linked by keel_pool_t.link
    KEEL_ATOMIC(uint32_t) guests;              // copies of other devices that use its memory now
    struct staging_t *staging;                 // owned: for the next copies to other devices
    struct view_t *views;                      // borrowed: memory of others as this device sees it
};

struct keel_queue_t {
    keel_object_t object;
    keel_device_t *device;      // retained
    keel_queue_info_t info;     // filled in by the library after queue_create
    char *name;                 // owned: what `info` has
    keel_semaphore_t *timeline; // owned
    struct {
        keel_queue_t *next, *previous; // in keel_device_t.all_queues
    } link;
    bool linked;
    KEEL_ATOMIC(keel_submission_t *) ready; // a recycled one to take without the lock; owned
    // Guarded by the timeline's lock.
    keel_submission_t *spare; // recycled; owned
    uint32_t spare_count;
    uint32_t in_use;        // submissions not recycled
    bool kept;              // they hold a reference together, which stays until it is the last one
    size_t submission_size; // of the driver's struct around keel_submission_t; set by queue_create
    bool early; // its submissions wait by promises (submission_wait_early); set by queue_create
    KEEL_ATOMIC(uint32_t) traced; // its number in a trace; 0: none so far
};

struct keel_buffer_t {
    keel_object_t object;
    keel_device_t *device; // retained, or kept by the pool or the root
    keel_buffer_t *root;   // the buffer it is a subspan of (retained), or itself
    keel_pool_t *pool;     // retained; NULL unless queue ordered
    uint64_t offset;       // within the root
    uint64_t size;
    uint64_t alignment;
    uint32_t memory, usage, access, node;
    char *name; // owned
    // In roots only, written by the driver. `data` is where the host finds the memory (NULL:
    // nowhere), `address` where the device does. Queue-ordered buffers have both only between
    // alloca and dealloca.
    KEEL_ATOMIC(void *) data;
    KEEL_ATOMIC(uint64_t) address;
    KEEL_ATOMIC(uint32_t) resident; // has memory
    uint64_t handle;                // the driver's or the pool's
    uint64_t capacity;              // bytes taken for it
    void *slab;                     // the pool's
    uint32_t deallocas;             // submitted and not ended; the pool's
    bool kept;                      // a mark of the pool's, while it looks at a submission
    keel_buffer_t *lender;      // retained: whose memory it has; NULL: that of the pool, or none
    KEEL_ATOMIC(uint32_t) lent; // buffers that have a part of its memory
    KEEL_ATOMIC(struct views_t *) views; // owned: how other devices see it; NULL: none does
    bool staging;                        // the library's own, for copies between devices
    // In imported ones.
    keel_external_buffer_t external;
    keel_executable_t *executable; // in use: whose global it is
};

struct keel_pool_t {
    keel_object_t object;
    keel_device_t *device;       // retained
    keel_pool_options_t options; // limit resolved, name cleared
    char *name;                  // owned
    keel_pool_info_t info;       // for the application
    struct {
        keel_pool_t *next, *previous; // in keel_device_t.all_pools
    } link;
};

struct keel_executable_t {
    keel_object_t object;
    keel_device_t *device;       // retained
    char *name;                  // owned
    keel_executable_info_t info; // for the application
    uint32_t entry_count;
    const keel_entry_info_t *entries;           // [entry_count], the driver's
    const keel_binding_info_t *const *bindings; // [entry_count][entries[i].bindings], the driver's
    void *const *kernels;                       // [entry_count] what the driver calls them
    struct keel_cmd_dispatch_t
        *plain; // owned, [entry_count]: what dispatches of an entry begin with
    // Commands, and buffers of globals, keep the executable by uses. Of a command, the submitting
    // thread begins the use, and the thread that runs the work ends it. With one count two
    // processors would wait for each other, so there are two, on cache lines of their own. The last
    // release subtracts the uses begun from those ended. The thread that then ends the last use
    // destroys the executable.
    void (*destroy)(keel_executable_t *executable); // the front door's
    char before_uses[64];
    KEEL_ATOMIC(uint64_t) uses_begun;
    char between_uses[64];
    KEEL_ATOMIC(uint64_t) uses_ended;
};

struct keel_recording_t {
    keel_object_t object;
    keel_device_t *device; // retained
    char *name;            // owned
    keel_recording_options_t options;
    keel_recording_info_t info;               // for the application
    struct keel_commands_t *commands;         // owned; see command.h
    struct keel_recorder_t *recorder;         // owned; while open
    struct keel_slot_need_t *needs;           // owned: what each slot must provide
    struct keel_parameter_need_t *parameters; // owned, when ended: what they must be; NULL: none
    KEEL_ATOMIC(uint32_t) executed;           // submissions so far, counted for one-shot recordings
    KEEL_ATOMIC(void *) prepared;             // the driver's
};

struct keel_file_t {
    keel_object_t object;
    keel_device_t *device; // retained
    char *path;            // owned; for messages
    uint32_t flags;
    keel_file_info_t info; // for the application
    int fd;                // owned
};

#endif
