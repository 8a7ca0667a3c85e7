// SPDX-License-Identifier: Apache-2.0
// The built-in kernels of CUDA: those of every device, and those that change a graph while it runs,
// by functions that CUDA's driver has for device code. builtin.ptx is made of this file.
#include "builtin/kernels.c"

#include "drivers/stream/arguments.h"

typedef struct dim3_t {
    uint32_t x, y, z;
} dim3_t;

// As <cuda_device_runtime_api.h> declares them; 0 is success.
void cudaGraphSetConditional(uint64_t condition, uint32_t value);
int cudaGraphKernelNodeSetEnabled(uint64_t node, int enabled);
int cudaGraphKernelNodeSetGridDim(uint64_t node, dim3_t grid);
int cudaGraphKernelNodeSetParam(uint64_t node, uint64_t offset, uint64_t value, uint64_t size);

KEEL_RAW_KERNEL(keel_grid, KEEL_GROUP(1), stream_grid_args_t, a)
{
    KEEL_ITEMS {
        const uint32_t *counts = AT(const uint32_t, a.counts.counts);
        bool runs = counts_fit(a.counts);
        cudaGraphKernelNodeSetEnabled(a.node, runs);
        if (runs) cudaGraphKernelNodeSetGridDim(a.node, (dim3_t){counts[0], counts[1], counts[2]});
    }
}

// Whether a loop may go round once more, which it then has.
static inline bool round_count(const stream_branch_args_t a, bool again)
{
    uint32_t *rounds = AT(uint32_t, a.rounds), *failed = AT(uint32_t, a.failed);
    uint32_t count = a.first ? 0 : *rounds;
    bool over = again && count >= a.most;
    *rounds = count + (again && !over);
    if (over && keel_atomic_compare(failed, 0, a.number) == 0) failed[1] = a.most;
    return again && !over;
}

KEEL_RAW_KERNEL(keel_branch, KEEL_GROUP(1), stream_branch_args_t, a)
{
    KEEL_ITEMS {
        bool holds = (*AT(const uint32_t, a.value) == a.match) != (a.differs != 0);
        if (a.rounds) holds = round_count(a, holds);
        cudaGraphSetConditional(a.condition, holds);
    }
}

// A launch with the arguments of another run must not be: sooner none.
KEEL_RAW_KERNEL(keel_rebind, KEEL_GROUP(STREAM_REBIND_GROUP), stream_rebind_args_t, a)
{
    KEEL_ITEMS_BELOW (a.count) {
        const stream_rebind_t *at = AT(const stream_rebind_t, a.table) + keel_global_id(0);
        if (cudaGraphKernelNodeSetParam(at->node, 0, at->arguments, at->size) != 0)
            __builtin_trap();
    }
}
