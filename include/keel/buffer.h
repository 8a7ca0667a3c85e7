// SPDX-License-Identifier: Apache-2.0
// Buffers: spans of memory that devices and the host can reach.
//
// A buffer has a memory type (where it lives), a usage (what it is for) and an access (what may be
// done to its contents). What it gets may be more than what was asked for, never less. There are
// five ways to one:
//
//     keel_buffer_create       memory at once, from the device
//     keel_buffer_reserve      a buffer of a pool that has no memory yet: a queue gives it
//                              (keel_op_alloca) and takes it (keel_op_dealloca) in order with other
//                              work. It can be recorded, bound and submitted before.
//     keel_buffer_subspan      a part of another buffer
//     keel_buffer_import       memory of the application or of another process
//     keel_buffer_from_dlpack  a tensor (dlpack.h)
//
// The memory goes back when the last reference is released; work in flight holds references of its
// own. All functions may be called from any thread; what happens to the contents is for the caller
// to order.
#ifndef KEEL_BUFFER_H_
#define KEEL_BUFFER_H_

#include <keel/device.h>

typedef struct keel_buffer_t keel_buffer_t;

typedef enum keel_memory_bit_t {
    KEEL_MEMORY_DEVICE_LOCAL = 1 << 0,   // fastest for the device
    KEEL_MEMORY_DEVICE_VISIBLE = 1 << 1, // the device can use it
    KEEL_MEMORY_HOST_VISIBLE = 1 << 2,   // it can be mapped
    KEEL_MEMORY_HOST_COHERENT = 1 << 3,  // mapped writes need no flush, reads no invalidate
    KEEL_MEMORY_HOST_CACHED = 1 << 4,    // reading it on the host is fast
} keel_memory_bit_t;

typedef enum keel_usage_bit_t {
    KEEL_USAGE_TRANSFER = 1 << 0, // fill, update, copy, read, write, timestamps
    KEEL_USAGE_DISPATCH = 1 << 1, // bound to kernels
    KEEL_USAGE_COUNTS = 1 << 2,   // dispatch counts and branch conditions are read from it
    KEEL_USAGE_MAP = 1 << 3,      // mapped by the host
    KEEL_USAGE_EXPORT = 1 << 4,   // exported by file descriptor; not for what is imported
} keel_usage_bit_t;

typedef enum keel_access_bit_t {
    KEEL_ACCESS_READ = 1 << 0,
    KEEL_ACCESS_WRITE = 1 << 1,
    KEEL_ACCESS_ALL = KEEL_ACCESS_READ | KEEL_ACCESS_WRITE,
} keel_access_bit_t;

typedef struct keel_buffer_options_t {
    uint64_t size;      // may be 0
    uint32_t memory;    // keel_memory_bit_t; 0: the device's own, the first one of
                        // keel_caps_t.memory_types, which only some devices let the host reach
    uint32_t usage;     // keel_usage_bit_t; 0: all but export
    uint32_t access;    // keel_access_bit_t; 0: all
    uint32_t node;      // of a logical device of several
    uint64_t alignment; // 0: the device's; a power of two
    const char *name;
} keel_buffer_options_t;

typedef struct keel_buffer_info_t {
    uint64_t size;
    uint32_t memory, usage, access, node;
    bool queue_ordered;  // reserved: it has memory only between alloca and dealloca
    bool resident;       // has memory now
    uint64_t offset;     // within the buffer it is a subspan of, however many times
    keel_buffer_t *root; // that buffer, or itself; borrowed
} keel_buffer_info_t;

// Memory from or for outside.
typedef enum keel_external_kind_t {
    KEEL_EXTERNAL_HOST,   // a host pointer
    KEEL_EXTERNAL_DEVICE, // a device address
    KEEL_EXTERNAL_FD,     // a file descriptor of shared memory
} keel_external_kind_t;

typedef struct keel_external_t {
    keel_external_kind_t kind;
    union {
        void *host;
        uint64_t device;
        int fd;
    } handle;
    uint64_t offset; // of the memory behind a file descriptor; a multiple of the page size
    uint64_t size;
    void (*release)(void *user); // on import: called once, when the buffer no longer uses the
                                 // memory, at the latest before the device is closed; may be NULL
    void *user;
} keel_external_t;

KEEL_EXTERN_C_BEGIN

KEEL_API keel_status_t keel_buffer_create(keel_device_t *device,
                                          const keel_buffer_options_t *options,
                                          keel_buffer_t **buffer) KEEL_MUST_USE;
