// SPDX-License-Identifier: Apache-2.0
// Devices, streams, events, kernels.
#include "base/memory.h"
#include "base/status.h"
#include "base/thread.h"
#include "drivers/cuda/cuda.h"
#include "kit/nvptx.h"

extern const unsigned char keel_embed_cuda_builtin[];

CUDA_FORWARDS(stream_create, cuStreamCreateWithPriority, (int32_t priority, stream_h *stream),
              (CUstream *)(void *)stream, CU_STREAM_NON_BLOCKING, priority)
CUDA_RELEASES(stream_destroy, cuStreamDestroy, what)
CUDA_FORWARDS(stream_drain, cuStreamSynchronize, (stream_h stream), stream)
CUDA_FORWARDS(stream_wait, cuStreamWaitEvent, (stream_h stream, stream_event_h event), stream,
              event, 0)
CUDA_FORWARDS(stream_call, cuLaunchHostFunc, (stream_h stream, void (*fn)(void *user), void *user),
              stream, fn, user)
CUDA_FORWARDS(KEEL_HOT event_record, cuEventRecord, (stream_event_h event, stream_h s), event, s)
CUDA_FORWARDS(event_sync, cuEventSynchronize, (stream_event_h event), event)
CUDA_RELEASES(event_destroy, cuEventDestroy, what)
CUDA_RELEASES(outside_destroy, cuDestroyExternalSemaphore, what)
CUDA_FORWARDS(function_allow, cuFuncSetAttribute,
              (stream_function_h function, uint32_t local_memory), function,
              CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, (int)local_memory)
CUDA_RELEASES(module_unload, cuModuleUnload, what)

// What the thread has entered; the innermost.
static THREAD_LOCAL stream_before_t *inside;

KEEL_HOT static void enter(stream_vendor_t *v, stream_before_t *before)
{
    before->vendor = v;
    before->outer = inside;
    before->has = CUDA_PLAIN;
    inside = before;
    // Streams without a context of their own are those of the current one; and what is plain was
    // seen to be so with CUDA 13.
    if (__builtin_expect(v->implicit || v->symbols->version < 13000, 0))
        (void)cuda_prepare(CUDA_CURRENT);
}

KEEL_HOT static void leave(stream_before_t *before)
{
    const cuda_symbols_t *symbols = before->vendor->symbols;
    CUstreamCaptureMode mode = before->mode;
    inside = before->outer;
    if (__builtin_expect(before->has == CUDA_PLAIN, 1)) return;
    if (before->has >= CUDA_CURRENT && before->context != before->vendor->context)
        (void)symbols->cuCtxSetCurrent(before->context);
    (void)symbols->cuThreadExchangeStreamCaptureMode(&mode);
}

static CUresult relax(stream_before_t *before)
{
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    CUresult result = before->vendor->symbols->cuThreadExchangeStreamCaptureMode(&mode);
    before->mode = mode;
    if (!result) before->has = CUDA_RELAXED;
    return result;
}

static CUresult make_current(stream_before_t *before)
{
    const stream_vendor_t *v = before->vendor;
    CUcontext current = NULL;
    CUresult result = v->symbols->cuCtxGetCurrent(&current);
    if (!result && current != v->context) result = v->symbols->cuCtxSetCurrent(v->context);
    before->context = current;
    if (!result) before->has = CUDA_CURRENT;
    return result;
}

bool cuda_prepare(cuda_needs_t needs)
{
    stream_before_t *before = inside;
    if (!before || before->has >= (int)needs) return true;
    before->error = before->has >= CUDA_RELAXED ? CUDA_SUCCESS : relax(before);
    if (!before->error && needs == CUDA_CURRENT) before->error = make_current(before);
    return !before->error;
}

CUresult cuda_refusal(void)
{
    return (CUresult)inside->error;
}

static void close_device(stream_vendor_t *v)
{
    if (v->owned)
        keel_status_release(CUDA_CALL(v->symbols, cuCtxDestroy, v->context));
    else if (v->context && !v->adopted)
        keel_status_release(CUDA_CALL(v->symbols, cuDevicePrimaryCtxRelease, v->device));
    mem_free(v);
}

static keel_status_t beside(stream_vendor_t *v, stream_vendor_t **made)
{
    stream_vendor_t *other = mem_zalloc(sizeof *other);
    if (!other) return status_no_memory();
    *other = (stream_vendor_t){.symbols = v->symbols, .device = v->device};
    keel_status_t status = CUDA_CALL(v->symbols, cuCtxCreate, &other->context, 0, v->device);
    other->owned = !status;
    // It is on top of the thread's stack, where no context means the one below.
    if (!status) status = CUDA_CALL(v->symbols, cuCtxSetCurrent, NULL);
    if (status)
        close_device(other);
    else
        *made = other;
    return status;
}

static uint64_t memory(stream_vendor_t *v)
{
    size_t left = 0, all = 0;
    keel_status_t status = CUDA_CALL(v->symbols, cuMemGetInfo, &left, &all);
    bool known = !status;
    keel_status_release(status);
    return known ? left : UINT64_MAX;
}

static keel_status_t event_create(stream_vendor_t *v, stream_event_kind_t kind,
                                  stream_event_h *event)
{
    unsigned flags = kind == STREAM_EVENT_SLEEPS ? CU_EVENT_BLOCKING_SYNC : 0;
    return CUDA_CALL(v->symbols, cuEventCreate, (CUevent *)(void *)event,
                     flags | CU_EVENT_DISABLE_TIMING);
}

