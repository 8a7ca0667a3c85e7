// SPDX-License-Identifier: Apache-2.0
#include "cuda/call.h"
#include "cuda/capture.h"
#include "cuda/engine.h"

#include <stdlib.h>

CUstream stream_create(CUcontext context, unsigned flags, int priority)
{
    CUstream stream = calloc(1, sizeof *stream);
    if (!stream) return NULL;
    if (priority > PRIORITY_LEAST) priority = PRIORITY_LEAST;
    if (priority < PRIORITY_GREATEST) priority = PRIORITY_GREATEST;
    stream->magic = MAGIC_STREAM;
    stream->context = context;
    stream->id = ++state.serial;
    stream->flags = flags;
    stream->priority = priority;
    stream->next = context->streams;
    context->streams = stream;
    return stream;
}

void stream_retire(CUstream stream)
{
    stream->magic = 0;
    stream->dead = true;
    stream_pump(stream);
}

static CUstream stream_of_thread(CUcontext context)
{
    pthread_t self = pthread_self();
    for (CUstream stream = context->streams; stream; stream = stream->next) {
        if (stream->per_thread && pthread_equal(stream->thread, self)) return stream;
    }
    CUstream stream = stream_create(context, 0, 0);
    if (!stream) return NULL;
    stream->per_thread = stream->is_default = true;
    stream->thread = self;
    return stream;
}

CUstream stream_of(CUcontext current, CUstream handle)
{
    if (handle == NULL || handle == CU_STREAM_LEGACY) return current->legacy;
    if (handle == CU_STREAM_PER_THREAD) return stream_of_thread(current);
    if (!IS(handle, MAGIC_STREAM)) return NULL;
    if (!handle->capture.on) return handle;
    complain("%s: the stream is captured; what a capture takes in is not modelled", call_name());
    return NULL;
}

CUresult cuStreamCreateWithPriority(CUstream *out, unsigned int flags, int priority)
{
    CALL(CALL_CONTEXT);
    if (!out || flags & ~(unsigned)CU_STREAM_NON_BLOCKING) return CUDA_ERROR_INVALID_VALUE;
    *out = stream_create(call.context, flags, priority);
    return *out ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuStreamCreate(CUstream *out, unsigned int flags)
{
    CALL(CALL_CONTEXT);
    if (!out || flags & ~(unsigned)CU_STREAM_NON_BLOCKING) return CUDA_ERROR_INVALID_VALUE;
    *out = stream_create(call.context, flags, 0);
    return *out ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuStreamDestroy_v2(CUstream handle)
{
    CALL(CALL_RELEASE);
    if (!IS(handle, MAGIC_STREAM) || handle->is_default) return CUDA_ERROR_INVALID_HANDLE;
    CUresult late = call.late ? call.late : handle->context->noticed ? handle->context->error : 0;
    capture_forget(handle);
    stream_retire(handle);
    return late;
}

CUresult cuStreamSynchronize(CUstream handle)
{
    CALL_ON(handle, CALL_CONTEXT | CALL_UNSAFE);
    CUstream stream = stream_of(call.context, handle);
    return stream ? stream_drain(stream) : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuStreamQuery(CUstream handle)
{
    CALL_ON(handle, CALL_CONTEXT | CALL_UNSAFE);
    CUstream stream = stream_of(call.context, handle);
    if (!stream) return CUDA_ERROR_INVALID_HANDLE;
    CUresult error = context_report(stream->context);
    if (error) return error;
    return stream_idle(stream) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

CUresult cuStreamWaitEvent(CUstream handle, CUevent event, unsigned int flags)
{
    CALL_ON(handle, CALL_CONTEXT);
    CUstream stream = stream_of(call.context, handle);
    if (!stream || !event_exists(event)) return CUDA_ERROR_INVALID_HANDLE;
    if (flags & ~(unsigned)CU_EVENT_WAIT_EXTERNAL) return CUDA_ERROR_INVALID_VALUE;
    if (event->mark) stream_wait(stream, event->mark);
    return CUDA_SUCCESS;
}

CUresult cuStreamGetPriority(CUstream handle, int *out)
{
    CALL(CALL_CONTEXT);
    CUstream stream = stream_of(call.context, handle);
    if (!stream) return CUDA_ERROR_INVALID_HANDLE;
    if (!out) return CUDA_ERROR_INVALID_VALUE;
    *out = stream->priority;
    return CUDA_SUCCESS;
}

CUresult cuStreamGetFlags(CUstream handle, unsigned int *out)
{
    CALL(CALL_CONTEXT);
    CUstream stream = stream_of(call.context, handle);
    if (!stream) return CUDA_ERROR_INVALID_HANDLE;
    if (!out) return CUDA_ERROR_INVALID_VALUE;
    *out = stream->flags;
    return CUDA_SUCCESS;
}

CUresult cuStreamGetId(CUstream handle, unsigned long long *out)
{
    CALL(CALL_CONTEXT);
    CUstream stream = stream_of(call.context, handle);
    if (!stream) return CUDA_ERROR_INVALID_HANDLE;
    if (!out) return CUDA_ERROR_INVALID_VALUE;
    *out = stream->id;
    return CUDA_SUCCESS;
}

CUresult cuStreamGetCtx(CUstream handle, CUcontext *out)
{
    CALL(CALL_CONTEXT);
    CUstream stream = stream_of(call.context, handle);
    if (!stream) return CUDA_ERROR_INVALID_HANDLE;
    if (!out) return CUDA_ERROR_INVALID_VALUE;
    *out = stream->context;
    return CUDA_SUCCESS;
}

CUresult cuStreamGetDevice(CUstream handle, CUdevice *out)
{
    CALL(CALL_CONTEXT);
    CUstream stream = stream_of(call.context, handle);
    if (!stream) return CUDA_ERROR_INVALID_HANDLE;
    if (!out) return CUDA_ERROR_INVALID_VALUE;
    *out = stream->context->device->ordinal;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest)
{
    CALL(CALL_CONTEXT);
    if (least) *least = PRIORITY_LEAST;
    if (greatest) *greatest = PRIORITY_GREATEST;
    return CUDA_SUCCESS;
}

CUresult cuLaunchHostFunc(CUstream handle, CUhostFn function, void *user)
{
    CALL_ON(handle, CALL_CONTEXT);
    CUstream stream = stream_of(call.context, handle);
    if (!stream) return CUDA_ERROR_INVALID_HANDLE;
    if (!function) return CUDA_ERROR_INVALID_VALUE;
    work_t work = {
        .kind = WORK_HOST, .maker = call_name(), .host = {.function = function, .user = user}};
    return stream_work(stream, &work);
}

CUresult cuStreamAddCallback(CUstream handle, CUstreamCallback callback, void *user,
                             unsigned int flags)
{
    CALL(CALL_CONTEXT);
    CUstream stream = stream_of(call.context, handle);
    if (!stream) return CUDA_ERROR_INVALID_HANDLE;
    if (!callback || flags) return CUDA_ERROR_INVALID_VALUE;
    work_t work = {.kind = WORK_CALLBACK,
                   .maker = call_name(),
                   .host = {.callback = callback, .stream = handle, .user = user}};
    return stream_work(stream, &work);
}
