// SPDX-License-Identifier: Apache-2.0
// The program around its kernels: output, failures, the device, code compiled at run time, other
// processes.
#include "programs.h"

#include <hip/hiprtc.h>

#include <cassert>
#include <cstring>
#include <unistd.h>

static __global__ void speak(int number)
{
    printf("lane %d has %d, %s and %.2f\n", (int)threadIdx.x, number, "words", number / 4.0);
}

static __global__ void speak_often()
{
    printf("line of %u\n", global_index());
}

DYING_PROGRAM(printf_child)
{
    LAUNCH(speak, 1, 3, 0, 42);
    HIP(hipDeviceSynchronize());
    LAUNCH(speak_often, 4, 64, 0);
    HIP(hipDeviceSynchronize());
}

PROGRAM(printf)
{
    ending end = run_self({"printf_child"});
    CHECK(end.status == 0);
    for (int lane = 0; lane < 3; lane++) {
        std::string line = "lane " + std::to_string(lane) + " has 42, words and 10.50\n";
        CHECK(end.output.find(line) != std::string::npos);
    }
    for (int n = 0; n < 256; n++) {
        CHECK(end.output.find("line of " + std::to_string(n) + "\n") != std::string::npos);
    }
}

static __global__ void insist(int limit)
{
    assert((int)threadIdx.x < limit);
}

DYING_PROGRAM(assert_child)
{
    LAUNCH(insist, 1, 64, 0, 64);
    HIP(hipDeviceSynchronize());
    LAUNCH(insist, 1, 64, 0, 63);
    HIP(hipDeviceSynchronize());
}

PROGRAM(assertions)
{
    ending end = run_self({"assert_child"});
    CHECK(end.status != 0);
    CHECK(end.output.find("threadIdx.x < limit") != std::string::npos);
}

static __global__ void stray(unsigned *address)
{
    *address = 1;
}

DYING_PROGRAM(fault_child)
{
    LAUNCH(stray, 1, 1, 0, (unsigned *)0xdead0000);
    HIP(hipDeviceSynchronize());
}

PROGRAM(faults)
{
    ending end = run_self({"fault_child"});
    CHECK(end.status != 0);
    CHECK(end.output.find("Memory access fault") != std::string::npos);
    CHECK(end.output.find("stray") != std::string::npos); // which the software GPU tells
}

PROGRAM(device_info)
{
    int count = 0, threads = 0;
    hipDeviceProp_t about;
    HIP(hipGetDeviceCount(&count));
    CHECK(count >= 1);
    for (int n = 0; n < count; n++) {
        HIP(hipGetDeviceProperties(&about, n));
        CHECK(!strncmp(about.gcnArchName, "gfx", 3) && about.warpSize == 64);
        CHECK(about.totalGlobalMem >= (size_t)1 << 30 && about.multiProcessorCount > 0);
        HIP(hipDeviceGetAttribute(&threads, hipDeviceAttributeMaxThreadsPerBlock, n));
        CHECK(threads == about.maxThreadsPerBlock && threads == 1024);
    }
    CHECK(hipSetDevice(count) == hipErrorInvalidDevice);
    (void)hipGetLastError();
    int blocks = 0;
    HIP(hipOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, (const void *)speak, 64, 0));
    CHECK(blocks > 0);
}

// hipRTC, and a module that is loaded from memory.
PROGRAM(compiled_here)
{
    static const char source[] = "extern \"C\" __global__ void triple(unsigned *data) {\n"
                                 "    data[blockIdx.x * blockDim.x + threadIdx.x] *= FACTOR;\n"
                                 "}\n";
    hipDeviceProp_t about;
    HIP(hipGetDeviceProperties(&about, 0));
    std::string target = std::string("--offload-arch=") + about.gcnArchName;
    const char *options[] = {target.c_str(), "-DFACTOR=3"};
    hiprtcProgram compiled;
    size_t size = 0;
    CHECK(hiprtcCreateProgram(&compiled, source, "triple.hip", 0, nullptr, nullptr) ==
          HIPRTC_SUCCESS);
    CHECK(hiprtcCompileProgram(compiled, 2, options) == HIPRTC_SUCCESS);
    CHECK(hiprtcGetCodeSize(compiled, &size) == HIPRTC_SUCCESS && size > 0);
    std::vector<char> code(size);
    CHECK(hiprtcGetCode(compiled, code.data()) == HIPRTC_SUCCESS);
    CHECK(hiprtcDestroyProgram(&compiled) == HIPRTC_SUCCESS);
    hipModule_t module;
    hipFunction_t function;
    device<unsigned> data(count_up(640));
    unsigned *pointer = data;
    void *arguments[] = {&pointer};
    HIP(hipModuleLoadData(&module, code.data()));
    HIP(hipModuleGetFunction(&function, module, "triple"));
    HIP(hipModuleLaunchKernel(function, 10, 1, 1, 64, 1, 1, 0, 0, arguments, nullptr));
    HIP(hipDeviceSynchronize());
    HIP(hipModuleUnload(module));
    for (unsigned n = 0; n < 640; n++) CHECK(data.read()[n] == 3 * n);
}

