// SPDX-License-Identifier: Apache-2.0
// Functions, what they say of themselves, and their launches.
#include "cuda/arena.h"
#include "cuda/call.h"
#include "cuda/engine.h"
#include "cuda/fault.h"
#include "cuda/limits.h"
#include "cuda/module.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHARED_ALIGNMENT = 128, SHARED_CANARY = 0xc9, SHARED_MARGIN = 128 };

static uint32_t most_threads(const cuda_host_entry_t *entry)
{
    uint32_t fixed = entry->threads[0] * entry->threads[1] * entry->threads[2];
    return fixed ? fixed : entry->max_threads ? entry->max_threads : LIMIT_THREADS;
}

CUresult cuFuncGetAttribute(int *out, CUfunction_attribute attribute, CUfunction function)
{
    CALL(CALL_CONTEXT);
    if (!IS(function, MAGIC_FUNCTION)) return CUDA_ERROR_INVALID_HANDLE;
    if (!out || attribute < 0 || attribute >= CU_FUNC_ATTRIBUTE_MAX) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    const cuda_host_entry_t *entry = function->entry;
    switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK: *out = (int)most_threads(entry); break;
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES: *out = (int)entry->shared_size; break;
    case CU_FUNC_ATTRIBUTE_NUM_REGS: *out = (int)entry->registers; break;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES: *out = (int)function->max_dynamic; break;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT: *out = function->carveout; break;
    default: *out = 0; break;
    }
    return CUDA_SUCCESS;
}

CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value)
{
    CALL(CALL_CONTEXT);
    if (!IS(function, MAGIC_FUNCTION)) return CUDA_ERROR_INVALID_HANDLE;
    switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
        if (value < 0 || (int64_t)value + function->entry->shared_size > LIMIT_SHARED_OPTIN) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        function->max_dynamic = (uint32_t)value;
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
        if (value < -1 || value > 100) return CUDA_ERROR_INVALID_VALUE;
        function->carveout = value;
        return CUDA_SUCCESS;
    default: return CUDA_ERROR_INVALID_VALUE;
    }
}

