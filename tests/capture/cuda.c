// SPDX-License-Identifier: Apache-2.0
// cuda KERNELS CASE: a program on CUDA's driver API, to be traced. Its counts of calls and kernels
// are those of check_cuda.py. Ends with 7 if its results are right.
#include <dlfcn.h>
#include <glob.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sim/cuda/api.h"
#include "src/capture/cuda/nvtx.h"

enum { WORDS = 256, LAUNCHES = 10, THREADS = 4, NODES = 8, REPLAYS = 5 };

static CUcontext context;
static CUfunction scale;

static void good(CUresult result, const char *what)
{
    if (result == CUDA_SUCCESS) return;
    fprintf(stderr, "%s: %d\n", what, (int)result);
    exit(1);
}
#define CU(call) good((call), #call)

static void begin(const char *kernels)
{
    CUmodule module;
    CU(cuInit(0));
    CU(cuDevicePrimaryCtxRetain(&context, 0));
    CU(cuCtxSetCurrent(context));
    CU(cuModuleLoad(&module, kernels));
    CU(cuModuleGetFunction(&scale, module, "scale"));
}

// x = x * 1 + 1
static void launch(CUdeviceptr x, CUstream stream)
{
    uint64_t factor = 1, term = 1;
    void *params[] = {&x, &factor, &term};
    CU(cuLaunchKernel(scale, WORDS / 64, 1, 1, 64, 1, 1, 0, stream, params, NULL));
}

static bool all_are(CUdeviceptr x, uint32_t wanted)
{
    uint32_t words[WORDS];
    CU(cuMemcpyDtoH_v2(words, x, sizeof words));
    for (int i = 0; i < WORDS; i++)
        if (words[i] != wanted) return false;
    return true;
}

static bool plain(void)
{
    CUdeviceptr x;
    uint32_t words[WORDS] = {0};
    CU(cuMemAlloc_v2(&x, sizeof words));
    CU(cuMemcpyHtoD_v2(x, words, sizeof words));
    CU(cuMemsetD32Async(x, 5, WORDS, NULL));
    for (int i = 0; i < LAUNCHES; i++) launch(x, NULL);
    CU(cuCtxSynchronize());
    bool right = all_are(x, 5 + LAUNCHES);
    right = right && cuMemFree_v2(x + 1) != CUDA_SUCCESS; // a call that fails
    CU(cuMemFree_v2(x));
    return right;
}

static bool is_recorded(const char *parts)
{
    char pattern[512];
    glob_t found;
    snprintf(pattern, sizeof pattern, "%s/%d-*.trace", parts, (int)getpid());
    bool any = glob(pattern, 0, NULL, &found) == 0;
    globfree(&found);
    return any;
}

// Launches, has recording started by the tool $START, whose parts are in $PARTS, and launches until
// there is something of it, and some more.
static bool late(void)
{
    const char *start = getenv("START"), *parts = getenv("PARTS");
    char command[512];
    CUdeviceptr x;
    CU(cuMemAlloc_v2(&x, WORDS * 4));
    launch(x, NULL);
    CU(cuCtxSynchronize());
    snprintf(command, sizeof command, "'%s' trace start %d >&2", start, (int)getpid());
    if (start && system(command)) return false;
    while (start && !is_recorded(parts)) {
        launch(x, NULL);
        CU(cuCtxSynchronize());
    }
    for (int i = 0; i < LAUNCHES; i++) launch(x, NULL);
    CU(cuCtxSynchronize());
    CU(cuMemFree_v2(x));
    return true;
}

static void *thread_run(void *right)
{
    CUdeviceptr x;
    CUstream stream;
    CU(cuCtxSetCurrent(context));
    CU(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    CU(cuMemAlloc_v2(&x, WORDS * 4));
    CU(cuMemsetD32Async(x, 0, WORDS, stream));
    for (int i = 0; i < LAUNCHES; i++) launch(x, stream);
    CU(cuStreamSynchronize(stream));
    *(bool *)right = all_are(x, LAUNCHES);
    CU(cuMemFree_v2(x));
    CU(cuStreamDestroy_v2(stream));
    return NULL;
}

static bool threads(void)
{
    pthread_t started[THREADS];
    bool right[THREADS] = {false}, all = true;
    for (int i = 0; i < THREADS; i++) pthread_create(&started[i], NULL, thread_run, &right[i]);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(started[i], NULL);
        all = all && right[i];
    }
    return all;
}

static CUgraphNode node_add(CUgraph graph, CUgraphNode after, CUdeviceptr x)
{
    CUgraphNode node;
    uint64_t factor = 1, term = 1;
    void *params[] = {&x, &factor, &term};
    CUDA_KERNEL_NODE_PARAMS kernel = {.func = scale,
                                      .gridDimX = WORDS / 64,
                                      .gridDimY = 1,
                                      .gridDimZ = 1,
                                      .blockDimX = 64,
                                      .blockDimY = 1,
                                      .blockDimZ = 1,
                                      .kernelParams = params};
    CU(cuGraphAddKernelNode_v2(&node, graph, &after, after != NULL, &kernel));
    return node;
}