// The buffer's memory type and usage are the pool's; `options` gives size, access, alignment and
// name.
KEEL_API keel_status_t keel_buffer_reserve(keel_pool_t *pool, const keel_buffer_options_t *options,
                                           keel_buffer_t **buffer) KEEL_MUST_USE;
// Retains `buffer`. `length` may be KEEL_WHOLE.
KEEL_API keel_status_t keel_buffer_subspan(keel_buffer_t *buffer, uint64_t offset, uint64_t length,
                                           keel_buffer_t **subspan) KEEL_MUST_USE;
KEEL_API keel_buffer_t *keel_buffer_retain(keel_buffer_t *buffer);
// The last release never waits for the device, with one exception: imported memory of the host's
// without a `release` is its owner's again when the call returns, or work that held the last
// reference is over, and some vendors (CUDA) let go of it only when the device has ended all that
// it runs. With such vendors a thread of the library's gives memory back, once the device has
// nothing to do, or soon if it always has; until then keel_memory_stats_t.budget lacks it.
// keel_buffer_create waits for that before it fails for want of memory, an alloca as well, in the
// order of its queue.
KEEL_API void keel_buffer_release(keel_buffer_t *buffer);

KEEL_API uint64_t keel_buffer_size(const keel_buffer_t *buffer);
KEEL_API void keel_buffer_info(const keel_buffer_t *buffer, keel_buffer_info_t *info);

// The address by which kernels know the buffer. KEEL_FAILED_PRECONDITION while it has no memory.
KEEL_API keel_status_t keel_buffer_address(keel_buffer_t *buffer, uint64_t *address) KEEL_MUST_USE;

// A host pointer to a range, good until as many unmaps as maps. Needs host visible memory with
// KEEL_USAGE_MAP. `access` says what will be done. Where memory is not coherent, flush after
// writing and invalidate before reading; both may always be called.
KEEL_API keel_status_t keel_buffer_map(keel_buffer_t *buffer, uint64_t offset, uint64_t length,
                                       uint32_t access, void **pointer) KEEL_MUST_USE;
KEEL_API void keel_buffer_unmap(keel_buffer_t *buffer);
KEEL_API keel_status_t keel_buffer_flush(keel_buffer_t *buffer, uint64_t offset,
                                         uint64_t length) KEEL_MUST_USE;
KEEL_API keel_status_t keel_buffer_invalidate(keel_buffer_t *buffer, uint64_t offset,
                                              uint64_t length) KEEL_MUST_USE;

// The same in one call: copies between the buffer and the caller's memory, at once, and nothing
// else, so it needs host visible memory too. What lies in memory of the device's own is copied on a
// queue, to or from a buffer that is host visible (examples/saxpy.c); or it is written there by
// keel_op_update.
KEEL_API keel_status_t keel_buffer_read(keel_buffer_t *buffer, uint64_t offset, void *target,
                                        uint64_t length) KEEL_MUST_USE;
KEEL_API keel_status_t keel_buffer_write(keel_buffer_t *buffer, uint64_t offset, const void *source,
                                         uint64_t length) KEEL_MUST_USE;

// A buffer over memory that stays its owner's: nothing is copied. On failure `release` is not
// called. A file descriptor is duplicated; the caller's stays the caller's. `options` gives usage,
// access, node and name, and what the memory has to be: an address of a device's is taken for one
// that the host can use too (CUDA's managed memory) if both KEEL_MEMORY_DEVICE_LOCAL and
// KEEL_MEMORY_HOST_VISIBLE are asked for. On GPUs an address must be of memory that the vendor's
// library gave, and `size` stay within that allocation; memory of the host's that the process may
// not write, as a file mapped for reading, comes with KEEL_ACCESS_READ alone (KEEL_UNSUPPORTED
// where the device cannot, and for files that are mapped with MAP_PRIVATE: take MAP_SHARED).
KEEL_API keel_status_t keel_buffer_import(keel_device_t *device, const keel_external_t *external,
                                          const keel_buffer_options_t *options,
                                          keel_buffer_t **buffer) KEEL_MUST_USE;

// The other way. Pointers are good while the buffer is; a file descriptor (needs KEEL_USAGE_EXPORT)
// is new and the caller's to close. `external->kind` says what is wanted, the rest is filled in.
KEEL_API keel_status_t keel_buffer_export(keel_buffer_t *buffer,
                                          keel_external_t *external) KEEL_MUST_USE;

KEEL_EXTERN_C_END

#endif