CUresult cuFuncSetCacheConfig(CUfunction function, CUfunc_cache config)
{
    CALL(CALL_CONTEXT);
    if (!IS(function, MAGIC_FUNCTION)) return CUDA_ERROR_INVALID_HANDLE;
    return (unsigned)config <= CU_FUNC_CACHE_PREFER_EQUAL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuFuncGetModule(CUmodule *out, CUfunction function)
{
    CALL(CALL_CONTEXT);
    if (!IS(function, MAGIC_FUNCTION)) return CUDA_ERROR_INVALID_HANDLE;
    if (!out) return CUDA_ERROR_INVALID_VALUE;
    *out = function->module;
    return CUDA_SUCCESS;
}

CUresult cuFuncGetName(const char **out, CUfunction function)
{
    CALL(CALL_CONTEXT);
    if (!IS(function, MAGIC_FUNCTION)) return CUDA_ERROR_INVALID_HANDLE;
    if (!out) return CUDA_ERROR_INVALID_VALUE;
    *out = function->entry->name;
    return CUDA_SUCCESS;
}

CUresult cuFuncGetParamInfo(CUfunction function, size_t index, size_t *offset, size_t *size)
{
    CALL(CALL_CONTEXT);
    if (!IS(function, MAGIC_FUNCTION)) return CUDA_ERROR_INVALID_HANDLE;
    if (!offset || index >= function->entry->param_count) return CUDA_ERROR_INVALID_VALUE;
    *offset = function->entry->params[index].offset;
    if (size) *size = function->entry->params[index].size;
    return CUDA_SUCCESS;
}

CUresult cuFuncIsLoaded(CUfunctionLoadingState *out, CUfunction function)
{
    CALL(CALL_CONTEXT);
    if (!IS(function, MAGIC_FUNCTION)) return CUDA_ERROR_INVALID_HANDLE;
    if (!out) return CUDA_ERROR_INVALID_VALUE;
    *out = CU_FUNCTION_LOADING_STATE_LOADED;
    return CUDA_SUCCESS;
}

CUresult cuFuncLoad(CUfunction function)
{
    CALL(CALL_CONTEXT);
    return IS(function, MAGIC_FUNCTION) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *out, CUfunction function, int threads,
                                                     size_t shared)
{
    CALL(CALL_CONTEXT);
    if (!IS(function, MAGIC_FUNCTION)) return CUDA_ERROR_INVALID_HANDLE;
    if (!out || threads <= 0) return CUDA_ERROR_INVALID_VALUE;
    *out = (uint32_t)threads <= most_threads(function->entry) ? 2048 / threads : 0;
    if (*out > 32) *out = 32;
    return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxPotentialBlockSize(int *grid, int *threads, CUfunction function,
                                          CUoccupancyB2DSize shared_of, size_t shared, int limit)
{
    CALL(CALL_CONTEXT);
    if (!IS(function, MAGIC_FUNCTION)) return CUDA_ERROR_INVALID_HANDLE;
    if (!grid || !threads) return CUDA_ERROR_INVALID_VALUE;
    *threads = (int)most_threads(function->entry);
    if (limit > 0 && *threads > limit) *threads = limit;
    *grid = LIMIT_PROCESSORS * (2048 / *threads);
    return CUDA_SUCCESS;
}

CUresult cuOccupancyAvailableDynamicSMemPerBlock(size_t *out, CUfunction function, int blocks,
                                                 int threads)
{
    CALL(CALL_CONTEXT);
    if (!IS(function, MAGIC_FUNCTION)) return CUDA_ERROR_INVALID_HANDLE;
    if (!out || blocks <= 0 || threads <= 0) return CUDA_ERROR_INVALID_VALUE;
    *out = (size_t)LIMIT_SHARED_OPTIN / (size_t)blocks;
    return CUDA_SUCCESS;
}

static bool dims_valid(const cuda_host_entry_t *entry, const uint32_t dims[6])
{
    static const uint32_t limits[] = {LIMIT_GRID_X,  LIMIT_GRID_Y,  LIMIT_GRID_Z,
                                      LIMIT_BLOCK_X, LIMIT_BLOCK_Y, LIMIT_BLOCK_Z};
    for (int i = 0; i < 6; i++) {
        if (dims[i] == 0 || dims[i] > limits[i]) return false;
    }
    if ((uint64_t)dims[3] * dims[4] * dims[5] > LIMIT_THREADS) return false;
    return !entry->threads[0] || memcmp(entry->threads, dims + 3, sizeof entry->threads) == 0;
}

// The block of parameters that a launch gives by `extra`.
static CUresult extra_read(void **extra, const void **out, size_t *out_size)
{
    for (; *extra != CU_LAUNCH_PARAM_END; extra += 2) {
        if (extra[0] == CU_LAUNCH_PARAM_BUFFER_POINTER)
            *out = extra[1];
        else if (extra[0] == CU_LAUNCH_PARAM_BUFFER_SIZE)
            *out_size = *(size_t *)extra[1];
        else
            return CUDA_ERROR_INVALID_VALUE;
    }
    return *out || !*out_size ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult params_pack(kernel_work_t *out, const cuda_host_entry_t *entry, void **params,
                            void **extra)
{
    const void *block = NULL;
    size_t size = entry->param_size;
    if (extra) {
        size = 0;
        CUresult error = extra_read(extra, &block, &size);
        if (error) return error;
        if (size < entry->param_size || size > LIMIT_PARAMS) return CUDA_ERROR_INVALID_VALUE;
    } else if (!params && entry->param_count) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    out->size = size;
    out->params = aligned_alloc(16, (size + 16) / 16 * 16);
    if (!out->params) return CUDA_ERROR_OUT_OF_MEMORY;
    memset(out->params, 0, (size + 16) / 16 * 16);
    if (block) memcpy(out->params, block, size);
    for (uint32_t i = 0; params && i < entry->param_count; i++) {
        memcpy((char *)out->params + entry->params[i].offset, params[i], entry->params[i].size);
    }
    return CUDA_SUCCESS;
}

CUresult kernel_work(work_t *out, CUfunction function, const uint32_t dims[6], uint32_t shared,
                     void **params, void **extra)
{
    if (!IS(function, MAGIC_FUNCTION)) return CUDA_ERROR_INVALID_HANDLE;
    if ((params && extra) || !dims_valid(function->entry, dims)) return CUDA_ERROR_INVALID_VALUE;
    if (dims[3] * dims[4] * dims[5] > most_threads(function->entry)) {
        return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
    }
    if (shared > function->max_dynamic) {
        complain("%s: %s is launched with %u bytes of dynamic shared memory, and may have %u; "
                 "CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES raises that",
                 call_name(), function->entry->name, shared, function->max_dynamic);
        return CUDA_ERROR_INVALID_VALUE;
    }
    *out = (work_t){.kind = WORK_KERNEL, .maker = call_name()};
    kernel_work_t *kernel = &out->kernel;
    kernel->function = function;
    memcpy(kernel->grid, dims, sizeof kernel->grid);
    memcpy(kernel->block, dims + 3, sizeof kernel->block);
    kernel->shared = shared;
    return params_pack(kernel, function->entry, params, extra);
}

static CUresult launch(call_t *call, CUfunction function, const CUlaunchConfig *config,
                       void **params, void **extra)
{
    work_t work;
    const uint32_t dims[] = {config->gridDimX,  config->gridDimY,  config->gridDimZ,
                             config->blockDimX, config->blockDimY, config->blockDimZ};
    CUstream stream = stream_of(call->context, config->hStream);
    if (!stream || stream->context != call->context) return CUDA_ERROR_INVALID_HANDLE;
    CUresult error = kernel_work(&work, function, dims, config->sharedMemBytes, params, extra);
    if (error) return error;
    if (function->module->context != stream->context) {
        complain("%s: %s was loaded in another context than the stream's", call_name(),
                 function->entry->name);
        work_finish(&work);
        return CUDA_ERROR_INVALID_HANDLE;
    }
    return stream_work(stream, &work);
}

CUresult cuLaunchKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y,
                        unsigned int grid_z, unsigned int block_x, unsigned int block_y,
                        unsigned int block_z, unsigned int shared, CUstream stream, void **params,
                        void **extra)
{
    CALL_ON(stream, CALL_CONTEXT);
    CUlaunchConfig config = {grid_x,  grid_y, grid_z, block_x, block_y,
                             block_z, shared, stream, NULL,    0};
    return launch(&call, function, &config, params, extra);
}

CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function, void **params,
                          void **extra)
{
    CALL(CALL_CONTEXT);
    if (!config || (config->numAttrs && !config->attrs)) return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < config->numAttrs; i++) {
        CUlaunchAttributeID id = config->attrs[i].id;
        if (id == CU_LAUNCH_ATTRIBUTE_IGNORE || id == CU_LAUNCH_ATTRIBUTE_PRIORITY) continue;
        if (id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE && !config->attrs[i].value.cooperative) continue;
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    return launch(&call, function, config, params, extra);
}

// Blocks run one after the other, so they cannot wait for each other.
CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y,
                                   unsigned int grid_z, unsigned int block_x, unsigned int block_y,
                                   unsigned int block_z, unsigned int shared, CUstream stream,
                                   void **params)
{
    CALL(CALL_CONTEXT);
    return CUDA_ERROR_NOT_SUPPORTED;
}

