// SPDX-License-Identifier: Apache-2.0
// The calls that copy and fill. Those without a stream go to the legacy default stream, and wait
// where the host's memory takes part; so do asynchronous ones with pageable memory to write to, and
// such within the host's memory.
#include "cuda/arena.h"
#include "cuda/call.h"
#include "cuda/copy.h"
#include "cuda/engine.h"

typedef enum timing_t { SYNCHRONOUS, ASYNCHRONOUS } timing_t;

static bool is_device(const side_t *side)
{
    return side->type != CU_MEMORYTYPE_HOST && !side_is_pageable(side);
}

static bool is_host(const side_t *side)
{
    const range_t *range = arena_find(side->address);
    return !is_device(side) ||
           (range && (range->kind == RANGE_HOST || range->kind == RANGE_REGISTERED));
}

static CUresult transfer(CUcontext current, work_t *work, CUstream handle, timing_t timing)
{
    CUstream stream = stream_of(current, handle);
    if (!stream) return CUDA_ERROR_INVALID_HANDLE;
    copy_work_t *copy = &work->copy;
    if (copy->width == 0 || copy->height == 0 || copy->depth == 0) return CUDA_SUCCESS;
    if (!copy_check(copy, WHEN_ENQUEUED, work->maker) || !copy_is_apart(copy, work->maker)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    bool waits = timing == SYNCHRONOUS
                     ? !is_device(&copy->from) || !is_device(&copy->to)
                     : side_is_pageable(&copy->to) || (is_host(&copy->from) && is_host(&copy->to));
    if (side_is_pageable(&copy->from) && !waits && !copy_stage(copy)) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    stream_work(stream, work);
    if (!waits) return CUDA_SUCCESS;
    mark_t *mark = stream_mark(stream);
    while (!mark->done && !stream->context->error) state_wait();
    mark_release(mark);
    return context_report(stream->context);
}

static CUresult copy_line(call_t *call, const CUDA_MEMCPY3D *copy, CUstream stream, timing_t timing)
{
    work_t work;
    CUresult error = copy_work(&work, copy);
    return error ? error : transfer(call->context, &work, stream, timing);
}

#define UNIFIED(to, from, size)                                                                    \
    (&(CUDA_MEMCPY3D){.srcMemoryType = CU_MEMORYTYPE_UNIFIED,                                      \
                      .srcDevice = (from),                                                         \
                      .dstMemoryType = CU_MEMORYTYPE_UNIFIED,                                      \
                      .dstDevice = (to),                                                           \
                      .WidthInBytes = (size),                                                      \
                      .Height = 1,                                                                 \
                      .Depth = 1})
#define UPLOAD(to, from, size)                                                                     \
    (&(CUDA_MEMCPY3D){.srcMemoryType = CU_MEMORYTYPE_HOST,                                         \
                      .srcHost = (from),                                                           \
                      .dstMemoryType = CU_MEMORYTYPE_DEVICE,                                       \
                      .dstDevice = (to),                                                           \
                      .WidthInBytes = (size),                                                      \
                      .Height = 1,                                                                 \
                      .Depth = 1})
#define DOWNLOAD(to, from, size)                                                                   \
    (&(CUDA_MEMCPY3D){.srcMemoryType = CU_MEMORYTYPE_DEVICE,                                       \
                      .srcDevice = (from),                                                         \
                      .dstMemoryType = CU_MEMORYTYPE_HOST,                                         \
                      .dstHost = (to),                                                             \
                      .WidthInBytes = (size),                                                      \
                      .Height = 1,                                                                 \
                      .Depth = 1})
#define BETWEEN(to, from, size)                                                                    \
    (&(CUDA_MEMCPY3D){.srcMemoryType = CU_MEMORYTYPE_DEVICE,                                       \
                      .srcDevice = (from),                                                         \
                      .dstMemoryType = CU_MEMORYTYPE_DEVICE,                                       \
                      .dstDevice = (to),                                                           \
                      .WidthInBytes = (size),                                                      \
                      .Height = 1,                                                                 \
                      .Depth = 1})

CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t size)
{
    CALL(CALL_CONTEXT);
    return copy_line(&call, UNIFIED(to, from, size), NULL, SYNCHRONOUS);
}

CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t size, CUstream stream)
{
    CALL_ON(stream, CALL_CONTEXT);
    return copy_line(&call, UNIFIED(to, from, size), stream, ASYNCHRONOUS);
}

CUresult cuMemcpyPeer(CUdeviceptr to, CUcontext to_context, CUdeviceptr from,
                      CUcontext from_context, size_t size)
{
    CALL(CALL_CONTEXT);
    if (!IS(to_context, MAGIC_CONTEXT) || !IS(from_context, MAGIC_CONTEXT)) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    return copy_line(&call, BETWEEN(to, from, size), NULL, SYNCHRONOUS);
}

CUresult cuMemcpyPeerAsync(CUdeviceptr to, CUcontext to_context, CUdeviceptr from,
                           CUcontext from_context, size_t size, CUstream stream)
{
    CALL(CALL_CONTEXT);
    if (!IS(to_context, MAGIC_CONTEXT) || !IS(from_context, MAGIC_CONTEXT)) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    return copy_line(&call, BETWEEN(to, from, size), stream, ASYNCHRONOUS);
}

CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t size)
{
    CALL(CALL_CONTEXT);
    return copy_line(&call, UPLOAD(to, from, size), NULL, SYNCHRONOUS);
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t size, CUstream stream)
{
    CALL_ON(stream, CALL_CONTEXT);
    return copy_line(&call, UPLOAD(to, from, size), stream, ASYNCHRONOUS);
}

CUresult cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t size)
{
    CALL(CALL_CONTEXT);
    return copy_line(&call, DOWNLOAD(to, from, size), NULL, SYNCHRONOUS);
}

CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t size, CUstream stream)
{
    CALL_ON(stream, CALL_CONTEXT);
    return copy_line(&call, DOWNLOAD(to, from, size), stream, ASYNCHRONOUS);
}

CUresult cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, size_t size)
{
    CALL(CALL_CONTEXT);
    return copy_line(&call, BETWEEN(to, from, size), NULL, SYNCHRONOUS);
}

CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t size, CUstream stream)
{
    CALL_ON(stream, CALL_CONTEXT);
    return copy_line(&call, BETWEEN(to, from, size), stream, ASYNCHRONOUS);
}

static CUresult copy_plane(call_t *call, const CUDA_MEMCPY2D *c, CUstream stream, timing_t timing)
{
    if (!c) return CUDA_ERROR_INVALID_VALUE;
    CUDA_MEMCPY3D copy = {
        .srcXInBytes = c->srcXInBytes,
        .srcY = c->srcY,
        .srcMemoryType = c->srcMemoryType,
        .srcHost = c->srcHost,
        .srcDevice = c->srcDevice,
        .srcPitch = c->srcPitch,
        .dstXInBytes = c->dstXInBytes,
        .dstY = c->dstY,
        .dstMemoryType = c->dstMemoryType,
        .dstHost = c->dstHost,
        .dstDevice = c->dstDevice,
        .dstPitch = c->dstPitch,
        .WidthInBytes = c->WidthInBytes,
        .Height = c->Height,
        .Depth = 1,
    };
    return copy_line(call, &copy, stream, timing);
}

CUresult cuMemcpy2D_v2(const CUDA_MEMCPY2D *copy)
{
    CALL(CALL_CONTEXT);
    return copy_plane(&call, copy, NULL, SYNCHRONOUS);
}

CUresult cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D *copy)
{
    CALL(CALL_CONTEXT);
    return copy_plane(&call, copy, NULL, SYNCHRONOUS);
}

CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D *copy, CUstream stream)
{
    CALL(CALL_CONTEXT);
    return copy_plane(&call, copy, stream, ASYNCHRONOUS);
}

CUresult cuMemcpy3D_v2(const CUDA_MEMCPY3D *copy)
{
    CALL(CALL_CONTEXT);
    return copy_line(&call, copy, NULL, SYNCHRONOUS);
}

