// SPDX-License-Identifier: Apache-2.0
// Devices, streams, events, kernels.
#include "base/lock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/status.h"
#include "drivers/hip/hip.h"
#include "drivers/hip/releases.h"
#include "executable/image.h"
#include "kit/gfx.h"
#include "kit/nvptx.h"

extern const unsigned char keel_embed_hip_builtin[];

HIP_FORWARDS(stream_create, hipStreamCreateWithPriority, (int32_t priority, stream_h *stream),
             (hipStream_t *)(void *)stream, hipStreamNonBlocking, priority)
HIP_RELEASES(stream_destroy, hipStreamDestroy, what)
HIP_FORWARDS(stream_wait, hipStreamWaitEvent, (stream_h stream, stream_event_h event), stream,
             event, 0)
HIP_FORWARDS(event_record, hipEventRecord, (stream_event_h event, stream_h s), event, s)
HIP_RELEASES(event_destroy, hipEventDestroy, what)
HIP_RELEASES(module_unload, hipModuleUnload, what)

_Thread_local hipError_t hip_refused;

static keel_status_t refused(const stream_vendor_t *v)
{
    return hip_status_entered(v->symbols, hip_refused, "hipSetDevice");
}

// From HIP 7 on a wait succeeds when a kernel has gone wrong, and so may a query: the next call of
// any kind says so.
static keel_status_t waited(const stream_vendor_t *v)
{
    int device;
    KEEL_TRY(refused(v));
    return hip_status_entered(v->symbols, v->symbols->hipGetDevice(&device), "hipGetDevice");
}

static keel_status_t stream_drain(stream_vendor_t *v, stream_h stream)
{
    KEEL_TRY(HIP_CALL(v->symbols, hipStreamSynchronize, stream));
    return waited(v);
}

static keel_status_t event_sync(stream_vendor_t *v, stream_event_h event)
{
    KEEL_TRY(HIP_CALL(v->symbols, hipEventSynchronize, event));
    return waited(v);
}

// The current device and the mode of capturing are variables of the thread: to read and to set
// them is cheap. ROCm refuses no number of a device that exists; if it did, the thread's calls
// would go to the device that it had before.
static void enter(stream_vendor_t *v, stream_before_t *before)
{
    const hip_symbols_t *symbols = v->symbols;
    hipStreamCaptureMode mode = hipStreamCaptureModeRelaxed;
    before->vendor = v;
    before->error = (int)hip_refused; // of a device that was entered before, and not left
    hip_refused = hipSuccess;
    bool unknown = symbols->hipGetDevice(&before->has) != hipSuccess;
    if (unknown || before->has != v->device) hip_refused = symbols->hipSetDevice(v->device);
    if (unknown || hip_refused != hipSuccess) (void)symbols->hipGetLastError(); // is not the user's
    if (unknown) before->has = v->device; // there is nothing to put back
    (void)symbols->hipThreadExchangeStreamCaptureMode(&mode);
    before->mode = mode;
}

static void leave(stream_before_t *before)
{
    const stream_vendor_t *v = before->vendor;
    hipStreamCaptureMode mode = before->mode;
    (void)v->symbols->hipThreadExchangeStreamCaptureMode(&mode);
    bool other = before->has != v->device && hip_refused == hipSuccess;
    if (other && v->symbols->hipSetDevice(before->has) != hipSuccess) {
        (void)v->symbols->hipGetLastError();
        log_say(KEEL_LOG_ERROR, "hip: hipSetDevice(%d) was refused: the thread keeps device %d",
                before->has, v->device);
    }
    hip_refused = (hipError_t)before->error;
}

static void close_device(stream_vendor_t *v)
{
    mem_free(v);
}

static uint64_t memory(stream_vendor_t *v)
{
    size_t left = 0, all = 0;
    keel_status_t status = HIP_CALL(v->symbols, hipMemGetInfo, &left, &all);
    bool known = !status;
    keel_status_release(status);
    return known ? left : UINT64_MAX;
}

static keel_status_t event_create(stream_vendor_t *v, stream_event_kind_t kind,
                                  stream_event_h *event)
{
    unsigned flags = kind == STREAM_EVENT_SLEEPS ? hipEventBlockingSync : 0;
    return HIP_CALL(v->symbols, hipEventCreateWithFlags, (hipEvent_t *)(void *)event,
                    flags | hipEventDisableTiming);
}

static keel_status_t event_query(stream_vendor_t *v, stream_event_h event, bool *over)
{
    hipError_t result = v->symbols->hipEventQuery(event);
    *over = false;
    if (result == hipErrorNotReady) {
        (void)v->symbols->hipGetLastError(); // no one else is to find it
        return NULL;
    }
    KEEL_TRY(hip_status(v->symbols, result, "hipEventQuery"));
    KEEL_TRY(waited(v));
    *over = true;
    return NULL;
}

static lock_t alone; // of all devices

