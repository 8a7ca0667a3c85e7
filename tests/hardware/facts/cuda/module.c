// SPDX-License-Identifier: Apache-2.0
// Code: what is told of it, and which launches are refused.
#include "cuda.h"

#include <string.h>

static void parameters(void)
{
    cuda_begin();
    static const size_t wanted[3][2] = {{0, 4}, {8, 8}, {16, 2}};
    size_t offset, size;
    for (size_t i = 0; i < 3; i++) {
        RETURNS(CUDA_SUCCESS, cu.cuFuncGetParamInfo(cuda_kernel("mixed"), i, &offset, &size));
        REQUIRE(offset == wanted[i][0] && size == wanted[i][1]);
    }
    RETURNS(CUDA_ERROR_INVALID_VALUE,
            cu.cuFuncGetParamInfo(cuda_kernel("mixed"), 3, &offset, &size));
    RETURNS(CUDA_ERROR_INVALID_VALUE,
            cu.cuFuncGetParamInfo(cuda_kernel("empty"), 0, &offset, &size));
}

static void names(void)
{
    cuda_begin();
    CUfunction function;
    CUdeviceptr address;
    size_t size;
    CUmodule module = cuda_load();
    RETURNS(CUDA_ERROR_NOT_FOUND, cu.cuModuleGetFunction(&function, module, "nobody"));
    RETURNS(CUDA_ERROR_NOT_FOUND, cu.cuModuleGetGlobal_v2(&address, &size, module, "nothing"));
    RETURNS(CUDA_SUCCESS, cu.cuModuleGetFunction(&function, module, "empty"));
}

static void variables_are_the_modules(void)
{
    cuda_begin();
    CUmodule first = cuda_load(), second = cuda_load();
    CUdeviceptr one, two;
    size_t size;
    uint32_t words[3], *back = cuda_words();
    CUstream stream = cuda_stream();
    CU(cu.cuModuleGetGlobal_v2(&one, &size, first, "variable"));
    CU(cu.cuModuleGetGlobal_v2(&two, &size, second, "variable"));
    REQUIRE(one != two && size == 12);
    CU(cu.cuMemcpyAsync(cuda_at(back), one, 12, stream));
    CU(cu.cuStreamSynchronize(stream));
    memcpy(words, back, sizeof words);
    REQUIRE(words[0] == 5 && words[1] == 6 && words[2] == 7);
}

static void loaded(void)
{
    cuda_begin();
    CUmodule module = cuda_load();
    CUfunction function;
    CUfunctionLoadingState state = CU_FUNCTION_LOADING_STATE_UNLOADED;
    CU(cu.cuModuleGetFunction(&function, module, "poke"));
    RETURNS(CUDA_SUCCESS, cu.cuFuncLoad(function));
    CU(cu.cuFuncIsLoaded(&state, function));
    REQUIRE(state == CU_FUNCTION_LOADING_STATE_LOADED);
    RETURNS(CUDA_SUCCESS, cu.cuFuncLoad(function));
}

static CUresult launch(unsigned blocks, unsigned threads, unsigned shared)
{
    return cu.cuLaunchKernel(cuda_kernel("empty"), blocks, 1, 1, threads, 1, 1, shared, NULL, NULL,
                             NULL);
}

static void launches_refused(void)
{
    cuda_begin();
    int most = cuda_attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
    RETURNS(CUDA_ERROR_INVALID_VALUE, launch(0, 1, 0));
    RETURNS(CUDA_ERROR_INVALID_VALUE, launch(1, 0, 0));
    RETURNS(CUDA_ERROR_INVALID_VALUE, launch(1, (unsigned)most + 1, 0));
    RETURNS(CUDA_SUCCESS, launch(1, (unsigned)most, 0));
    RETURNS(CUDA_SUCCESS, cu.cuCtxSynchronize()); // the context is as before
}