CUresult cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D *copy, CUstream stream)
{
    CALL(CALL_CONTEXT);
    return copy_line(&call, copy, stream, ASYNCHRONOUS);
}

static CUresult fill(call_t *call, const CUDA_MEMSET_NODE_PARAMS *params, CUstream handle)
{
    work_t work;
    CUstream stream = stream_of(call->context, handle);
    if (!stream) return CUDA_ERROR_INVALID_HANDLE;
    if (params->width == 0 || params->height == 0) return CUDA_SUCCESS;
    CUresult error = fill_work(&work, params);
    if (error) return error;
    if (!fill_check(&work.fill, WHEN_ENQUEUED, work.maker)) return CUDA_ERROR_INVALID_VALUE;
    return stream_work(stream, &work);
}

#define FILL(address, pitch, value, element, width, height)                                        \
    (&(CUDA_MEMSET_NODE_PARAMS){(address), (pitch), (value), (element), (width), (height)})

CUresult cuMemsetD8_v2(CUdeviceptr to, unsigned char value, size_t count)
{
    CALL(CALL_CONTEXT);
    return fill(&call, FILL(to, 0, value, 1, count, 1), NULL);
}

CUresult cuMemsetD16_v2(CUdeviceptr to, unsigned short value, size_t count)
{
    CALL(CALL_CONTEXT);
    return fill(&call, FILL(to, 0, value, 2, count, 1), NULL);
}

CUresult cuMemsetD32_v2(CUdeviceptr to, unsigned int value, size_t count)
{
    CALL(CALL_CONTEXT);
    return fill(&call, FILL(to, 0, value, 4, count, 1), NULL);
}

CUresult cuMemsetD2D8_v2(CUdeviceptr to, size_t pitch, unsigned char value, size_t width,
                         size_t height)
{
    CALL(CALL_CONTEXT);
    return fill(&call, FILL(to, pitch, value, 1, width, height), NULL);
}

CUresult cuMemsetD2D16_v2(CUdeviceptr to, size_t pitch, unsigned short value, size_t width,
                          size_t height)
{
    CALL(CALL_CONTEXT);
    return fill(&call, FILL(to, pitch, value, 2, width, height), NULL);
}

CUresult cuMemsetD2D32_v2(CUdeviceptr to, size_t pitch, unsigned int value, size_t width,
                          size_t height)
{
    CALL(CALL_CONTEXT);
    return fill(&call, FILL(to, pitch, value, 4, width, height), NULL);
}

CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t count, CUstream stream)
{
    CALL_ON(stream, CALL_CONTEXT);
    return fill(&call, FILL(to, 0, value, 1, count, 1), stream);
}

CUresult cuMemsetD16Async(CUdeviceptr to, unsigned short value, size_t count, CUstream stream)
{
    CALL_ON(stream, CALL_CONTEXT);
    return fill(&call, FILL(to, 0, value, 2, count, 1), stream);
}

CUresult cuMemsetD32Async(CUdeviceptr to, unsigned int value, size_t count, CUstream stream)
{
    CALL_ON(stream, CALL_CONTEXT);
    return fill(&call, FILL(to, 0, value, 4, count, 1), stream);
}

CUresult cuMemsetD2D8Async(CUdeviceptr to, size_t pitch, unsigned char value, size_t width,
                           size_t height, CUstream stream)
{
    CALL(CALL_CONTEXT);
    return fill(&call, FILL(to, pitch, value, 1, width, height), stream);
}

CUresult cuMemsetD2D16Async(CUdeviceptr to, size_t pitch, unsigned short value, size_t width,
                            size_t height, CUstream stream)
{
    CALL(CALL_CONTEXT);
    return fill(&call, FILL(to, pitch, value, 2, width, height), stream);
}

CUresult cuMemsetD2D32Async(CUdeviceptr to, size_t pitch, unsigned int value, size_t width,
                            size_t height, CUstream stream)
{
    CALL(CALL_CONTEXT);
    return fill(&call, FILL(to, pitch, value, 4, width, height), stream);
}