typedef struct run_t {
    const kernel_work_t *kernel;
    CUcontext context;
    cuda_host_block_t block;
    uint8_t *shared;
    int trap;
    bool overrun;
} run_t;

static uint64_t divisor(uint64_t a, uint64_t b)
{
    while (b) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

static bool shared_intact(const run_t *run)
{
    for (int i = 0; i < SHARED_MARGIN; i++) {
        if (run->shared[run->block.shared_size + (uint32_t)i] != SHARED_CANARY) return false;
    }
    return true;
}

static int block_run(CUfunction function, const void *params, const cuda_host_block_t *block)
{
    const ptx_module_t *ptx = function->module->ptx;
    if (ptx) return ptx_run(&ptx->kernels[function - function->module->functions], params, block);
    return function->entry->kernel(params, block);
}

// Blocks come in the order of their numbers, or with a seed in another one that visits each once.
static void run_blocks(void *user)
{
    run_t *run = user;
    const uint32_t *grid = run->block.grid;
    uint64_t plane = (uint64_t)grid[0] * grid[1], total = plane * grid[2];
    uint64_t start = random_below(total), step = 1 + random_below(total);
    while (divisor(step, total) != 1) step++;
    for (uint64_t i = 0; i < total; i++) {
        uint64_t index = (start + (unsigned __int128)i * step) % total;
        run->block.block[0] = (uint32_t)(index % grid[0]);
        run->block.block[1] = (uint32_t)(index / grid[0] % grid[1]);
        run->block.block[2] = (uint32_t)(index / plane);
        if (settings()->poison >= 0) {
            memset(run->shared, settings()->poison, run->block.shared_size);
        }
        run->trap = block_run(run->kernel->function, run->kernel->params, &run->block);
        run->overrun = !shared_intact(run);
        if (run->trap || run->overrun) return;
        if (__atomic_load_n(&run->context->error, __ATOMIC_RELAXED)) return;
    }
}

static void fault_tell(const run_t *run, const char *maker, const char *what)
{
    const uint32_t *block = run->block.block;
    complain("%s: kernel %s, block (%u, %u, %u): %s", maker, run->kernel->function->entry->name,
             block[0], block[1], block[2], what);
}

// Under the lock.
static CUresult run_judge(const run_t *run, bool good, uint64_t address, const char *maker)
{
    char text[400] = "", where[256];
    CUresult error = CUDA_SUCCESS;
    if (!good) {
        arena_describe(address, where, sizeof where);
        snprintf(text, sizeof text, "touched %#llx, which it may not: %s",
                 (unsigned long long)address, where);
        error = CUDA_ERROR_ILLEGAL_ADDRESS;
    } else if (run->overrun) {
        snprintf(text, sizeof text, "wrote past its %u bytes of shared memory",
                 run->block.shared_size);
        error = CUDA_ERROR_ILLEGAL_ADDRESS;
    } else if (run->trap == PTX_MISALIGNED) {
        snprintf(text, sizeof text, "touched an address that is no multiple of what it took there");
        error = CUDA_ERROR_MISALIGNED_ADDRESS;
    } else if (run->trap) {
        snprintf(text, sizeof text, "trapped with %d", run->trap);
        error = CUDA_ERROR_LAUNCH_FAILED;
    }
    if (error) fault_tell(run, maker, text);
    return error;
}

void kernel_run(const kernel_work_t *kernel, const char *maker, CUcontext context)
{
    uint32_t shared = kernel->function->entry->shared_size + kernel->shared;
    size_t size = (shared + SHARED_MARGIN + SHARED_ALIGNMENT) / SHARED_ALIGNMENT * SHARED_ALIGNMENT;
    run_t run = {.kernel = kernel, .context = context};
    run.shared = aligned_alloc(SHARED_ALIGNMENT, size);
    if (!run.shared) abort();
    memset(run.shared + shared, SHARED_CANARY, size - shared);
    run.block.shared = run.shared;
    run.block.shared_size = shared;
    memcpy(run.block.grid, kernel->grid, sizeof run.block.grid);
    memcpy(run.block.threads, kernel->block, sizeof run.block.threads);

    pthread_mutex_lock(&state.lock);
    CUmodule module = kernel->function->module;
    bool loaded = kernel->function->magic == MAGIC_FUNCTION;
    if (!loaded) {
        complain("%s: the module of a kernel that is to run has been unloaded", maker);
        context_fail(context, CUDA_ERROR_INVALID_HANDLE);
    }
    module->running += loaded;
    arena_open();
    pthread_mutex_unlock(&state.lock);

    uint64_t address = 0;
    bool good = !loaded || fault_guard(run_blocks, &run, &address);

    pthread_mutex_lock(&state.lock);
    CUresult error = run_judge(&run, good, address, maker);
    if (error) context_fail(context, error);
    module->running -= loaded;
    state_notify();
    pthread_mutex_unlock(&state.lock);
    free(run.shared);
}