static void shared_memory(void)
{
    cuda_begin();
    int plain = cuda_attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK);
    int most = cuda_attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
    const CUfunction_attribute attribute = CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
    fact_say("%d KiB, %d KiB if it is asked for", plain >> 10, most >> 10);
    NEED(most > plain);
    RETURNS(CUDA_SUCCESS, launch(1, 1, (unsigned)plain));
    RETURNS(CUDA_ERROR_INVALID_VALUE, launch(1, 1, (unsigned)plain + 1));
    RETURNS(CUDA_SUCCESS, cu.cuFuncSetAttribute(cuda_kernel("empty"), attribute, most));
    RETURNS(CUDA_SUCCESS, launch(1, 1, (unsigned)most));
    RETURNS(CUDA_ERROR_INVALID_VALUE, launch(1, 1, (unsigned)most + 1));
    RETURNS(CUDA_ERROR_INVALID_VALUE,
            cu.cuFuncSetAttribute(cuda_kernel("empty"), attribute, most + 1));
    RETURNS(CUDA_SUCCESS, cu.cuCtxSynchronize());
}

static void no_image(void)
{
    cuda_begin();
    static const char text[64] = "neither PTX nor a cubin";
    CUmodule module;
    CUresult error = cu.cuModuleLoadData(&module, text);
    fact_say("%d", (int)error);
    REQUIRE(error == CUDA_ERROR_INVALID_IMAGE || error == CUDA_ERROR_INVALID_PTX ||
            error == CUDA_ERROR_NO_BINARY_FOR_GPU);
    RETURNS(CUDA_SUCCESS, cu.cuCtxSynchronize());
}

static void unloaded_graph(void)
{
    cuda_begin();
    CUmodule module = cuda_load();
    CUfunction empty;
    cuda_node_t before, after;
    CUgraphNode node;
    CUgraph graph = cuda_graph();
    CUstream stream = cuda_stream();
    uint32_t *list = cuda_words();
    CU(cu.cuModuleGetFunction(&empty, module, "empty"));
    cuda_node(&before, empty, (uint64_t[3]){0});
    cuda_node(&after, cuda_kernel("append"), (uint64_t[3]){cuda_at(list), 5});
    CU(cu.cuGraphAddKernelNode_v2(&node, graph, NULL, 0, &before.params));
    CUgraphExec exec = cuda_exec(graph);
    CU(cu.cuGraphLaunch(exec, stream));
    CU(cu.cuStreamSynchronize(stream));
    CU(cu.cuModuleUnload(module));
    RETURNS(CUDA_SUCCESS, cu.cuGraphExecKernelNodeSetParams_v2(exec, node, &after.params));
    RETURNS(CUDA_SUCCESS, cu.cuGraphLaunch(exec, stream));
    CU(cu.cuStreamSynchronize(stream));
    REQUIRE(list[0] == 1 && list[1] == 5);
}

const fact_t cuda_module_facts[] = {
    {"module.parameters", "a function tells where its parameters are, and what comes after them",
     "CUDA driver API, cuFuncGetParamInfo", parameters, HOLDS, HOLDS, NULL},
    {"module.names", "names that a module does not have are not found",
     "CUDA driver API, cuModuleGetFunction", names, HOLDS, HOLDS, NULL},
    {"module.variables", "each module has variables of its own",
     "CUDA driver API, cuModuleGetGlobal", variables_are_the_modules, HOLDS, HOLDS, NULL},
    {"module.loaded", "cuFuncLoad loads a kernel before its first launch",
     "CUDA driver API, cuFuncLoad", loaded, HOLDS, HOLDS, NULL},
    {"module.launches_refused", "no blocks, no threads or too many of them cannot be launched",
     "CUDA driver API, cuLaunchKernel; " H200, launches_refused, HOLDS, HOLDS, NULL},
    {"module.shared_memory", "more shared memory than the usual has to be asked for",
     "CUDA driver API, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES", shared_memory, HOLDS,
     HOLDS, NULL},
    {"module.no_image", "what is no image is refused, and all goes on",
     "CUDA driver API, cuModuleLoadData", no_image, HOLDS, HOLDS, NULL},
    {"module.unloaded_graph", "a graph whose code was unloaded can be changed to other code",
     H200 " (3000 times)", unloaded_graph, HOLDS, HOLDS, NULL},
    {0},
};
