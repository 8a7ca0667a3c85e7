// SPDX-License-Identifier: Apache-2.0
#include "cuda/arena.h"
#include "cuda/call.h"
#include "cuda/engine.h"
#include "cuda/pool.h"

#include <stdlib.h>

bool event_exists(CUevent event)
{
    if (!IS(event, MAGIC_EVENT)) return false;
    if (event->context->alive && event->life == event->context->id) return true;
    complain("%s: an event of a context that has ended, and all of its events with it",
             call_name());
    return false;
}

CUresult cuEventCreate(CUevent *out, unsigned int flags)
{
    CALL(CALL_CONTEXT);
    unsigned known = CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING;
    if (flags & CU_EVENT_INTERPROCESS) return CUDA_ERROR_NOT_SUPPORTED;
    if (!out || flags & ~known) return CUDA_ERROR_INVALID_VALUE;
    context_await_settled(call.context);
    CUevent event = calloc(1, sizeof *event);
    if (!event) return CUDA_ERROR_OUT_OF_MEMORY;
    event->magic = MAGIC_EVENT;
    event->context = call.context;
    event->life = call.context->id;
    event->flags = flags;
    call.context->events++;
    context_list(call.context, &event->kin);
    *out = event;
    return CUDA_SUCCESS;
}

CUresult cuEventDestroy_v2(CUevent event)
{
    CALL(CALL_RELEASE);
    if (!event_exists(event)) return CUDA_ERROR_INVALID_HANDLE;
    CUresult late = call.late ? call.late : event->context->noticed ? event->context->error : 0;
    if (event->context->events) event->context->events--;
    mark_release(event->mark);
    kin_remove(&event->kin);
    object_bury(event);
    return late;
}

static CUresult event_record(CUcontext current, CUevent event, CUstream handle)
{
    CUstream stream = stream_of(current, handle);
    if (!stream || !event_exists(event)) return CUDA_ERROR_INVALID_HANDLE;
    if (stream->context != event->context) return CUDA_ERROR_INVALID_HANDLE;
    command_t *command = command_create(COMMAND_RECORD);
    mark_release(event->mark);
    event->mark = command->mark = mark_create();
    mark_retain(event->mark);
    stream_push(stream, command);
    return CUDA_SUCCESS;
}

CUresult cuEventRecord(CUevent event, CUstream stream)
{
    CALL_ON(stream, CALL_CONTEXT);
    return event_record(call.context, event, stream);
}

CUresult cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned int flags)
{
    CALL_ON(stream, CALL_CONTEXT);
    if (flags & ~(unsigned)CU_EVENT_RECORD_EXTERNAL) return CUDA_ERROR_INVALID_VALUE;
    return event_record(call.context, event, stream);
}

CUresult cuEventQuery(CUevent event)
{
    CALL(CALL_UNSAFE);
    if (!event_exists(event)) return CUDA_ERROR_INVALID_HANDLE;
    CUresult error = context_report(event->context);
    if (error) return error;
    return !event->mark || event->mark->done ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

CUresult cuEventSynchronize(CUevent event)
{
    CALL(CALL_UNSAFE);
    if (!event_exists(event)) return CUDA_ERROR_INVALID_HANDLE;
    CUcontext context = event->context;
    if (event->mark) {
        mark_t *mark = mark_retain(event->mark);
        while (!mark->done && !context->error) state_wait();
        pools_settle(context, mark);
        mark_release(mark);
        arena_close();
    }
    return context_report(context);
}

static CUresult event_elapsed(float *out, CUevent start, CUevent end)
{
    if (!event_exists(start) || !event_exists(end)) return CUDA_ERROR_INVALID_HANDLE;
    if (!out) return CUDA_ERROR_INVALID_VALUE;
    if ((start->flags | end->flags) & CU_EVENT_DISABLE_TIMING) return CUDA_ERROR_INVALID_HANDLE;
    if (!start->mark || !end->mark) return CUDA_ERROR_INVALID_HANDLE;
    CUresult error = context_report(start->context);
    if (error) return error;
    if (!start->mark->done || !end->mark->done) return CUDA_ERROR_NOT_READY;
    *out = (float)((double)(int64_t)(end->mark->time_ns - start->mark->time_ns) / 1e6);
    return CUDA_SUCCESS;
}

CUresult cuEventElapsedTime(float *out, CUevent start, CUevent end)
{
    CALL(CALL_PLAIN);
    return event_elapsed(out, start, end);
}

CUresult cuEventElapsedTime_v2(float *out, CUevent start, CUevent end)
{
    CALL(CALL_PLAIN);
    return event_elapsed(out, start, end);
}
