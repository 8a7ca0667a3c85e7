// SPDX-License-Identifier: Apache-2.0
#include "cuda.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

cuda_t cu;
static CUmodule module;

// Every function at the version whose prototype stands in sim/cuda/symbols.def.
static const struct {
    const char *name, *function;
    int version;
} symbols[] = {
#define SYMBOL(name, function, version, parameters) {#name, #function, version},
#include "sim/cuda/symbols.def"
#undef SYMBOL
};

// The last row asks by the function's own name, where there are several: under cuGraphInstantiate a
// card's library gives version 12000 a function with other parameters.
static void *symbol_find(const char *function)
{
    void *found = NULL;
    for (size_t i = 0; i < sizeof symbols / sizeof symbols[0]; i++) {
        void *other = NULL;
        if (strcmp(symbols[i].function, function) != 0) continue;
        if (cu.cuGetProcAddress_v2(symbols[i].name, &other, symbols[i].version, 0, NULL)) continue;
        if (!found || strcmp(symbols[i].name, function) == 0) found = other;
    }
    return found;
}

static void cuda_open(void)
{
    *(void **)&cu.cuGetProcAddress_v2 = dlsym(fact_library, "cuGetProcAddress_v2");
    if (!cu.cuGetProcAddress_v2) fact_skip("the driver is older than CUDA 12.0");
#define FIND(name)                                                                                 \
    *(void **)&cu.name = symbol_find(#name);                                                       \
    if (!cu.name) fact_skip("the driver has no " #name);
    CUDA_FUNCTIONS(FIND)
#undef FIND
    int error = cu.cuInit(0);
    if (error) fact_skip("cuInit returned %d", error);
}

// The other API, which the software library has in place of Vulkan.
static bool cuda_is_sim(void)
{
    return dlsym(fact_library, "simSemaphoreCreate") != NULL;
}

// The file that --kernels names: of kernels/, card.ptx for a card, sim.c as a shared object for
// sim.
static const char *image(void)
{
    static char bytes[1 << 20];
    if (bytes[0]) return bytes;
    FILE *file = fact_kernels ? fopen(fact_kernels, "rb") : NULL;
    if (!file) fact_skip("--kernels does not name a file of kernels");
    size_t size = fread(bytes, 1, sizeof bytes - 1, file);
    NEED(size > 0 && size < sizeof bytes - 1);
    fclose(file);
    return bytes;
}

CUmodule cuda_load(void)
{
    CUmodule loaded;
    CU(cu.cuModuleLoadData(&loaded, image()));
    return loaded;
}

// Kernels are loaded at once: one that is loaded by its first launch may wait for the device.
CUcontext cuda_begin(void)
{
    static const char *const names[] = {"empty", "mixed",  "gate",      "poke",   "append",
                                        "stamp", "choose", "countdown", "regrid", "reparam"};
    CUcontext context;
    CU(cu.cuDevicePrimaryCtxRetain(&context, 0));
    CU(cu.cuCtxSetCurrent(context));
    module = cuda_load();
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        CU(cu.cuFuncLoad(cuda_kernel(names[i])));
    return context;
}

CUfunction cuda_kernel(const char *name)
{
    CUfunction function;
    CU(cu.cuModuleGetFunction(&function, module, name));
    return function;
}

CUstream cuda_stream(void)
{
    CUstream stream;
    CU(cu.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    return stream;
}

CUevent cuda_event(void)
{
    CUevent event;
    CU(cu.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    return event;
}

uint32_t *cuda_words(void)
{
    void *memory;
    CU(cu.cuMemHostAlloc(&memory, 65536, CU_MEMHOSTALLOC_PORTABLE));
    memset(memory, 0, 65536);
    return memory;
}

CUdeviceptr cuda_memory(size_t size)
{
    CUdeviceptr address;
    CU(cu.cuMemAlloc_v2(&address, size));
    return address;
}

int cuda_attribute(CUdevice_attribute attribute)
{
    int value;
    CU(cu.cuDeviceGetAttribute(&value, attribute, 0));
    return value;
}

void cuda_launch(const char *name, CUstream stream, const uint64_t words[3])
{
    uint64_t copy[3];
    void *pointers[3];
    memcpy(copy, words, sizeof copy);
    for (int i = 0; i < 3; i++) pointers[i] = &copy[i];
    CU(cu.cuLaunchKernel(cuda_kernel(name), 1, 1, 1, 1, 1, 1, 0, stream, pointers, NULL));
}

gate_t gate_close(CUstream stream)
{
    gate_t gate = {cuda_words()};
    LAUNCH("gate", stream, cuda_at(gate.word));
    return gate;
}

void gate_open(void *gate)
{
    __atomic_store_n(((gate_t *)gate)->word, 1, __ATOMIC_RELEASE);
}

bool cuda_waits(void (*call)(void *user), void *user, unsigned patience_ms)
{
    CUstream stream = cuda_stream();
    gate_t gate = gate_close(stream);
    bool waits = fact_waits(&(fact_try_t){call, user, gate_open, &gate}, patience_ms);
    CU(cu.cuStreamSynchronize(stream));
    return waits;
}

void cuda_node(cuda_node_t *out, CUfunction function, const uint64_t words[3])
{
    memset(out, 0, sizeof *out);
    memcpy(out->words, words, sizeof out->words);
    for (int i = 0; i < 3; i++) out->pointers[i] = &out->words[i];
    out->params.func = function;
    out->params.gridDimX = out->params.gridDimY = out->params.gridDimZ = 1;
    out->params.blockDimX = out->params.blockDimY = out->params.blockDimZ = 1;
    out->params.kernelParams = out->pointers;
}

CUgraphNode cuda_add(CUgraph graph, const char *name, const uint64_t words[3], CUgraphNode after)
{
    cuda_node_t made;
    CUgraphNode node;
    cuda_node(&made, cuda_kernel(name), words);
    CU(cu.cuGraphAddKernelNode_v2(&node, graph, &after, after != NULL, &made.params));
    return node;
}

CUgraph cuda_graph(void)
{
    CUgraph graph;
    CU(cu.cuGraphCreate(&graph, 0));
    return graph;
}

CUgraphExec cuda_exec(CUgraph graph)
{
    CUgraphExec exec;
    CU(cu.cuGraphInstantiateWithFlags(&exec, graph, 0));
    return exec;
}

uint64_t cuda_updatable(CUgraphNode node)
{
    CUlaunchAttributeValue value = {.deviceUpdatableKernelNode = {.deviceUpdatable = 1}};
    CU(cu.cuGraphKernelNodeSetAttribute(node, CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE,
                                        &value));
    return cuda_at(value.deviceUpdatableKernelNode.devNode);
}

static const fact_t *const areas[] = {
    cuda_context_facts, cuda_stream_facts, cuda_event_facts,   cuda_wait_facts,
    cuda_memory_facts,  cuda_pool_facts,   cuda_module_facts,  cuda_graph_facts,
    cuda_update_facts,  cuda_error_facts,  cuda_capture_facts, NULL,
};

const fact_vendor_t fact_cuda = {"cuInit", cuda_is_sim, cuda_open, areas};
