// SPDX-License-Identifier: Apache-2.0
// device_test KERNELS: symbols, devices, contexts, modules, launches.
#include "rig.h"
#include "tests/asleep.h"

#include <dirent.h>
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void *symbol(const char *name, int version)
{
    void *address = NULL;
    CUdriverProcAddressQueryResult status = 99;
    CU(cuGetProcAddress_v2(name, &address, version, CU_GET_PROC_ADDRESS_LEGACY_STREAM, &status));
    CHECK(status == CU_GET_PROC_ADDRESS_SUCCESS);
    return address;
}

// Names mean the function that has the signature of the version that is asked for.
static void test_symbols(void)
{
    void *address;
    CUdriverProcAddressQueryResult status = 99;
    CHECK(symbol("cuMemAlloc", 12000) == (void *)cuMemAlloc_v2);
    CHECK(symbol("cuEventElapsedTime", 12000) == (void *)cuEventElapsedTime);
    CHECK(symbol("cuEventElapsedTime", 13000) == (void *)cuEventElapsedTime_v2);
    CHECK(symbol("cuMemPrefetchAsync", 12010) == (void *)cuMemPrefetchAsync);
    CHECK(symbol("cuMemPrefetchAsync", 13000) == (void *)cuMemPrefetchAsync_v2);
    CHECK(symbol("cuMemAdvise", 13000) == (void *)cuMemAdvise_v2);
    CHECK(symbol("cuGraphAddNode", 12020) == (void *)cuGraphAddNode);
    CHECK(symbol("cuGraphAddNode", 13000) == (void *)cuGraphAddNode_v2);
    CHECK(symbol("cuGraphExecUpdate", 13000) == (void *)cuGraphExecUpdate_v2);
    CHECK(symbol("cuCtxCreate", 12000) == (void *)cuCtxCreate_v2);
    CHECK(symbol("cuCtxCreate", 13000) == (void *)cuCtxCreate_v4);
    FAILS(CUDA_ERROR_NOT_FOUND,
          cuGetProcAddress_v2("cuMemAllocAsync", &address, 11000, 0, &status));
    CHECK(status == CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT && address == NULL);
    FAILS(CUDA_ERROR_NOT_FOUND, cuGetProcAddress_v2("cuNothing", &address, 13000, 0, &status));
    CHECK(status == CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
    FAILS(CUDA_ERROR_INVALID_VALUE, cuGetProcAddress_v2("cuInit", &address, 99000, 0, &status));
    FAILS(CUDA_ERROR_NOT_INITIALIZED, cuDeviceGetCount(&(int){0}));
}

static void test_devices(void)
{
    CUdevice device;
    CUuuid first, second;
    int count = 0, major = 9, minor = 9;
    char name[64], id[16];
    CU(cuInit(0));
    CU(cuInit(0));
    CU(cuDeviceGetCount(&count));
    CHECK(count == 3);
    FAILS(CUDA_ERROR_INVALID_DEVICE, cuDeviceGet(&device, 3));
    CU(cuDeviceGet(&device, 2));
    CU(cuDeviceGetName(name, sizeof name, device));
    CHECK(!strcmp(name, "Software GPU 2"));
    CU(cuDeviceGetUuid_v2(&first, 0));
    CU(cuDeviceGetUuid_v2(&second, 1));
    CHECK(memcmp(&first, &second, sizeof first) != 0);
    CU(cuDeviceGetPCIBusId(id, sizeof id, 2));
    CU(cuDeviceGetByPCIBusId(&device, id));
    CHECK(device == 2);
    CU(cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0));
    CU(cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0));
    CHECK(major == 0 && minor == 0);
    FAILS(CUDA_ERROR_INVALID_VALUE, cuDeviceGetAttribute(&major, 0, 0));
}

static void test_no_device(void)
{
    FAILS(CUDA_ERROR_NO_DEVICE, cuInit(0));
}

static void test_bad_settings(void)
{
    FAILS(CUDA_ERROR_INVALID_VALUE, cuInit(0));
    CHECK(rig_said("KEEL_SIM_CUDA: "));
    FAILS(CUDA_ERROR_NOT_INITIALIZED, cuCtxSynchronize());
}

static void *no_context_here(void *user)
{
    CUdeviceptr address;
    FAILS(CUDA_ERROR_INVALID_CONTEXT, cuMemAlloc_v2(&address, 4));
    return NULL;
}

