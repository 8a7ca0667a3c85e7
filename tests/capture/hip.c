// SPDX-License-Identifier: Apache-2.0
// hip FILE CASE: a small HIP program, to be traced. FILE has the kernels of tests/sim/amd. It
// prints what it computed. check.py knows how often each case calls what. Built with OPENED it
// opens HIP at run time, for itself alone, and looks the functions up; with PRIVATE as well it does
// so by dlvsym, which no tracer replaces. Built with COUNTED it has
// HIP report to it, and prints how often each function was called.
#include <dlfcn.h>
#include <hip/hip_runtime_api.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { COUNT = 1000, BYTES = COUNT * 4, GROUPS = (COUNT + 63) / 64, THREADS = 4, ROUNDS = 25 };

#define FUNCTIONS(X)                                                                               \
    X(hipMalloc)                                                                                   \
    X(hipFree)                                                                                     \
    X(hipMemcpy)                                                                                   \
    X(hipMemcpyAsync)                                                                              \
    X(hipStreamCreate)                                                                             \
    X(hipStreamDestroy)                                                                            \
    X(hipStreamSynchronize)                                                                        \
    X(hipStreamWaitEvent)                                                                          \
    X(hipEventCreate)                                                                              \
    X(hipEventRecord)                                                                              \
    X(hipEventDestroy)                                                                             \
    X(hipEventElapsedTime)                                                                         \
    X(hipModuleLoad)                                                                               \
    X(hipModuleGetFunction)                                                                        \
    X(hipModuleLaunchKernel)                                                                       \
    X(hipModuleUnload)                                                                             \
    X(hipGraphCreate)                                                                              \
    X(hipGraphAddKernelNode)                                                                       \
    X(hipGraphInstantiate)                                                                         \
    X(hipGraphLaunch)                                                                              \
    X(hipGraphExecDestroy)                                                                         \
    X(hipGraphDestroy)                                                                             \
    X(hipDeviceSynchronize)                                                                        \
    X(hipLaunchKernel)

static struct {
#define MEMBER(name) __typeof__(name) *name;
    FUNCTIONS(MEMBER)
#undef MEMBER
} hip;

static void check(int good, const char *what, int line)
{
    if (good) return;
    fprintf(stderr, "line %d: %s\n", line, what);
    exit(1);
}
#define CHECK(condition) check(condition, #condition, __LINE__)
#define HIP(call)        check(hip.call == hipSuccess, #call, __LINE__)

