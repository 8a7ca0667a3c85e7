// SPDX-License-Identifier: Apache-2.0
#include "cuda/capture.h"

#include "cuda/call.h"
#include "cuda/graph.h"

static CUstream captures; // linked by capture.next
static _Thread_local CUstreamCaptureMode own_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;

static bool forbids(CUstream stream)
{
    CUstreamCaptureMode mode = stream->capture.mode;
    if (pthread_equal(stream->capture.thread, pthread_self()))
        return mode != CU_STREAM_CAPTURE_MODE_RELAXED;
    return own_mode == CU_STREAM_CAPTURE_MODE_GLOBAL && mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
}

bool capture_is_spoilt(void)
{
    bool any = false;
    if (own_mode == CU_STREAM_CAPTURE_MODE_RELAXED) return false;
    for (CUstream stream = captures; stream; stream = stream->capture.next) {
        if (!forbids(stream)) continue;
        stream->capture.spoilt = any = true;
    }
    return any;
}

void capture_forget(CUstream stream)
{
    CUstream *at = &captures;
    while (*at && *at != stream) at = &(*at)->capture.next;
    if (*at) *at = stream->capture.next;
    stream->capture.on = false;
}

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode)
{
    CALL(CALL_PLAIN);
    if (!mode || (unsigned)*mode > CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_ERROR_INVALID_VALUE;
    CUstreamCaptureMode before = own_mode;
    own_mode = *mode;
    *mode = before;
    return CUDA_SUCCESS;
}

CUresult cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode)
{
    CALL(CALL_CONTEXT);
    if (!IS(stream, MAGIC_STREAM)) return CUDA_ERROR_INVALID_HANDLE;
    if ((unsigned)mode > CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_ERROR_INVALID_VALUE;
    if (stream->is_default) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    if (stream->capture.on) return CUDA_ERROR_ILLEGAL_STATE;
    stream->capture =
        (capture_t){.on = true, .mode = mode, .thread = pthread_self(), .next = captures};
    captures = stream;
    return CUDA_SUCCESS;
}

CUresult cuStreamEndCapture(CUstream stream, CUgraph *out)
{
    CALL(CALL_CONTEXT);
    if (!IS(stream, MAGIC_STREAM)) return CUDA_ERROR_INVALID_HANDLE;
    if (!out) return CUDA_ERROR_INVALID_VALUE;
    if (!stream->capture.on) return CUDA_ERROR_ILLEGAL_STATE;
    *out = NULL;
    capture_forget(stream);
    if (stream->capture.spoilt) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    *out = graph_create(call.context);
    return *out ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}