static void test_contexts(void)
{
    CUcontext primary, again, own, current;
    CUdeviceptr address;
    pthread_t thread;
    unsigned flags;
    int active;
    CU(cuInit(0));
    CU(cuDevicePrimaryCtxGetState(0, &flags, &active));
    CHECK(!active);
    FAILS(CUDA_ERROR_INVALID_CONTEXT, cuMemAlloc_v2(&address, 4));
    CU(cuDevicePrimaryCtxRetain(&primary, 0));
    CU(cuDevicePrimaryCtxRetain(&again, 0));
    CHECK(primary == again);
    CU(cuCtxGetCurrent(&current));
    CHECK(current == NULL);
    CU(cuCtxSetCurrent(primary));
    CU(cuMemAlloc_v2(&address, 4));
    CHECK(pthread_create(&thread, NULL, no_context_here, NULL) == 0);
    CHECK(pthread_join(thread, NULL) == 0);

    CU(cuCtxCreate_v4(&own, NULL, CU_CTX_SCHED_BLOCKING_SYNC, 0));
    CU(cuCtxGetCurrent(&current));
    CHECK(current == own && own != primary);
    CU(cuCtxPopCurrent_v2(&current));
    CHECK(current == own);
    CU(cuCtxGetCurrent(&current));
    CHECK(current == primary);
    CU(cuCtxPushCurrent_v2(own));
    CU(cuCtxDestroy_v2(own));
    CU(cuCtxGetCurrent(&current));
    CHECK(current == primary);
    FAILS(CUDA_ERROR_CONTEXT_IS_DESTROYED, cuCtxDestroy_v2(own));
    FAILS(CUDA_ERROR_INVALID_CONTEXT, cuCtxDestroy_v2(primary));

    CU(cuDevicePrimaryCtxRelease_v2(0));
    CU(cuMemsetD8_v2(address, 0, 4));
    CU(cuDevicePrimaryCtxRelease_v2(0));
    FAILS(CUDA_ERROR_CONTEXT_IS_DESTROYED, cuMemAlloc_v2(&address, 4));
    FAILS(CUDA_ERROR_INVALID_CONTEXT, cuDevicePrimaryCtxRelease_v2(0));
    CU(cuDevicePrimaryCtxRetain(&again, 0));
    CHECK(again == primary);
    CU(cuMemAlloc_v2(&address, 4));
}

// A context takes with it what it has, and with `leaks` says what that was. Graphs stay graphs.
static void test_leaks(void)
{
    rig_context();
    CUdeviceptr address;
    CUstream stream;
    CUevent event;
    CU(cuMemAlloc_v2(&address, 4));
    CU(cuStreamCreate(&stream, 0));
    CU(cuEventCreate(&event, 0));
    CUgraph graph;
    CUgraphExec exec;
    CU(cuGraphCreate(&graph, 0));
    CU(cuGraphInstantiateWithFlags(&exec, graph, 0));
    rig_module();
    CU(cuDevicePrimaryCtxRelease_v2(0));
    CHECK(rig_said("1 streams, 1 events, 1 allocations, 1 modules, 1 graphs, 1 executable graphs"));
    FAILS(CUDA_ERROR_INVALID_HANDLE, cuEventDestroy_v2(event));
    CU(cuGraphExecDestroy(exec));
    CU(cuGraphDestroy(graph));
}

static void *load_file(size_t *size)
{
    FILE *file = fopen(rig_kernels, "rb");
    CHECK(file != NULL);
    char *bytes = malloc(1 << 22);
    *size = fread(bytes, 1, 1 << 22, file);
    fclose(file);
    return bytes;
}

