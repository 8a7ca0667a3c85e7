// SPDX-License-Identifier: Apache-2.0
// Buffers: spans of memory that devices and the host can reach.
//
// A buffer has a memory type (where it lies), a usage (what it is for) and an access (what may be
// done to its contents). It may get more than was asked for, never less. There are five ways to
// make one:
//
//     keel_buffer_create       has memory of the device at once
//     keel_buffer_reserve      belongs to a pool and has no memory yet. A queue gives it memory
//                              (keel_op_alloca) and takes it back (keel_op_dealloca), in order with
//                              other work. It can be recorded, bound and submitted before that
//     keel_buffer_subspan      is a part of another buffer
//     keel_buffer_import       lies over memory of the application or of another process
//     keel_buffer_from_dlpack  lies over a tensor (dlpack.h)
//
// The memory is freed with the last reference. Work in flight holds references of its own.
//
// Contents. Keel does not order accesses to the contents: the application does, with points and
// barriers. Fresh memory has undefined contents.
//
// Unless its comment says otherwise, a function may be called from any thread and does not wait.
#ifndef KEEL_BUFFER_H_
#define KEEL_BUFFER_H_

#include <keel/device.h>

typedef struct keel_buffer_t keel_buffer_t;

// Where memory lies and what the host may do with it.
typedef enum keel_memory_bit_t {
    KEEL_MEMORY_DEVICE_LOCAL = 1 << 0,   // fastest for the device
    KEEL_MEMORY_DEVICE_VISIBLE = 1 << 1, // the device can use it
    KEEL_MEMORY_HOST_VISIBLE = 1 << 2,   // the host can map it
    KEEL_MEMORY_HOST_COHERENT = 1 << 3,  // host writes need no flush, host reads no invalidate
    KEEL_MEMORY_HOST_CACHED = 1 << 4,    // host reads are fast
} keel_memory_bit_t;

// What a buffer is for. An operation that needs a missing bit fails with KEEL_PERMISSION_DENIED.
typedef enum keel_usage_bit_t {
    KEEL_USAGE_TRANSFER = 1 << 0, // fill, update, copy, read, write, timestamps
    KEEL_USAGE_DISPATCH = 1 << 1, // bound to kernels
    KEEL_USAGE_COUNTS = 1 << 2,   // dispatch counts and branch conditions are read from it
    KEEL_USAGE_MAP = 1 << 3,      // mapped by the host
    KEEL_USAGE_EXPORT = 1 << 4,   // exported by file descriptor; only for keel_buffer_create
} keel_usage_bit_t;

// What operations and the host may do to the contents.
typedef enum keel_access_bit_t {
    KEEL_ACCESS_READ = 1 << 0,  // read them
    KEEL_ACCESS_WRITE = 1 << 1, // write them
    KEEL_ACCESS_ALL = KEEL_ACCESS_READ | KEEL_ACCESS_WRITE,
} keel_access_bit_t;

// How to make a buffer.
typedef struct keel_buffer_options_t {
    uint64_t size;      // bytes; may be 0
    uint32_t memory;    // keel_memory_bit_t; the first of keel_caps_t.memory_types that has all
                        // these bits is taken. 0: the first one, which on a GPU is device memory
                        // that the host cannot map, and on cpu:// memory that it can. To find on a
                        // processor what would fail on a GPU, open cpu://?memory=discrete
    uint32_t usage;     // keel_usage_bit_t; 0: all but export
    uint32_t access;    // keel_access_bit_t; 0: all
    uint32_t node;      // which node of the device; below keel_caps_t.nodes
    uint64_t alignment; // bytes, a power of two up to 2^30; 0: keel_caps_t.buffer_alignment
    const char *name;   // used in messages; may be NULL
} keel_buffer_options_t;

// What keel_buffer_info tells about a buffer.
typedef struct keel_buffer_info_t {
    uint64_t size;       // bytes
    uint32_t memory;     // keel_memory_bit_t, at least what was asked for
    uint32_t usage;      // keel_usage_bit_t
    uint32_t access;     // keel_access_bit_t
    uint32_t node;       // the node whose memory it is
    bool queue_ordered;  // from keel_buffer_reserve: has memory only between alloca and dealloca
    bool resident;       // has memory now
    uint64_t offset;     // where a subspan begins within its root; 0 for a root
    keel_buffer_t *root; // the buffer that has the memory: itself, or what it is part of; borrowed
    keel_device_t *device; // whose it is; borrowed
    const char *name;      // as asked for, "" without one; lives as long as the buffer
} keel_buffer_info_t;

// What memory from outside, or for outside, is known by.
typedef enum keel_external_kind_t {
    KEEL_EXTERNAL_HOST,   // a host pointer
    KEEL_EXTERNAL_DEVICE, // a device address
    KEEL_EXTERNAL_FD,     // a file descriptor of shared memory
    KEEL_EXTERNAL_NATIVE, // an object of the vendor's: on metal:// an id<MTLBuffer>
} keel_external_kind_t;

