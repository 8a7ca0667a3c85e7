// SPDX-License-Identifier: Apache-2.0
#include "cuda/work.h"

#include "cuda/call.h"
#include "cuda/copy.h"
#include "cuda/external.h"
#include "cuda/fault.h"
#include "cuda/memop.h"
#include "cuda/module.h"
#include "cuda/state.h"
#include "cuda/tool.h"

#include <stdlib.h>
#include <string.h>

bool work_check(const work_t *work, moment_t moment)
{
    switch (work->kind) {
    case WORK_COPY: return copy_check(&work->copy, moment, work->maker);
    case WORK_FILL: return fill_check(&work->fill, moment, work->maker);
    case WORK_MEMOPS: return memops_check(&work->memops, moment, work->maker);
    default: return true;
    }
}

static bool is_transfer(const work_t *work)
{
    return work->kind == WORK_COPY || work->kind == WORK_FILL;
}

// Memory may have gone since the work was made, and no copy begins when its context has failed.
static bool work_begin(const work_t *work, CUcontext context)
{
    pthread_mutex_lock(&state.lock);
    bool transfer = is_transfer(work);
    bool good = !(transfer && context->error) && work_check(work, WHEN_RUN);
    if (!good) context_fail(context, CUDA_ERROR_ILLEGAL_ADDRESS);
    context->transfers += good && transfer;
    pthread_mutex_unlock(&state.lock);
    return good;
}

static void host_run(const work_t *work)
{
    const host_work_t *host = &work->host;
    call_forbid(true);
    if (work->kind == WORK_HOST)
        host->function(host->user);
    else
        host->callback(host->stream, CUDA_SUCCESS, host->user);
    call_forbid(false);
}

static void transfer_body(void *user)
{
    const work_t *work = user;
    if (work->kind == WORK_COPY)
        copy_run(&work->copy);
    else
        fill_run(&work->fill);
}

// The memory may even go in the middle of it, when a thread unmaps it.
static void transfer_run(const work_t *work, CUcontext context)
{
    uint64_t address = 0;
    bool good = fault_guard(transfer_body, (void *)(uintptr_t)work, &address);
    if (!good) {
        complain("%s: what is at %#llx went while it was copied or filled", work->maker,
                 (unsigned long long)address);
    }
    pthread_mutex_lock(&state.lock);
    context->transfers--;
    if (!good) context_fail(context, CUDA_ERROR_ILLEGAL_ADDRESS);
    state_notify();
    pthread_mutex_unlock(&state.lock);
}

// What a tool is told before it runs: what it points to may be gone after that. False: no tool
// cares for it.
static bool work_describe(const work_t *work, const origin_t *origin, sim_work_t *out)
{
    const struct CUctx_st *context = origin->stream->context;
    sim_work_t told = {.start = clock_ns(),
                       .device = (uint32_t)context->device->ordinal,
                       .context = (uint32_t)context->id,
                       .stream = (uint32_t)origin->stream->id,
                       .correlation = origin->correlation,
                       .graph = origin->graph,
                       .node = origin->node};
    switch (work->kind) {
    case WORK_KERNEL:
        told.kind = SIM_KERNEL;
        told.name = work->kernel.function->entry->name;
        memcpy(told.grid, work->kernel.grid, sizeof told.grid);
        memcpy(told.block, work->kernel.block, sizeof told.block);
        told.shared = work->kernel.shared;
        break;
    case WORK_COPY:
        told.kind = SIM_COPY;
        told.bytes = (uint64_t)work->copy.width * work->copy.height * work->copy.depth;
        told.from_host = work->copy.from.type == CU_MEMORYTYPE_HOST;
        told.to_host = work->copy.to.type == CU_MEMORYTYPE_HOST;
        break;
    case WORK_FILL:
        told.kind = SIM_SET;
        told.bytes = (uint64_t)work->fill.width * work->fill.height * work->fill.element;
        break;
    default: return false;
    }
    *out = told;
    return true;
}

static void work_do(const work_t *work, CUcontext context)
{
    if (!work_begin(work, context)) return;
    switch (work->kind) {
    case WORK_NONE: break;
    case WORK_KERNEL: kernel_run(&work->kernel, work->maker, context); break;
    case WORK_COPY:
    case WORK_FILL: transfer_run(work, context); break;
    case WORK_HOST:
    case WORK_CALLBACK: host_run(work); break;
    case WORK_MEMOPS: memops_run(&work->memops, context); break;
    case WORK_SEMAPHORE: external_run(&work->semaphore, context); break;
    }
}

void work_run(const work_t *work, origin_t origin)
{
    sim_work_t told;
    bool tells = tool_get() && work_describe(work, &origin, &told);
    work_do(work, origin.stream->context);
    if (!tells) return;
    told.end = clock_ns();
    tool_get()->work(&told);
}

void work_finish(work_t *work)
{
    if (work->kind == WORK_KERNEL) free(work->kernel.params);
    if (work->kind == WORK_COPY) free(work->copy.staged);
    if (work->kind == WORK_MEMOPS) free(work->memops.ops);
    if (work->kind == WORK_SEMAPHORE) external_end(&work->semaphore);
    work->kind = WORK_NONE;
}

static void *bytes_clone(const void *bytes, size_t size)
{
    void *copy = aligned_alloc(16, (size + 15) / 16 * 16);
    if (copy) memcpy(copy, bytes, size);
    return copy;
}

bool work_clone(work_t *out, const work_t *work)
{
    *out = *work;
    if (work->kind == WORK_KERNEL && work->kernel.params) {
        out->kernel.params = bytes_clone(work->kernel.params, work->kernel.size);
        return out->kernel.params != NULL;
    }
    if (work->kind == WORK_MEMOPS) {
        size_t size = work->memops.count * sizeof *work->memops.ops;
        out->memops.ops = bytes_clone(work->memops.ops, size);
        return out->memops.ops != NULL;
    }
    return true;
}