static void test_modules(void)
{
    rig_context();
    size_t size, global_size = 0;
    void *bytes = load_file(&size);
    CUmodule first, second;
    CUfunction function;
    CUdeviceptr global, out;
    uint32_t words[4];
    unsigned count = 0;
    CU(cuModuleLoadData(&first, bytes));
    CU(cuModuleLoadData(&second, bytes));
    memset(bytes, 0, size);
    CU(cuModuleGetFunctionCount(&count, first));
    CHECK(count == 14);
    FAILS(CUDA_ERROR_NOT_FOUND, cuModuleGetFunction(&function, first, "nothing"));
    CU(cuModuleGetFunction(&function, first, "use_variable"));
    CU(cuModuleGetGlobal_v2(&global, &global_size, first, "variable"));
    CHECK(global_size == 16);
    FAILS(CUDA_ERROR_NOT_FOUND, cuModuleGetGlobal_v2(&global, &global_size, first, "nothing"));
    CU(cuMemsetD32_v2(global, 50, 2));
    CU(cuMemAlloc_v2(&out, 16));
    void *params[] = {&out};
    CU(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
    CU(cuMemcpyDtoH_v2(words, out, 16));
    CHECK(words[0] == 50 && words[1] == 50 && words[2] == 3 && words[3] == 4);
    // The other module has variables of its own.
    CU(cuModuleGetGlobal_v2(&global, NULL, second, "variable"));
    CU(cuMemcpyDtoH_v2(words, global, 16));
    CHECK(words[0] == 1);
    CU(cuModuleUnload(first));
    FAILS(CUDA_ERROR_INVALID_HANDLE, cuModuleUnload(first));
    FAILS(CUDA_ERROR_INVALID_HANDLE,
          cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
    CU(cuModuleUnload(second));
    FAILS(CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoH_v2(words, global, 16));
}

static void test_bad_images(void)
{
    rig_context();
    CUmodule module;
    char log[200] = "x";
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {log, (void *)(uintptr_t)sizeof log};
    FAILS(CUDA_ERROR_NO_BINARY_FOR_GPU,
          cuModuleLoadDataEx(&module, "\x50\xed\x55\xba\1", 2, options, values)); // a fat binary
    CHECK(strstr(log, "neither an ELF file nor PTX") != NULL);
    CHECK((uintptr_t)values[1] == strlen(log));
    size_t size;
    char *bytes = load_file(&size);
    bytes[18] = (char)190; // the machine, now EM_CUDA
    FAILS(CUDA_ERROR_NO_BINARY_FOR_GPU, cuModuleLoadData(&module, bytes));
    FAILS(CUDA_ERROR_INVALID_VALUE, cuModuleLoadData(&module, NULL));
    FAILS(CUDA_ERROR_FILE_NOT_FOUND, cuModuleLoad(&module, "/nowhere/at/all"));
    // An object of this processor that is no image.
    Dl_info info;
    CHECK(dladdr((void *)cuInit, &info) != 0);
    FAILS(CUDA_ERROR_INVALID_IMAGE, cuModuleLoad(&module, info.dli_fname));
}

static CUresult launch(const char *name, const unsigned dims[6], unsigned shared, void **extra)
{
    return cuLaunchKernel(rig_kernel(name), dims[0], dims[1], dims[2], dims[3], dims[4], dims[5],
                          shared, NULL, NULL, extra);
}

static void test_launches(void)
{
    rig_context();
    CUdeviceptr out;
    uint32_t words[8];
    CU(cuMemAlloc_v2(&out, 64));
    struct {
        CUdeviceptr x;
        uint64_t factor, term;
    } block = {out, 0, 8};
    size_t size = sizeof block;
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &block, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
                     CU_LAUNCH_PARAM_END};
    CU(launch("scale", (unsigned[]){1, 1, 1, 8, 1, 1}, 0, extra));
    CU(cuMemcpyDtoH_v2(words, out, 32));
    CHECK(words[0] == 8 && words[7] == 8);
    size = 16;
    FAILS(CUDA_ERROR_INVALID_VALUE, launch("scale", (unsigned[]){1, 1, 1, 8, 1, 1}, 0, extra));
    FAILS(CUDA_ERROR_INVALID_VALUE, launch("empty", (unsigned[]){0, 1, 1, 1, 1, 1}, 0, NULL));
    FAILS(CUDA_ERROR_INVALID_VALUE, launch("empty", (unsigned[]){1, 65536, 1, 1, 1, 1}, 0, NULL));
    FAILS(CUDA_ERROR_INVALID_VALUE, launch("empty", (unsigned[]){1, 1, 1, 1024, 2, 1}, 0, NULL));
    FAILS(CUDA_ERROR_INVALID_VALUE, launch("fixed", (unsigned[]){1, 1, 1, 4, 8, 1}, 0, NULL));
    FAILS(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES,
          launch("small", (unsigned[]){1, 1, 1, 65, 1, 1}, 0, NULL));
    CU(launch("fixed", (unsigned[]){1, 1, 1, 8, 4, 1}, 0, NULL));
    void *params[] = {&out, &size, &size};
    FAILS(CUDA_ERROR_INVALID_VALUE,
          cuLaunchKernel(rig_kernel("scale"), 1, 1, 1, 1, 1, 1, 0, NULL, params, extra));
    CUlaunchConfig config = {1, 1, 1, 8, 4, 1, 0, NULL, NULL, 0};
    CU(cuLaunchKernelEx(&config, rig_kernel("fixed"), NULL, NULL));
    CU(cuCtxSynchronize());
}

// Above 48 KiB a function must have asked for it.
static void test_shared_memory(void)
{
    rig_context();
    CUfunction function = rig_kernel("shared");
    CUdeviceptr out;
    uint32_t words[2];
    int value = 0;
    CU(cuMemAlloc_v2(&out, 64));
    void *params[] = {&out};
    CU(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, function));
    CHECK(value == 1024);
    unsigned most = 48 * 1024 - 1024;
    CU(cuLaunchKernel(function, 2, 1, 1, 1, 1, 1, most, NULL, params, NULL));
    CU(cuMemcpyDtoH_v2(words, out, 8));
    CHECK(words[0] == 48 * 1024 && words[1] == 48 * 1024);
    FAILS(CUDA_ERROR_INVALID_VALUE,
          cuLaunchKernel(function, 2, 1, 1, 1, 1, 1, most + 1, NULL, params, NULL));
    CUfunction_attribute attribute = CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
    FAILS(CUDA_ERROR_INVALID_VALUE, cuFuncSetAttribute(function, attribute, 227 * 1024));
    CU(cuFuncSetAttribute(function, attribute, 226 * 1024));
    CU(cuLaunchKernel(function, 2, 1, 1, 1, 1, 1, 226 * 1024, NULL, params, NULL));
    CU(cuMemcpyDtoH_v2(words, out, 8));
    CHECK(words[0] == 227 * 1024 && words[1] == 227 * 1024);
}