// Memory to import (keel_buffer_import), or exported memory (keel_buffer_export).
typedef struct keel_external_buffer_t {
    keel_external_kind_t kind; // which field of `handle` counts
    union {
        void *host;      // KEEL_EXTERNAL_HOST
        uint64_t device; // KEEL_EXTERNAL_DEVICE
        int fd;          // KEEL_EXTERNAL_FD
        void *object;    // KEEL_EXTERNAL_NATIVE
    } handle;
    uint64_t offset; // KEEL_EXTERNAL_FD: where it begins; a multiple of the page size.
                     // KEEL_EXTERNAL_NATIVE: where it begins in the object
    uint64_t size;   // bytes
    // For imports; may be NULL. The library calls it once, when the buffer no longer uses the
    // memory, at the latest before the device is closed. docs/threads.md [T6] says on which thread.
    void (*release)(void *user);
    void *user; // argument of `release`
} keel_external_buffer_t;

KEEL_EXTERN_C_BEGIN

// Makes a buffer that has memory at once. `options` must not be NULL.
//
// Calls the vendor's allocator, which may take long. If device memory runs out, it waits for memory
// that was released and not yet given back (keel_buffer_release), then fails.
// KEEL_RESOURCE_EXHAUSTED or KEEL_OUT_OF_MEMORY if there is not enough. KEEL_UNSUPPORTED if the
// device has no such memory, or KEEL_USAGE_EXPORT without KEEL_CAP_EXPORT_FD. KEEL_OUT_OF_RANGE for
// a size above keel_caps_t.max_buffer_size, a node that does not exist or an alignment above 2^30.
KEEL_API keel_status_t keel_buffer_create(keel_device_t *device,
                                          const keel_buffer_options_t *options,
                                          keel_buffer_t **buffer) KEEL_MUST_USE;

// Makes a buffer of `pool` that has no memory yet: keel_op_alloca gives it some. `options` must not
// be NULL. Size, access, alignment and name are taken from it; memory, usage and node are the
// pool's. The buffer retains the pool.
//
// Allocates no device memory. KEEL_OUT_OF_RANGE for a size above keel_caps_t.max_buffer_size or
// above the limit of the pool, or, in a pool of blocks, for a larger size or alignment than a block
// has.
KEEL_API keel_status_t keel_buffer_reserve(keel_pool_t *pool, const keel_buffer_options_t *options,
                                           keel_buffer_t **buffer) KEEL_MUST_USE;

// Makes a buffer that is the part of `buffer` from `offset` on, `length` bytes long. `length` may
// be KEEL_WHOLE. It has the memory type, usage, access and name of `buffer`. It shares the memory
// and retains the buffer that has it.
//
// KEEL_OUT_OF_RANGE if the part does not lie within `buffer`.
KEEL_API keel_status_t keel_buffer_subspan(keel_buffer_t *buffer, uint64_t offset, uint64_t length,
                                           keel_buffer_t **subspan) KEEL_MUST_USE;

// Adds a reference and returns `buffer`. NULL is fine.
KEEL_API keel_buffer_t *keel_buffer_retain(keel_buffer_t *buffer);

// Gives up a reference. The last one frees the memory: of keel_buffer_create to the device, of
// keel_buffer_reserve to its pool, of an import to its owner. NULL is fine.
//
// Does not wait for the device, with one exception. Imported host memory that has no `release`
// belongs to its owner again when this call returns, or when the work that held the last reference
// has ended. CUDA unlocks such memory only when all running work has ended, so the call waits for
// that. So it does if the memory is of another device and a GPU has copied it (keel_op_copy).
//
// On such vendors freeing device memory waits for the device, too. There a thread of the library
// frees it, as soon as the device is idle, or after a short time if it never is. Until then
// keel_memory_stats_t.budget does not contain it. keel_buffer_create and allocas wait for this
// thread before they fail.
KEEL_API void keel_buffer_release(keel_buffer_t *buffer);

// Returns the size in bytes.
KEEL_API uint64_t keel_buffer_size(const keel_buffer_t *buffer);

// Writes what the buffer is and has to `info`. All but `resident` never change. Never fails.
KEEL_API void keel_buffer_info(const keel_buffer_t *buffer, keel_buffer_info_t *info);

// Writes the address that kernels use for the buffer to `address`. It is valid while the buffer has
// this memory.
//
// KEEL_FAILED_PRECONDITION while the buffer has no memory.
KEEL_API keel_status_t keel_buffer_address(keel_buffer_t *buffer, uint64_t *address) KEEL_MUST_USE;

// Writes a host pointer to `length` bytes from `offset` on to `pointer`. `length` may be
// KEEL_WHOLE. `access` says what the host will do there (keel_access_bit_t). Each map is a
// reference to the buffer, which keel_buffer_unmap gives up; the pointer is valid until then. Maps
// may overlap.
//
// Does not wait for work that uses the buffer: wait for its points first. In memory that is not
// KEEL_MEMORY_HOST_COHERENT, flush after writing and invalidate before reading.
// KEEL_PERMISSION_DENIED without KEEL_MEMORY_HOST_VISIBLE, without KEEL_USAGE_MAP, or if the buffer
// does not allow `access`. KEEL_INVALID_ARGUMENT if `access` is 0. KEEL_OUT_OF_RANGE if the range
// does not lie within the buffer.
// KEEL_FAILED_PRECONDITION while the buffer has no memory.
KEEL_API keel_status_t keel_buffer_map(keel_buffer_t *buffer, uint64_t offset, uint64_t length,
                                       uint32_t access, void **pointer) KEEL_MUST_USE;