void hip_alone_enter(const stream_vendor_t *v)
{
    if (v->symbols->release->launches_alone) lock_enter(&alone);
}

void hip_alone_leave(const stream_vendor_t *v)
{
    if (v->symbols->release->launches_alone) lock_leave(&alone);
}

static keel_status_t launch(stream_vendor_t *v, stream_h stream, const stream_launch_t *l)
{
    stream_extra_t extra;
    stream_extra_init(&extra, l, hip_marks);
    hip_alone_enter(v);
    keel_status_t status = HIP_CALL(v->symbols, hipModuleLaunchKernel, l->function, l->groups[0],
                                    l->groups[1], l->groups[2], l->group_size[0], l->group_size[1],
                                    l->group_size[2], l->local_memory, stream, NULL, extra.list);
    hip_alone_leave(v);
    return status;
}

// A HIP that forwards to NVIDIA's library has GPUs of NVIDIA's.
static uint32_t image_rank(stream_vendor_t *v, keel_image_kind_t kind, const char *target)
{
    int nvidia = 0;
    bool only;
    if (nvptx_parse(v->target, &nvidia, &only)) return nvptx_rank(nvidia, kind, target);
    return kind == KEEL_IMAGE_HSACO ? gfx_rank(v->target, target) : 0;
}

// Of an image, or of Keel's own, which has no size here: HIP's words for code that it does not know
// are also those for a lack of memory, and those for a wrong one are those for a kernel that has
// gone wrong.
static keel_status_t module_refused(stream_vendor_t *v, hipError_t result, const void *data,
                                    size_t size)
{
    enum { ROUNDING = 2 << 20 };
    uint64_t most, left;
    keel_status_t status = hip_status(v->symbols, result, "hipModuleLoadData");
    if (result == hipErrorInvalidKernelFile || result == hipErrorInvalidSource)
        return status_as(status, KEEL_CORRUPT);
    if (keel_status_code(status) != KEEL_UNSUPPORTED) return status;
    if (__builtin_add_overflow(image_memory_size(data, size), ROUNDING, &most)) most = UINT64_MAX;
    left = memory(v);
    if (most <= left && size) return status;
    if (most <= left)
        return keel_status_wrap(status, "Keel has no kernels of its own for %s", v->target);
    return keel_status_wrap(status_as(status, KEEL_RESOURCE_EXHAUSTED),
                            "it takes up to %llu bytes, and the device has %llu left",
                            (unsigned long long)most, (unsigned long long)left);
}

static keel_status_t module_load(stream_vendor_t *v, const void *data, size_t size,
                                 stream_module_h *module)
{
    hipModule_t made = NULL;
    *module = NULL;
    KEEL_TRY(refused(v));
    hipError_t result = v->symbols->hipModuleLoadData(&made, data);
    *module = made;
    return result == hipSuccess ? NULL : module_refused(v, result, data, size);
}

static keel_status_t module_function(stream_vendor_t *v, stream_module_h module, const char *name,
                                     stream_function_h *function, uint32_t *local_memory)
{
    hipFunction_t found = NULL;
    int local = 0;
    KEEL_TRY(refused(v));
    keel_status_t status = HIP_CALL(v->symbols, hipModuleGetFunction, &found, module, name);
    if (keel_status_code(status) == KEEL_NOT_FOUND)
        return keel_status_wrap(status, "it has no kernel '%s'", name);
    KEEL_TRY(status);
    KEEL_TRY(HIP_CALL(v->symbols, hipFuncGetAttribute, &local, HIP_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES,
                      found));
    *function = found;
    *local_memory = (uint32_t)local;
    return NULL;
}

// A launch may ask for all that a group can have: nothing is to be allowed before.
static keel_status_t function_allow(stream_vendor_t *v, stream_function_h function,
                                    uint32_t local_memory)
{
    return NULL;
}

static keel_status_t module_global(stream_vendor_t *v, stream_module_h module, const char *name,
                                   uint64_t *address, uint64_t *size)
{
    hipDeviceptr_t found = NULL;
    size_t bytes = 0;
    KEEL_TRY(HIP_CALL(v->symbols, hipModuleGetGlobal, &found, &bytes, module, name));
    *address = (uintptr_t)found;
    *size = bytes;
    return NULL;
}

// A bundle with code for several targets, of which the vendor takes its own.
static const void *builtin_image(stream_vendor_t *v)
{
    return keel_embed_hip_builtin;
}

// The others change graphs on the device, which HIP does not.
static const char *const builtin_names[STREAM_BUILTINS] = {
    [STREAM_TIMESTAMP] = "keel_timestamp",
    [STREAM_FILL] = "keel_fill",
    [STREAM_COUNTS] = "keel_counts",
    [STREAM_COPY] = "keel_copy",
};

void hip_fill_device(stream_api_t *api)
{
    STREAM_DEVICE_SLOTS(STREAM_FILL)
    api->driver = "hip";
}