#ifdef OPENED
#ifndef HIP_LIBRARY
#define HIP_LIBRARY "libamdhip64.so.5"
#endif
#ifdef PRIVATE
#define LOOK_UP look_up
static void *look_up(void *library, const char *name)
{
    static const char *const versions[] = {"hip_4.2", "hip_4.3", "hip_4.4", "hip_4.5",
                                           "hip_5.0", "hip_5.1", "hip_5.2"};
    void *found = NULL;
    for (size_t i = 0; !found && i < sizeof versions / sizeof *versions; i++)
        found = dlvsym(library, name, versions[i]);
    return found;
}
#else
#define LOOK_UP dlsym
#endif
static void find_all(void)
{
    void *library = dlopen(HIP_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    CHECK(library != NULL);
#define FIND(name) CHECK((hip.name = (__typeof__(name) *)LOOK_UP(library, #name)) != NULL);
    FUNCTIONS(FIND)
#undef FIND
    CHECK(dlsym(library, "hipNoSuchFunction") == NULL && dlerror() != NULL);
}
#else
static void find_all(void)
{
#define FIND(name) hip.name = name;
    FUNCTIONS(FIND)
#undef FIND
}
#endif

static hipModule_t module;
static hipFunction_t add_one;

static void launch(uint32_t *data, hipStream_t stream)
{
    uint32_t count = COUNT;
    void *arguments[] = {&data, &count};
    HIP(hipModuleLaunchKernel(add_one, GROUPS, 1, 1, 64, 1, 1, 0, stream, arguments, NULL));
}

static uint32_t *device_make(void)
{
    static const uint32_t zeros[COUNT];
    uint32_t *data;
    HIP(hipMalloc((void **)&data, BYTES));
    HIP(hipMemcpy(data, zeros, BYTES, hipMemcpyHostToDevice));
    return data;
}

static void device_print(uint32_t *data)
{
    uint32_t host[COUNT];
    HIP(hipMemcpy(host, data, BYTES, hipMemcpyDeviceToHost));
    for (int i = 1; i < COUNT; i++) CHECK(host[i] == host[0]);
    printf("%u\n", host[0]);
    HIP(hipFree(data));
}

static void run_plain(void)
{
    uint32_t *data = device_make();
    for (int i = 0; i < 10; i++) launch(data, NULL);
    HIP(hipDeviceSynchronize());
    // One that fails fails as it would.
    hipFunction_t none;
    CHECK(hip.hipModuleGetFunction(&none, module, "no_such_kernel") == hipErrorNotFound);
    device_print(data);
}

static void run_streams(void)
{
    enum { STREAMS = 3 };
    hipStream_t streams[STREAMS];
    uint32_t *data[STREAMS];
    hipEvent_t begin, end;
    float milliseconds = -1;
    HIP(hipEventCreate(&begin));
    HIP(hipEventCreate(&end));
    for (int i = 0; i < STREAMS; i++) {
        HIP(hipStreamCreate(&streams[i]));
        data[i] = device_make();
    }
    HIP(hipEventRecord(begin, streams[0]));
    for (int k = 0; k < 5; k++)
        for (int i = 0; i < STREAMS; i++) launch(data[i], streams[i]);
    HIP(hipEventRecord(end, streams[0]));
    HIP(hipStreamWaitEvent(streams[1], end, 0));
    launch(data[0], streams[1]);
    for (int i = 0; i < STREAMS; i++) HIP(hipStreamSynchronize(streams[i]));
    HIP(hipEventElapsedTime(&milliseconds, begin, end));
    CHECK(milliseconds > 0 && milliseconds < 10000);
    for (int i = 0; i < STREAMS; i++) {
        device_print(data[i]);
        HIP(hipStreamDestroy(streams[i]));
    }
    HIP(hipEventDestroy(begin));
    HIP(hipEventDestroy(end));
}

static void *thread_run(void *user)
{
    hipStream_t stream;
    HIP(hipStreamCreate(&stream));
    for (int i = 0; i < ROUNDS; i++) launch(user, stream);
    HIP(hipStreamSynchronize(stream));
    HIP(hipStreamDestroy(stream));
    return NULL;
}

static void run_threads(void)
{
    pthread_t threads[THREADS];
    uint32_t *data[THREADS];
    for (int i = 0; i < THREADS; i++) {
        data[i] = device_make();
        CHECK(pthread_create(&threads[i], NULL, thread_run, data[i]) == 0);
    }
    for (int i = 0; i < THREADS; i++) {
        CHECK(pthread_join(threads[i], NULL) == 0);
        device_print(data[i]);
    }
}

static void run_graph(void)
{
    enum { NODES = 8 };
    hipStream_t stream;
    hipGraph_t graph;
    hipGraphExec_t exec;
    hipGraphNode_t nodes[NODES];
    uint32_t *data = device_make(), count = COUNT;
    void *arguments[] = {&data, &count};
    hipKernelNodeParams kernel = {.blockDim = {64, 1, 1},
                                  .gridDim = {GROUPS, 1, 1},
                                  .func = (void *)add_one,
                                  .kernelParams = arguments};
    HIP(hipStreamCreate(&stream));
    HIP(hipGraphCreate(&graph, 0));
    for (int i = 0; i < NODES; i++)
        HIP(hipGraphAddKernelNode(&nodes[i], graph, i ? &nodes[i - 1] : NULL, i != 0, &kernel));
    HIP(hipGraphInstantiate(&exec, graph, NULL, NULL, 0));
    for (int i = 0; i < 5; i++) HIP(hipGraphLaunch(exec, stream));
    HIP(hipStreamSynchronize(stream));
    HIP(hipGraphExecDestroy(exec));
    HIP(hipGraphDestroy(graph));
    device_print(data);
    HIP(hipStreamDestroy(stream));
}

// A child that leaves the GPU to its parent, and ends in good order.
static void run_fork(void)
{
    uint32_t *data = device_make();
    for (int i = 0; i < 10; i++) launch(data, NULL);
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) exit(0);
    int status = -1;
    CHECK(waitpid(pid, &status, 0) == pid && status == 0);
    device_print(data);
}

#ifndef OPENED
// A function of C++, by the name that compilers make of its types. It takes numbers of work-items.
#define EXTENDED                                                                                   \
    (hipFunction_t kernel, uint32_t x, uint32_t y, uint32_t z, uint32_t group_x, uint32_t group_y, \
     uint32_t group_z, size_t group_bytes, hipStream_t stream, void **arguments, void **extra,     \
     hipEvent_t begin, hipEvent_t end, uint32_t flags)
__attribute__((weak)) hipError_t launch_extended EXTENDED __asm__(
    "_Z24hipExtModuleLaunchKernelP18ihipModuleSymbol_tjjjjjjmP12ihipStream_tPPvS4_"
    "P11ihipEvent_tS6_j");