static keel_status_t event_query(stream_vendor_t *v, stream_event_h event, bool *over)
{
    CUresult result = CUDA_RESULT(v->symbols, cuEventQuery, event);
    *over = result == CUDA_SUCCESS;
    if (result == CUDA_ERROR_NOT_READY) return NULL;
    return cuda_status(v->symbols, result, "cuEventQuery");
}

static keel_status_t outside_import(stream_vendor_t *v, int fd, stream_outside_h *outside)
{
    CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC desc = {
        .type = CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_TIMELINE_SEMAPHORE_FD, .handle.fd = fd};
    return CUDA_CALL(v->symbols, cuImportExternalSemaphore, (CUexternalSemaphore *)(void *)outside,
                     &desc);
}

static keel_status_t outside_signal(stream_vendor_t *v, stream_outside_h outside, uint64_t value,
                                    stream_h stream)
{
    CUexternalSemaphore semaphore = outside;
    CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS params = {.params.fence.value = value};
    return CUDA_CALL(v->symbols, cuSignalExternalSemaphoresAsync, &semaphore, &params, 1, stream);
}

static keel_status_t outside_wait(stream_vendor_t *v, stream_outside_h outside, uint64_t value,
                                  stream_h stream)
{
    CUexternalSemaphore semaphore = outside;
    CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS params = {.params.fence.value = value};
    return CUDA_CALL(v->symbols, cuWaitExternalSemaphoresAsync, &semaphore, &params, 1, stream);
}

static keel_status_t launch(stream_vendor_t *v, stream_h stream, const stream_launch_t *l)
{
    stream_extra_t extra;
    stream_extra_init(&extra, l, cuda_marks);
    return CUDA_CALL(v->symbols, cuLaunchKernel, l->function, l->groups[0], l->groups[1],
                     l->groups[2], l->group_size[0], l->group_size[1], l->group_size[2],
                     l->local_memory, stream, NULL, extra.list);
}

static uint32_t image_rank(stream_vendor_t *v, keel_image_kind_t kind, const char *target)
{
    return nvptx_rank(v->architecture, kind, target);
}

static keel_status_t module_load(stream_vendor_t *v, const void *data, size_t size,
                                 stream_module_h *module)
{
    (void)size;
    char log[2048] = "";
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {log, (void *)(uintptr_t)(sizeof log - 1)};
    CUmodule made = NULL;
    keel_status_t status =
        CUDA_CALL(v->symbols, cuModuleLoadDataEx, &made, data, 2, options, values);
    *module = made;
    if (!status || !log[0]) return status;
    return keel_status_wrap(status, "the compiler says: %s", log);
}

static keel_status_t module_function(stream_vendor_t *v, stream_module_h module, const char *name,
                                     stream_function_h *function, uint32_t *local_memory)
{
    CUfunction found = NULL;
    int local = 0;
    keel_status_t status = CUDA_CALL(v->symbols, cuModuleGetFunction, &found, module, name);
    if (status) return keel_status_wrap(status, "it has no kernel '%s'", name);
    KEEL_TRY(CUDA_CALL(v->symbols, cuFuncLoad, found));
    KEEL_TRY(CUDA_CALL(v->symbols, cuFuncGetAttribute, &local, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES,
                       found));
    *function = found;
    *local_memory = (uint32_t)local;
    return NULL;
}

static keel_status_t function_arguments(stream_vendor_t *v, stream_function_h function,
                                        uint32_t *size)
{
    *size = 0;
    for (size_t i = 0;; i++) {
        size_t offset = 0, bytes = 0;
        CUresult result = CUDA_RESULT(v->symbols, cuFuncGetParamInfo, function, i, &offset, &bytes);
        if (result == CUDA_ERROR_INVALID_VALUE) return NULL; // that was the last
        KEEL_TRY(cuda_status(v->symbols, result, "cuFuncGetParamInfo"));
        *size = (uint32_t)(offset + bytes);
    }
}

static keel_status_t module_global(stream_vendor_t *v, stream_module_h module, const char *name,
                                   uint64_t *address, uint64_t *size)
{
    CUdeviceptr found = 0;
    size_t bytes = 0;
    KEEL_TRY(CUDA_CALL(v->symbols, cuModuleGetGlobal, &found, &bytes, module, name));
    *address = found;
    *size = bytes;
    return NULL;
}

static const void *builtin_image(stream_vendor_t *v)
{
    return keel_embed_cuda_builtin;
}

static const char *const builtin_names[STREAM_BUILTINS] = {
    [STREAM_TIMESTAMP] = "keel_timestamp", [STREAM_FILL] = "keel_fill",
    [STREAM_COUNTS] = "keel_counts",       [STREAM_GRID] = "keel_grid",
    [STREAM_BRANCH] = "keel_branch",       [STREAM_COPY] = "keel_copy",
    [STREAM_REBIND] = "keel_rebind",
};

void cuda_fill_device(stream_api_t *api)
{
    STREAM_DEVICE_SLOTS(STREAM_FILL)
    STREAM_OUTSIDE_SLOTS(STREAM_FILL)
    STREAM_ARGUMENT_SLOTS(STREAM_FILL)
    api->driver = "cuda";
}
