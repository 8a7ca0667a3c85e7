// SPDX-License-Identifier: Apache-2.0
// loop FILE COUNT: launches a kernel of tests/sim/amd so many times by HIP, and waits for it now
// and then. Callgrind counts what the launches take, and not the waits. For cost.sh.
#include <hip/hip_runtime_api.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#if __has_include(<valgrind/callgrind.h>)
#include <valgrind/callgrind.h>
#else
#define CALLGRIND_START_INSTRUMENTATION
#define CALLGRIND_TOGGLE_COLLECT
#endif

enum { ROUND = 16, WARM = 4 };

static void check(hipError_t error, int line)
{
    if (error == hipSuccess) return;
    fprintf(stderr, "line %d: %s\n", line, hipGetErrorName(error));
    exit(1);
}
#define HIP(call) check(call, __LINE__)

static hipFunction_t add_one;
static uint32_t *data;

// Launches it ROUND times, and waits for them.
static void round_run(void)
{
    uint32_t count = 1;
    void *arguments[] = {&data, &count};
    CALLGRIND_TOGGLE_COLLECT;
    for (int i = 0; i < ROUND; i++)
        HIP(hipModuleLaunchKernel(add_one, 1, 1, 1, 64, 1, 1, 0, NULL, arguments, NULL));
    CALLGRIND_TOGGLE_COLLECT;
    HIP(hipDeviceSynchronize());
}

int main(int argc, char **argv)
{
    hipModule_t module;
    uint32_t result = 0;
    if (argc != 3) return 2;
    int rounds = atoi(argv[2]) / ROUND;
    HIP(hipModuleLoad(&module, argv[1]));
    HIP(hipModuleGetFunction(&add_one, module, "add_one"));
    HIP(hipMalloc((void **)&data, sizeof *data));
    HIP(hipMemset(data, 0, sizeof *data));
    for (int i = 0; i < WARM; i++) round_run();
    CALLGRIND_START_INSTRUMENTATION;
    for (int i = 0; i < rounds; i++) round_run();
    HIP(hipMemcpy(&result, data, sizeof result, hipMemcpyDeviceToHost));
    return result == (uint32_t)(rounds + WARM) * ROUND ? 0 : 1;
}