static bool graph(void)
{
    CUdeviceptr x;
    CUstream stream;
    CUgraph made;
    CUgraphExec exec;
    CUgraphNode node = NULL;
    CU(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    CU(cuMemAlloc_v2(&x, WORDS * 4));
    CU(cuMemsetD32Async(x, 0, WORDS, stream));
    CU(cuGraphCreate(&made, 0));
    for (int i = 0; i < NODES; i++) node = node_add(made, node, x);
    CU(cuGraphInstantiateWithFlags(&exec, made, 0));
    for (int i = 0; i < REPLAYS; i++) CU(cuGraphLaunch(exec, stream));
    CU(cuStreamSynchronize(stream));
    bool right = all_are(x, NODES * REPLAYS);
    CU(cuGraphExecDestroy(exec));
    CU(cuGraphDestroy(made));
    CU(cuMemFree_v2(x));
    CU(cuStreamDestroy_v2(stream));
    return right;
}

static bool killed(void)
{
    plain();
    kill(getpid(), SIGKILL);
    return false;
}

// The child does not touch CUDA.
static bool forked(void)
{
    bool right = plain();
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) exit(3); // as a program does: what is recorded at its end is the parent's
    int status = 0;
    waitpid(child, &status, 0);
    return right && WIFEXITED(status) && WEXITSTATUS(status) == 3;
}

// What NVTX's header does at the first mark: it lets a library put functions into its tables.
static nvtx_fn core[16], domains[16];
static nvtx_fn *core_places[16], *domain_places[16];

static int table_get(uint32_t module, nvtx_fn ***table, unsigned *count)
{
    *table = module == NVTX_MODULE_CORE ? core_places : domain_places;
    *count = 16;
    return module == NVTX_MODULE_CORE || module == NVTX_MODULE_DOMAINS;
}

static const void *export_get(uint32_t table)
{
    static const nvtx_callbacks_t callbacks = {sizeof callbacks, table_get};
    return table == NVTX_TABLE_CALLBACKS ? &callbacks : NULL;
}

static bool nvtx_load(void)
{
    const char *path = getenv("NVTX_INJECTION64_PATH");
    void *library = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
    void *symbol = library ? dlsym(library, "InitializeInjectionNvtx2") : NULL;
    int (*load)(nvtx_export_fn) = (int (*)(nvtx_export_fn))(uintptr_t)symbol;
    for (int i = 0; i < 16; i++) {
        core_places[i] = &core[i];
        domain_places[i] = &domains[i];
    }
    return load && load(export_get) == 1;
}

static void *range_end(void *range)
{
    ((void (*)(uint64_t))core[NVTX_RANGE_END])(*(uint64_t *)range);
    return NULL;
}

static bool nvtx(void)
{
    pthread_t thread;
    if (!nvtx_load()) return !getenv("NVTX_INJECTION64_PATH");
    int (*push)(const char *) = (int (*)(const char *))core[NVTX_RANGE_PUSH_A];
    int (*push_wide)(const wchar_t *) = (int (*)(const wchar_t *))core[NVTX_RANGE_PUSH_W];
    int (*pop)(void) = (int (*)(void))core[NVTX_RANGE_POP];
    void *(*domain)(const char *) = (void *(*)(const char *))domains[NVTX_DOMAIN_CREATE_A];
    void *(*text)(void *, const char *) =
        (void *(*)(void *, const char *))domains[NVTX_DOMAIN_REGISTER_A];
    int (*domain_push)(void *, const nvtx_attributes_t *) =
        (int (*)(void *, const nvtx_attributes_t *))domains[NVTX_DOMAIN_RANGE_PUSH_EX];
    int (*domain_pop)(void *) = (int (*)(void *))domains[NVTX_DOMAIN_RANGE_POP];
    uint64_t (*start)(const char *) = (uint64_t (*)(const char *))core[NVTX_RANGE_START_A];
    bool right = push("outer") == 0 && push_wide(L"inn\u00e9r") == 1;
    void *own = domain("a domain");
    nvtx_attributes_t event = {.version = 3, .size = sizeof event};
    event.message_type = NVTX_REGISTERED;
    event.message.registered = text(own, "registered");
    right = right && domain_push(own, &event) == 0;
    uint64_t across = start("across");
    pthread_create(&thread, NULL, range_end, &across);
    pthread_join(thread, NULL);
    right = right && pop() == 1 && pop() == 0 && pop() == -1 && domain_pop(own) == 0;
    ((void (*)(const char *))core[NVTX_MARK_A])("mark");
    return right;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        bool (*run)(void);
    } cases[] = {{"plain", plain}, {"threads", threads}, {"graph", graph},  {"fork", forked},
                 {"nvtx", nvtx},   {"late", late},       {"killed", killed}};
    if (argc != 3) return 2;
    begin(argv[1]);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (strcmp(cases[i].name, argv[2]) != 0) continue;
        bool right = cases[i].run();
        puts(right ? "right" : "wrong");
        return right ? 7 : 1;
    }
    return 2;
}
