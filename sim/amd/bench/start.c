// SPDX-License-Identifier: Apache-2.0
// The least that a HIP program does: finds the GPU, gets memory, fills it, reads it back.
#include <hip/hip_runtime_api.h>
#include <stdint.h>
#include <stdio.h>

static int failed(hipError_t error)
{
    if (error != hipSuccess) fprintf(stderr, "start: %s\n", hipGetErrorString(error));
    return error != hipSuccess;
}

int main(void)
{
    uint32_t *device, host[64];
    int count = 0;
    if (failed(hipInit(0)) || failed(hipGetDeviceCount(&count)) ||
        failed(hipMalloc((void **)&device, sizeof host)) ||
        failed(hipMemset(device, 0x5a, sizeof host)) ||
        failed(hipMemcpy(host, device, sizeof host, hipMemcpyDeviceToHost)) ||
        failed(hipFree(device))) {
        return 1;
    }
    return count < 1 || host[63] != 0x5a5a5a5a;
}