static void test_libraries(void)
{
    rig_context();
    size_t size;
    CUlibrary library;
    CUkernel kernel;
    CUfunction function;
    const char *name = NULL;
    CU(cuLibraryLoadData(&library, load_file(&size), NULL, NULL, 0, NULL, NULL, 0));
    CU(cuLibraryGetKernel(&kernel, library, "empty"));
    CU(cuKernelGetFunction(&function, kernel));
    CU(cuFuncGetName(&name, function));
    CHECK(!strcmp(name, "empty"));
    CU(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
    CU(cuCtxSynchronize());
    CU(cuLibraryUnload(library));
}

static void test_errors_have_names(void)
{
    const char *text = NULL;
    CU(cuGetErrorName(CUDA_ERROR_ILLEGAL_ADDRESS, &text));
    CHECK(!strcmp(text, "CUDA_ERROR_ILLEGAL_ADDRESS"));
    CU(cuGetErrorString(CUDA_ERROR_OUT_OF_MEMORY, &text));
    CHECK(!strcmp(text, "out of memory"));
    FAILS(CUDA_ERROR_INVALID_VALUE, cuGetErrorName((CUresult)12345, &text));
    CHECK(text == NULL);
}

static void *primary_release(void *number)
{
    __atomic_store_n((int *)number, thread_number(), __ATOMIC_RELEASE);
    CU(cuDevicePrimaryCtxRelease_v2(0));
    return NULL;
}

// One that is retained while the one before it is being destroyed, which takes as long as a copy
// that is under way, is another one.
static void test_primary_contexts_come_and_go(void)
{
    pthread_t other;
    int number = 0;
    CUdeviceptr memory;
    CUstream stream;
    CUcontext context = rig_context();
    CU(cuMemAlloc_v2(&memory, 128));
    CU(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    CU(cuMemcpyDtoDAsync_v2(memory, memory + 64, 64, stream));
    CHECK(pthread_create(&other, NULL, primary_release, &number) == 0);
    while (!__atomic_load_n(&number, __ATOMIC_ACQUIRE)) usleep(1000);
    asleep(number);
    CU(cuDevicePrimaryCtxRetain(&context, 0));
    CU(cuCtxSetCurrent(context));
    CU(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    CHECK(pthread_join(other, NULL) == 0);
    CU(cuStreamSynchronize(stream));
    CU(cuStreamDestroy_v2(stream));
    CU(cuDevicePrimaryCtxRelease_v2(0));
}

static unsigned threads_count(void)
{
    unsigned count = 0;
    DIR *folder = opendir("/proc/self/task");
    while (readdir(folder)) count++;
    closedir(folder);
    return count;
}

// What a program counts before its work is what it finds afterwards.
static void test_early_threads(void)
{
    CUdeviceptr memory;
    CUstream streams[4];
    CU(cuInit(0));
    unsigned none = threads_count();
    (void)rig_context();
    unsigned before = threads_count();
    CHECK(before > none);
    CU(cuMemAlloc_v2(&memory, 4096));
    for (int i = 0; i < 4; i++) {
        CU(cuStreamCreate(&streams[i], CU_STREAM_NON_BLOCKING));
        CU(cuMemsetD8Async(memory, 1, 4096, streams[i]));
    }
    for (int i = 0; i < 4; i++) CU(cuStreamSynchronize(streams[i]));
    CHECK(threads_count() == before);
}

int main(int argc, char **argv)
{
    if (argc != 2) return 2;
    rig_kernels = argv[1];
    RUN("", test_symbols);
    RUN("devices=3,memory=16M", test_devices);
    RUN("devices=0", test_no_device);
    RUN("devices=1,colour=blue", test_bad_settings);
    RUN("devices=99", test_bad_settings);
    RUN("fail=cuMemAlloc", test_bad_settings);
    RUN("", test_contexts);
    RUN("slow=100000", test_primary_contexts_come_and_go);
    RUN("leaks=1", test_leaks);
    rig_run_dying("test_leaks", "leaks=2", test_leaks, SIGABRT);
    RUN("quirk=early", test_early_threads);
    RUN("", test_modules);
    RUN("", test_bad_images);
    RUN("", test_launches);
    RUN("", test_shared_memory);
    RUN("", test_libraries);
    RUN("", test_errors_have_names);
    return rig_result();
}
