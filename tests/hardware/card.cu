// SPDX-License-Identifier: Apache-2.0
// Kernels as nvcc makes them, which know nothing of Keel.
extern "C" __global__ void axpy(float a, const float *x, float *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i];
}

// Arguments as Triton lays them out: pointers, sizes, and two pointers to scratch memory that it
// adds to every kernel and that may be null.
extern "C" __global__ void add_blocks(const float *x, const float *y, float *out, int n,
                                      void *scratch, void *profile)
{
    int start = blockIdx.x * 1024;
    for (int i = threadIdx.x; i < 1024; i += blockDim.x)
        if (start + i < n) out[start + i] = scratch || profile ? 0 : x[start + i] + y[start + i];
}

// Turns words around by way of workgroup memory, as much as the launch brings.
extern "C" __global__ void turn(unsigned *words, unsigned count)
{
    extern __shared__ unsigned copy[];
    for (unsigned i = threadIdx.x; i < count; i += blockDim.x) copy[i] = words[i];
    __syncthreads();
    for (unsigned i = threadIdx.x; i < count; i += blockDim.x) words[i] = copy[count - 1 - i];
}
