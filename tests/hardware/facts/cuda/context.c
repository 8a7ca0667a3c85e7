// SPDX-License-Identifier: Apache-2.0
// The library itself, devices and contexts.
#include "cuda.h"

#include <pthread.h>
#include <string.h>

static bool is_active(void)
{
    unsigned flags;
    int active = 0;
    CU(cu.cuDevicePrimaryCtxGetState(0, &flags, &active));
    return active;
}

static void primary(void)
{
    CUcontext first, second, third;
    REQUIRE(!is_active());
    CU(cu.cuDevicePrimaryCtxRetain(&first, 0));
    CU(cu.cuDevicePrimaryCtxRetain(&second, 0));
    REQUIRE(is_active() && first == second);
    CU(cu.cuDevicePrimaryCtxRelease_v2(0));
    REQUIRE(is_active());
    CU(cu.cuDevicePrimaryCtxRelease_v2(0));
    REQUIRE(!is_active());
    RETURNS(CUDA_ERROR_INVALID_CONTEXT, cu.cuDevicePrimaryCtxRelease_v2(0));
    CU(cu.cuDevicePrimaryCtxRetain(&third, 0));
    CU(cu.cuCtxSetCurrent(third));
    cuda_memory(64);
}

static void *other_thread(void *out)
{
    CU(cu.cuCtxGetCurrent(out));
    return NULL;
}

static void current_is_the_threads(void)
{
    CUcontext context, now = NULL;
    pthread_t thread;
    CU(cu.cuCtxGetCurrent(&now));
    REQUIRE(now == NULL);
    CU(cu.cuDevicePrimaryCtxRetain(&context, 0));
    CU(cu.cuCtxGetCurrent(&now));
    REQUIRE(now == NULL); // to retain it does not make it current
    CU(cu.cuCtxSetCurrent(context));
    now = context;
    NEED(pthread_create(&thread, NULL, other_thread, &now) == 0);
    NEED(pthread_join(thread, NULL) == 0);
    REQUIRE(now == NULL);
    CU(cu.cuCtxSetCurrent(NULL));
    CU(cu.cuCtxGetCurrent(&now));
    REQUIRE(now == NULL);
}

static void context_needed(void)
{
    CUdeviceptr memory;
    CUevent event;
    CUstream stream;
    CUcontext context = cuda_begin();
    CU(cu.cuCtxSetCurrent(NULL));
    RETURNS(CUDA_ERROR_INVALID_CONTEXT, cu.cuMemAlloc_v2(&memory, 64));
    RETURNS(CUDA_ERROR_INVALID_CONTEXT, cu.cuEventCreate(&event, 0));
    RETURNS(CUDA_ERROR_INVALID_CONTEXT, cu.cuStreamCreate(&stream, 0));
    CU(cu.cuCtxSetCurrent(context));
    RETURNS(CUDA_SUCCESS, cu.cuMemAlloc_v2(&memory, 64));
}

// A stream of a context of its own, that a kernel stands in, holds up no other context's calls.
static void contexts_wait_apart(void)
{
    CUcontext context = cuda_begin(), other;
    CUdeviceptr memory = cuda_memory(4096);
    uint32_t *word = cuda_words();
    CU(cu.cuCtxCreate_v2(&other, 0, 0));
    CUmodule module = cuda_load();
    CUfunction gate;
    CUstream stream = cuda_stream();
    uint64_t words[] = {cuda_at(word)};
    void *pointers[] = {words};
    CU(cu.cuModuleGetFunction(&gate, module, "gate"));
    CU(cu.cuFuncLoad(gate));
    CU(cu.cuLaunchKernel(gate, 1, 1, 1, 1, 1, 1, 0, stream, pointers, NULL));
    CU(cu.cuCtxSetCurrent(context));
    CU(cu.cuMemFree_v2(memory)); // returns, or the gate stays closed
    CU(cu.cuCtxSynchronize());
    CU(cu.cuCtxSetCurrent(other));
    RETURNS(CUDA_ERROR_NOT_READY, cu.cuStreamQuery(stream));
    __atomic_store_n(word, 1, __ATOMIC_RELEASE);
    CU(cu.cuStreamSynchronize(stream));
}

static void versions(void)
{
    void *old = NULL, *new = NULL, *none = NULL;
    CUdriverProcAddressQueryResult found = CU_GET_PROC_ADDRESS_SUCCESS;
    CU(cu.cuGetProcAddress_v2("cuMemPrefetchAsync", &old, 12000, 0, NULL));
    CU(cu.cuGetProcAddress_v2("cuMemPrefetchAsync", &new, 13000, 0, NULL));
    REQUIRE(old && new && old != new);
    cu.cuGetProcAddress_v2("cuNoSuchFunction", &none, 12000, 0, &found);
    REQUIRE(!none && found == CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
    CU(cu.cuGetProcAddress_v2("cuGraphAddNode", &old, 12020, 0, NULL));
    CU(cu.cuGetProcAddress_v2("cuGraphAddNode", &new, 12030, 0, NULL));
    REQUIRE(old && new && old != new);
}

static void addresses_are_unified(void)
{
    cuda_begin();
    uint32_t *words = cuda_words();
    CUdeviceptr address;
    REQUIRE(cuda_attribute(CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING) == 1);
    CU(cu.cuMemHostGetDevicePointer_v2(&address, words, 0));
    REQUIRE(address == cuda_at(words));
}

static void timelines(void)
{
    cuda_begin();
    REQUIRE(cuda_attribute(CU_DEVICE_ATTRIBUTE_TIMELINE_SEMAPHORE_INTEROP_SUPPORTED) == 1);
    CUexternalSemaphore semaphore;
    CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC desc = {
        .type = CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_TIMELINE_SEMAPHORE_FD, .handle = {.fd = 0}};
    REQUIRE(cu.cuImportExternalSemaphore(&semaphore, &desc) != CUDA_SUCCESS);
    RETURNS(CUDA_SUCCESS, cu.cuCtxSynchronize());
}

const fact_t cuda_context_facts[] = {
    {"context.primary", "the primary context lives while it is retained, and comes back",
     "CUDA driver API, cuDevicePrimaryCtxRetain; " H200 " (card.c: contexts)", primary, HOLDS,
     HOLDS, NULL},
    {"context.current", "a context is current for one thread, and when it is set, not retained",
     "CUDA driver API, context management", current_is_the_threads, HOLDS, HOLDS, NULL},
    {"context.needed", "memory, events and streams are made in the current context", H200,
     context_needed, HOLDS, HOLDS, NULL},
    {"context.wait_apart", "what waits for all of a context does not wait for another context",
     "docs/stream.md, Semaphores of other APIs; not seen on a card before", contexts_wait_apart,
     HOLDS, HOLDS, NULL},
    {"context.versions", "a name leads to the function of the version that is asked for",
     "CUDA driver API, cuGetProcAddress", versions, HOLDS, HOLDS, NULL},
    {"context.unified", "page-locked memory has one address for host and device",
     "CUDA driver API, unified addressing", addresses_are_unified, HOLDS, HOLDS, NULL},
    {"context.timelines", "timeline semaphores can be imported, and other descriptors cannot",
     H200 " (card.c: semaphores)", timelines, HOLDS, HOLDS, NULL},
    {0},
};
