// SPDX-License-Identifier: Apache-2.0
// An ordinary HIP program, compiled by hipcc: launches, shared memory, shuffles, printf.
#include <hip/hip_runtime.h>
#include <stdio.h>

enum { COUNT = 1000, BINS = 16, WAVE = 64 };

__global__ void histogram(const unsigned *in, unsigned *out)
{
    __shared__ unsigned bins[BINS];
    if (threadIdx.x < BINS) bins[threadIdx.x] = 0;
    __syncthreads();
    unsigned n = blockIdx.x * blockDim.x + threadIdx.x;
    if (n < COUNT) atomicAdd(&bins[in[n] % BINS], 1u);
    __syncthreads();
    if (threadIdx.x < BINS) atomicAdd(&out[threadIdx.x], bins[threadIdx.x]);
}

__global__ void sums(float *x)
{
    float value = x[threadIdx.x];
    for (unsigned d = 1; d < WAVE; d *= 2) {
        float other = __shfl_up(value, d);
        if (threadIdx.x >= d) value += other;
    }
    x[threadIdx.x] = value + expf(0) - cosf(0);
}

__global__ void speak(int number) { printf("lane %d has %d\n", (int)threadIdx.x, number); }

int main()
{
    unsigned in[COUNT], out[BINS], *device_in, *device_out, wrong = 0;
    float x[WAVE], *device_x;
    for (unsigned n = 0; n < COUNT; n++) in[n] = n * 7;
    for (unsigned n = 0; n < WAVE; n++) x[n] = (float)n;
    if (hipMalloc(&device_in, sizeof in) || hipMalloc(&device_out, sizeof out) ||
        hipMalloc(&device_x, sizeof x) || hipMemset(device_out, 0, sizeof out) ||
        hipMemcpy(device_in, in, sizeof in, hipMemcpyHostToDevice) ||
        hipMemcpy(device_x, x, sizeof x, hipMemcpyHostToDevice)) {
        return 1;
    }
    histogram<<<4, 256>>>(device_in, device_out);
    sums<<<1, WAVE>>>(device_x);
    speak<<<1, 2>>>(42);
    if (hipMemcpy(out, device_out, sizeof out, hipMemcpyDeviceToHost) ||
        hipMemcpy(x, device_x, sizeof x, hipMemcpyDeviceToHost) || hipDeviceSynchronize()) {
        return 1;
    }
    for (unsigned b = 0; b < BINS; b++) {
        unsigned want = 0;
        for (unsigned n = 0; n < COUNT; n++) want += in[n] % BINS == b;
        wrong += out[b] != want;
    }
    for (unsigned n = 0; n < WAVE; n++) wrong += x[n] != (float)(n * (n + 1) / 2);
    printf("%u wrong\n", wrong);
    return wrong != 0;
}
