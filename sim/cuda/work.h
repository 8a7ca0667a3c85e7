// SPDX-License-Identifier: Apache-2.0
// What streams and graphs do: launches, copies, fills, calls of the host, memory operations. A work
// is complete in itself; it is checked when it is made, and once more when it runs.
#ifndef SIM_CUDA_WORK_H_
#define SIM_CUDA_WORK_H_

#include "cuda/base.h"

// When memory is looked at: what is enqueued may use what its stream has not come to yet.
typedef enum moment_t { WHEN_ENQUEUED, WHEN_RUN } moment_t;

typedef enum work_kind_t {
    WORK_NONE,
    WORK_KERNEL,
    WORK_COPY,
    WORK_FILL,
    WORK_HOST,
    WORK_CALLBACK,
    WORK_MEMOPS,
    WORK_SEMAPHORE,
} work_kind_t;

typedef struct kernel_work_t {
    CUfunction function;
    uint32_t grid[3], block[3];
    uint32_t shared; // dynamic bytes
    void *params;    // owned; aligned to 16
    size_t size;
} kernel_work_t;

// One of the two sides of a copy: rows of `width` bytes, `pitch` apart, in slices of `slice` bytes.
typedef struct side_t {
    uint64_t address;
    size_t pitch, slice;
    CUmemorytype type; // host: any memory; device: what CUDA knows
} side_t;

typedef struct copy_work_t {
    side_t from, to;
    size_t width, height, depth;
    void *staged; // owned: what pageable memory held at the call
} copy_work_t;

typedef struct fill_work_t {
    uint64_t address;
    size_t pitch, width, height; // width in elements
    uint32_t value, element;     // bytes of one: 1, 2 or 4
} fill_work_t;

typedef struct host_work_t {
    CUhostFn function;
    CUstreamCallback callback;
    CUstream stream;
    void *user;
} host_work_t;

typedef struct memop_work_t {
    CUstreamBatchMemOpParams *ops; // owned
    unsigned count;
} memop_work_t;

typedef struct semaphore_work_t {
    CUexternalSemaphore semaphore;
    uint64_t value;
    bool waits; // else it signals
} semaphore_work_t;

typedef struct work_t {
    work_kind_t kind;
    const char *maker; // the exported function that made it
    union {
        kernel_work_t kernel;
        copy_work_t copy;
        fill_work_t fill;
        host_work_t host;
        memop_work_t memops;
        semaphore_work_t semaphore;
    };
} work_t;

// Where work comes from, for a tool.
typedef struct origin_t {
    CUstream stream;
    uint32_t correlation; // of the call that enqueued it
    uint32_t graph;       // 0: none
    uint64_t node;
} origin_t;

// Does it, without the lock. What goes wrong fails the context of the stream.
void work_run(const work_t *work, origin_t origin);
void work_finish(work_t *work);
// A copy that owns what it points to; false when memory is short.
bool work_clone(work_t *out, const work_t *work);

// Whether the operands are memory that exists; tells of it otherwise. Under the lock.
bool work_check(const work_t *work, moment_t moment);
typedef bool (*work_fits_fn)(const work_t *work, const void *what);

CUresult kernel_work(work_t *out, CUfunction function, const uint32_t dims[6], uint32_t shared,
                     void **params, void **extra);
CUresult copy_work(work_t *out, const CUDA_MEMCPY3D *copy);
CUresult fill_work(work_t *out, const CUDA_MEMSET_NODE_PARAMS *fill);
CUresult memop_work(work_t *out, unsigned count, const CUstreamBatchMemOpParams *ops);

#endif