// Ends one map of the buffer. Call it once for each successful keel_buffer_map.
KEEL_API void keel_buffer_unmap(keel_buffer_t *buffer);

// Makes host writes to the range visible to work that is submitted afterwards. `length` may be
// KEEL_WHOLE. In coherent memory it does nothing, and is fine to call.
//
// KEEL_PERMISSION_DENIED without KEEL_MEMORY_HOST_VISIBLE, KEEL_OUT_OF_RANGE for a wrong range.
KEEL_API keel_status_t keel_buffer_flush(keel_buffer_t *buffer, uint64_t offset,
                                         uint64_t length) KEEL_MUST_USE;

// Makes what ended work wrote to the range visible to the host. `length` may be KEEL_WHOLE. In
// coherent memory it does nothing, and is fine to call.
//
// KEEL_PERMISSION_DENIED without KEEL_MEMORY_HOST_VISIBLE, KEEL_OUT_OF_RANGE for a wrong range.
KEEL_API keel_status_t keel_buffer_invalidate(keel_buffer_t *buffer, uint64_t offset,
                                              uint64_t length) KEEL_MUST_USE;

// Copies `length` bytes from the buffer to `target`: map, invalidate, memcpy, unmap. `length` is a
// number of bytes, not KEEL_WHOLE.
//
// The calling thread copies, at once, and does not wait for work that writes the buffer. It needs
// what keel_buffer_map with KEEL_ACCESS_READ needs, and fails as that does. To read device memory,
// have a queue copy it to a host visible buffer first (examples/saxpy.c).
KEEL_API keel_status_t keel_buffer_read(keel_buffer_t *buffer, uint64_t offset, void *target,
                                        uint64_t length) KEEL_MUST_USE;

// Copies `length` bytes from `source` to the buffer: map, memcpy, flush, unmap. `length` is a
// number of bytes, not KEEL_WHOLE.
//
// The calling thread copies, at once, and does not wait for work that uses the buffer. It needs
// what keel_buffer_map with KEEL_ACCESS_WRITE needs, and fails as that does. To write device
// memory, use keel_op_update, or have a queue copy from a host visible buffer.
KEEL_API keel_status_t keel_buffer_write(keel_buffer_t *buffer, uint64_t offset, const void *source,
                                         uint64_t length) KEEL_MUST_USE;

// Makes a buffer over memory that belongs to the application or to another process. Nothing is
// copied. The memory must stay until the buffer no longer uses it (keel_external_buffer_t.release).
// If the call fails, `release` is not called.
//
// `options` gives usage, access, node and name, and the memory bits that the memory must have; its
// size and alignment are ignored. A device address counts as usable by the host as well (CUDA's
// managed memory) if both KEEL_MEMORY_DEVICE_LOCAL and KEEL_MEMORY_HOST_VISIBLE are asked for. A
// file descriptor is duplicated; the caller still closes its own. An object is retained.
//
// On a GPU a device address must come from the vendor's library, and `size` must stay within that
// allocation. Host memory that the process may not write, such as a file mapped for reading, needs
// KEEL_ACCESS_READ alone; a file must be mapped with MAP_SHARED. Page-locking host memory may take
// long.
//
// KEEL_UNSUPPORTED without KEEL_CAP_IMPORT_HOST, if the memory lacks a bit that was asked for, if
// the device cannot use such memory or has no such objects, or with KEEL_USAGE_EXPORT.
// KEEL_INVALID_ARGUMENT for a bad handle or an offset that is no multiple of the page size.
// KEEL_FAILED_PRECONDITION for host memory that another library has allocated for GPUs, and that
// the vendor's could lock but not unlock. KEEL_OUT_OF_RANGE if it is too large.
KEEL_API keel_status_t keel_buffer_import(keel_device_t *device,
                                          const keel_external_buffer_t *external,
                                          const keel_buffer_options_t *options,
                                          keel_buffer_t **buffer) KEEL_MUST_USE;

// Gives out the buffer's memory as `external->kind` says, and fills in the other fields. A host
// pointer, a device address or an object is valid while the buffer has this memory. A file
// descriptor is new, and the caller closes it; the other process maps it at `external->offset`.
//
// KEEL_FAILED_PRECONDITION while the buffer has no memory. KEEL_PERMISSION_DENIED for a host
// pointer without KEEL_MEMORY_HOST_VISIBLE, or a file descriptor without KEEL_USAGE_EXPORT.
// KEEL_INVALID_ARGUMENT for the descriptor of a subspan that begins within a page. KEEL_UNSUPPORTED
// for an object where buffers are none.
KEEL_API keel_status_t keel_buffer_export(keel_buffer_t *buffer,
                                          keel_external_buffer_t *external) KEEL_MUST_USE;

KEEL_EXTERN_C_END

#endif