static void run_extended(void)
{
    uint32_t *data = device_make(), count = COUNT;
    void *arguments[] = {&data, &count};
    CHECK(launch_extended != NULL);
    for (int i = 0; i < 6; i++)
        CHECK(launch_extended(add_one, GROUPS * 64, 1, 1, 64, 1, 1, 0, NULL, arguments, NULL, NULL,
                              NULL, 0) == hipSuccess);
    HIP(hipDeviceSynchronize());
    device_print(data);
}

// As hipcc compiles k<<<...>>>(): a function of the host stands for the kernel, whose code object
// is registered with it before main.
void **__hipRegisterFatBinary(const void *wrapper);
#define REGISTER                                                                                   \
    (void **modules, const void *host, char *device, const char *name, unsigned limit,             \
     void *thread, void *block, void *block_size, void *grid_size, int *wave)
void __hipRegisterFunction REGISTER;

static void stub(void) {}

static char *file_read(const char *path, size_t *size, size_t before)
{
    FILE *file = fopen(path, "rb");
    CHECK(file && fseek(file, 0, SEEK_END) == 0);
    *size = (size_t)ftell(file);
    char *bytes = calloc(1, before + *size);
    CHECK(bytes && fseek(file, 0, SEEK_SET) == 0);
    CHECK(fread(bytes + before, 1, *size, file) == *size);
    fclose(file);
    return bytes;
}

// A bundle of an empty object for the host and the one for the GPU, at 4096.
static const void *bundle_make(const char *path)
{
    static const char magic[] = "__CLANG_OFFLOAD_BUNDLE__";
    static const char *const names[] = {"host-x86_64-unknown-linux",
                                        "hipv4-amdgcn-amd-amdhsa--gfx90a"};
    size_t size, at = 0;
    char *bundle = file_read(path, &size, 4096);
    uint64_t head[] = {2};
    memcpy(bundle + at, magic, 24);
    memcpy(bundle + (at += 24), head, 8);
    at += 8;
    for (int i = 0; i < 2; i++) {
        uint64_t entry[] = {4096, i ? size : 0, strlen(names[i])};
        memcpy(bundle + at, entry, sizeof entry);
        memcpy(bundle + (at += sizeof entry), names[i], entry[2]);
        at += entry[2];
    }
    return bundle;
}

static void run_compiled(const char *path)
{
    static struct {
        uint32_t magic, version;
        const void *bundle;
        void *unused;
    } wrapper = {0x48495046, 1, NULL, NULL};
    wrapper.bundle = bundle_make(path);
    void **modules = __hipRegisterFatBinary(&wrapper);
    __hipRegisterFunction(modules, (const void *)stub, (char *)"add_one", "add_one", UINT32_MAX,
                          NULL, NULL, NULL, NULL, NULL);
    uint32_t *data = device_make(), count = COUNT;
    void *arguments[] = {&data, &count};
    for (int i = 0; i < 6; i++)
        HIP(hipLaunchKernel((const void *)stub, (dim3){GROUPS, 1, 1}, (dim3){64, 1, 1}, arguments,
                            0, NULL));
    HIP(hipDeviceSynchronize());
    device_print(data);
}
#endif

#ifdef COUNTED
enum { CALLS = 3, KNOWN = 1024, NOT_WANTED = 1 };
void hipRegisterTracerCallback(int (*report)(int domain, uint32_t operation, void *data));
static _Atomic int told[KNOWN];

static int report(int domain, uint32_t operation, void *data)
{
    if (domain == CALLS && data && operation < KNOWN) told[operation]++;
    return NOT_WANTED;
}

static void told_print(void)
{
    for (uint32_t i = 0; i < KNOWN; i++)
        if (told[i]) fprintf(stderr, "told %s %d\n", hipApiName(i), told[i]);
}
#else
#define told_print()
#endif

int main(int argc, char **argv)
{
    CHECK(argc == 3);
    find_all();
#ifndef OPENED
    if (strcmp(argv[2], "compiled") == 0) {
        run_compiled(argv[1]);
        return 7;
    }
#endif
    HIP(hipModuleLoad(&module, argv[1]));
#ifdef COUNTED
    hipRegisterTracerCallback(report);
#endif
    HIP(hipModuleGetFunction(&add_one, module, "add_one"));
#ifndef OPENED
    if (strcmp(argv[2], "extended") == 0) run_extended();
#endif
    if (strcmp(argv[2], "plain") == 0) run_plain();
    if (strcmp(argv[2], "streams") == 0) run_streams();
    if (strcmp(argv[2], "threads") == 0) run_threads();
    if (strcmp(argv[2], "graph") == 0) run_graph();
    if (strcmp(argv[2], "fork") == 0) run_fork();
    HIP(hipModuleUnload(module));
    told_print();
    return 7; // to see that it comes through
}
