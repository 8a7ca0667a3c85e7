// SPDX-License-Identifier: Apache-2.0
// The kernels of the cubins and fatbins kept beside this file; make.sh compiles them.
#include <stdint.h>

#ifdef LARGE
// More parameters than older GPUs take, described in another way.
struct large_t {
    uint8_t bytes[5000];
};
extern "C" __global__ void large(large_t block, int *out)
{
    *out = block.bytes[*out];
}
#else
struct pair_t {
    uint8_t tag;
    double value;
};

// Plain parameters of several sizes, one of them with a hole behind it.
extern "C" __global__ void saxpy(float *y, const float *x, float a, uint8_t flag, uint64_t n)
{
    uint64_t i = blockIdx.x * (uint64_t)blockDim.x + threadIdx.x;
    if (i < n) y[i] += flag ? a * x[i] : x[i];
}

// A struct and an array by value, a size of groups, and static workgroup memory.
struct table_t {
    uint16_t entries[5];
};
extern "C" __global__ void __launch_bounds__(64) grouped(pair_t pair, table_t table, int *out)
{
    __shared__ int tile[256];
    tile[threadIdx.x] = table.entries[threadIdx.x % 5];
    __syncthreads();
    out[threadIdx.x] = tile[63 - threadIdx.x] + (int)pair.value + pair.tag;
}

// No parameters, memory whose size the launch chooses.
extern __shared__ int dynamic[];
__device__ int counter;
extern "C" __global__ void bare()
{
    dynamic[threadIdx.x] = (int)threadIdx.x;
    __syncthreads();
    atomicAdd(&counter, dynamic[0]);
}
#endif