static __global__ void list_of(unsigned **heads)
{
    unsigned *node = (unsigned *)malloc(16);
    node[0] = threadIdx.x;
    heads[threadIdx.x] = node;
}

static __global__ void sum_of(unsigned **heads, unsigned *sum)
{
    atomicAdd(sum, heads[threadIdx.x][0]);
    free(heads[threadIdx.x]);
}

// malloc in a kernel.
PROGRAM(device_heap)
{
    if (HIP_VERSION_MAJOR * 100 + HIP_VERSION_MINOR < 507) throw skipped{"this HIP has none"};
    device<unsigned *> heads(128);
    device<unsigned> sum(std::vector<unsigned>(1, 0));
    LAUNCH(list_of, 1, 128, 0, heads);
    LAUNCH(sum_of, 1, 128, 0, heads, sum);
    CHECK(sum.read()[0] == 128 * 127 / 2);
}

static __global__ void grid_sums(unsigned *data, unsigned *gate, unsigned blocks)
{
    atomicAdd(&data[0], 1u);
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
        atomicAdd(gate, 1u);
        while (atomicAdd(gate, 0u) < blocks) __builtin_amdgcn_s_sleep(2);
    }
    __syncthreads();
    if (threadIdx.x == 0) data[1 + blockIdx.x] = atomicAdd(&data[0], 0u);
}

// All blocks of a cooperative launch run at once, so they may wait for each other.
PROGRAM(cooperative)
{
    int can = 0;
    HIP(hipDeviceGetAttribute(&can, hipDeviceAttributeCooperativeLaunch, 0));
    if (!can) throw skipped{"the device says that it has none"};
    enum { BLOCKS = 8 };
    device<unsigned> data(std::vector<unsigned>(1 + BLOCKS, 0)), gate(std::vector<unsigned>(1, 0));
    unsigned *pointer = data, *word = gate, blocks = BLOCKS;
    void *arguments[] = {&pointer, &word, &blocks};
    HIP(hipLaunchCooperativeKernel((void *)grid_sums, dim3(BLOCKS), dim3(64), arguments, 0, 0));
    HIP(hipDeviceSynchronize());
    for (unsigned n = 0; n < BLOCKS; n++) CHECK(data.read()[1 + n] == 64 * BLOCKS);
}

// What the other process does with memory that its parent shares: the handle comes as a file.
DYING_PROGRAM(shared_child)
{
    hipIpcMemHandle_t handle;
    unsigned *data = nullptr;
    const char *path = getenv("PROGRAMS_HANDLE");
    FILE *file = path ? fopen(path, "rb") : nullptr;
    CHECK(file && fread(&handle, sizeof handle, 1, file) == 1);
    fclose(file);
    HIP(hipIpcOpenMemHandle((void **)&data, handle, hipIpcMemLazyEnablePeerAccess));
    LAUNCH(add, 10, 64, 0, data, 640, 5);
    HIP(hipDeviceSynchronize());
    HIP(hipIpcCloseMemHandle(data));
}

PROGRAM(shared_memory)
{
    hipIpcMemHandle_t handle;
    device<unsigned> data(count_up(640));
    hipError_t error = hipIpcGetMemHandle(&handle, (unsigned *)data);
    if (error == hipErrorNotSupported) throw skipped{"the device says that it cannot"};
    HIP(error);
    char path[] = "/tmp/programs-XXXXXX";
    int file = mkstemp(path);
    CHECK(file >= 0 && write(file, &handle, sizeof handle) == (ssize_t)sizeof handle);
    close(file);
    setenv("PROGRAMS_HANDLE", path, 1);
    ending end = run_self({"shared_child"});
    unlink(path);
    if (end.status) printf("%s", end.output.c_str());
    CHECK(end.status == 0);
    CHECK(data.read() == count_up(640, 5));
}
