// SPDX-License-Identifier: Apache-2.0
#include "cuda/context.h"

#include "cuda/arena.h"
#include "cuda/call.h"
#include "cuda/engine.h"
#include "cuda/external.h"
#include "cuda/module.h"
#include "cuda/pool.h"
#include "cuda/variant.h"

#include <stdlib.h>

enum { STACK_MAX = 64 };

static _Thread_local CUcontext stack[STACK_MAX];
static _Thread_local unsigned stack_depth;

CUcontext context_current(void)
{
    return stack_depth ? stack[stack_depth - 1] : NULL;
}

bool context_push(CUcontext context)
{
    if (stack_depth == STACK_MAX) return false;
    stack[stack_depth++] = context;
    return true;
}

void context_replace(CUcontext context)
{
    if (stack_depth) stack_depth--;
    if (context) stack[stack_depth++] = context;
}

void object_bury(void *object)
{
    static void *graves[1024];
    static unsigned next;
    *(unsigned *)object = 0;
    free(graves[next]);
    graves[next] = object;
    next = (next + 1) % (sizeof graves / sizeof *graves);
}

void state_wait(void)
{
    state.sleepers++;
    pthread_cond_wait(&state.changed, &state.lock);
    state.sleepers--;
}

void state_notify(void)
{
    if (state.sleepers) pthread_cond_broadcast(&state.changed);
}

void context_list(CUcontext context, kin_t *kin)
{
    *kin = (kin_t){context->kin, &context->kin};
    if (kin->next) kin->next->link = &kin->next;
    context->kin = kin;
}

void kin_remove(kin_t *kin)
{
    if (!kin->link) return;
    *kin->link = kin->next;
    if (kin->next) kin->next->link = kin->link;
}

// A context is never given back to the heap, so that a thread that still has it as its current one
// finds that it is destroyed. Nor are events and graphs that it had to the end: calls that use
// them fail. They stay listed, so that LeakSanitizer does not report them, for in
// CUDA they go with the context; `leaks` finds those that the program should have destroyed.
bool context_begin(CUcontext context, unsigned flags)
{
    static const size_t limits[] = {1024, 1 << 20, 8 << 20};
    context->flags = flags;
    context->error = CUDA_SUCCESS;
    context->noticed = false;
    context->peers = 0;
    context->id = ++state.serial;
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) context->limits[i] = limits[i];
    context->legacy = stream_create(context, 0, 0);
    if (!context->legacy) return false;
    context->legacy->is_default = true;
    if (context->device->lost) {
        context->error = context->device->lost;
        context->noticed = true;
    }
    context->alive = true;
    if (has_quirk(QUIRK_EARLY)) engine_start(context);
    return true;
}

CUcontext context_create(device_t *device, unsigned flags)
{
    CUcontext context = calloc(1, sizeof *context);
    if (!context) return NULL;
    context->magic = MAGIC_CONTEXT;
    context->device = device;
    pthread_cond_init(&context->work, NULL);
    if (!context_begin(context, flags)) {
        free(context);
        return NULL;
    }
    context->next = state.contexts;
    state.contexts = context;
    return context;
}

// A caller that knows of an error may free what was copied from or to: by then no copy is under
// way. A kernel may be, until its block ends, which may never be.
CUresult context_report(CUcontext context)
{
    while (context->error && context->transfers) state_wait();
    if (context->error) context->noticed = true;
    return context->error;
}

static void leaks_report(CUcontext context)
{
    unsigned streams = 0, memory = arena_count(context);
    if (context->error) return; // it took everything with it
    for (CUstream stream = context->streams; stream; stream = stream->next) {
        streams += !stream->is_default && !stream->dead;
    }
    if (!(streams | memory | context->events | context->modules | context->graphs | context->execs |
          context->semaphores)) {
        return;
    }
    complain("a context ends with %u streams, %u events, %u allocations, %u modules, %u graphs, "
             "%u executable graphs and %u semaphores",
             streams, context->events, memory, context->modules, context->graphs, context->execs,
             context->semaphores);
    if (settings()->leaks > 1) abort();
}

void context_destroy(CUcontext context)
{
    external_settle(context);
    if (settings()->leaks) leaks_report(context);
    context_fail(context, CUDA_ERROR_CONTEXT_IS_DESTROYED);
    for (bool busy = true; busy;) {
        busy = false;
        for (CUstream stream = context->streams; stream; stream = stream->next) {
            busy |= !stream_idle(stream);
        }
        if (busy) state_wait();
    }
    context->alive = false;
    engine_stop(context);
    while (context->streams) {
        context->streams->running = false;
        stream_retire(context->streams);
    }
    context->legacy = NULL;
    pools_forget(context);
    modules_forget(context);
    arena_free_all(context);
    arena_close();
    context->events = context->modules = context->graphs = context->execs = 0;
    context->semaphores = 0;
    context->places = context->room = 0;
}

void contexts_fail(CUcontext which, CUresult code)
{
    for (CUcontext context = state.contexts; context; context = context->next) {
        if (!context->alive || (which && context != which)) continue;
        context_fail(context, code);
        context_report(context);
    }
}

void devices_lose(CUresult code)
{
    for (unsigned i = 0; i < state.device_count; i++) state.devices[i].lost = code;
    contexts_fail(NULL, code);
}

static bool flags_valid(unsigned flags)
{
    unsigned schedule = flags & CU_CTX_SCHED_MASK;
    return !(flags & ~(unsigned)CU_CTX_FLAGS_MASK) && (schedule & (schedule - 1)) == 0;
}

static CUresult context_make(CUcontext *out, unsigned flags, CUdevice ordinal)
{
    device_t *device = device_of(ordinal);
    if (!device) return CUDA_ERROR_INVALID_DEVICE;
    if (!out || !flags_valid(flags)) return CUDA_ERROR_INVALID_VALUE;
    if (device->lost) return device->lost;
    CUcontext context = context_create(device, flags);
    if (!context || !context_push(context)) return CUDA_ERROR_OUT_OF_MEMORY;
    *out = context;
    return CUDA_SUCCESS;
}

CUresult cuCtxCreate_v2(CUcontext *out, unsigned int flags, CUdevice device)
{
    CALL(CALL_PLAIN);
    return context_make(out, flags, device);
}

CUresult cuCtxCreate_v4(CUcontext *out, CUctxCreateParams *params, unsigned int flags,
                        CUdevice device)
{
    CALL(CALL_PLAIN);
    if (params) return CUDA_ERROR_NOT_SUPPORTED;
    return context_make(out, flags, device);
}

CUresult cuCtxDestroy_v2(CUcontext context)
{
    CALL(CALL_RELEASE);
    if (!IS(context, MAGIC_CONTEXT) || context == context->device->primary) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    if (!context->alive) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    if (context_current() == context) context_replace(NULL);
    context_destroy(context);
    return call.late;
}

CUresult cuCtxPushCurrent_v2(CUcontext context)
{
    CALL(CALL_PLAIN);
    if (!IS(context, MAGIC_CONTEXT)) return CUDA_ERROR_INVALID_CONTEXT;
    return context_push(context) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuCtxPopCurrent_v2(CUcontext *out)
{
    CALL(CALL_PLAIN);
    if (!call.context) return CUDA_ERROR_INVALID_CONTEXT;
    if (out) *out = call.context;
    context_replace(NULL);
    return CUDA_SUCCESS;
}

CUresult cuCtxSetCurrent(CUcontext context)
{
    CALL(CALL_PLAIN);
    if (context && !IS(context, MAGIC_CONTEXT)) return CUDA_ERROR_INVALID_CONTEXT;
    context_replace(context);
    return CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext *out)
{
    CALL(CALL_PLAIN);
    if (!out) return CUDA_ERROR_INVALID_VALUE;
    *out = call.context;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice(CUdevice *out)
{
    CALL(CALL_CONTEXT);
    if (!out) return CUDA_ERROR_INVALID_VALUE;
    *out = call.context->device->ordinal;
    return CUDA_SUCCESS;
}

// The context that an optional argument means.
static CUcontext context_of(CUcontext current, CUcontext handle)
{
    CUcontext context = handle ? handle : current;
    return IS(context, MAGIC_CONTEXT) && context->alive ? context : NULL;
}

CUresult cuCtxGetDevice_v2(CUdevice *out, CUcontext handle)
{
    CALL(CALL_PLAIN);
    CUcontext context = context_of(call.context, handle);
    if (!context) return CUDA_ERROR_INVALID_CONTEXT;
    if (!out) return CUDA_ERROR_INVALID_VALUE;
    *out = context->device->ordinal;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetFlags(unsigned int *out)
{
    CALL(CALL_CONTEXT);
    if (!out) return CUDA_ERROR_INVALID_VALUE;
    *out = call.context->flags;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetId(CUcontext handle, unsigned long long *out)
{
    CALL(CALL_PLAIN);
    CUcontext context = context_of(call.context, handle);
    if (!context) return CUDA_ERROR_INVALID_CONTEXT;
    if (!out) return CUDA_ERROR_INVALID_VALUE;
    *out = context->id;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetApiVersion(CUcontext handle, unsigned int *out)
{
    CALL(CALL_PLAIN);
    if (!context_of(call.context, handle)) return CUDA_ERROR_INVALID_CONTEXT;
    if (!out) return CUDA_ERROR_INVALID_VALUE;
    *out = 3020;
    return CUDA_SUCCESS;
}

CUresult cuCtxSynchronize(void)
{
    CALL(CALL_CONTEXT | CALL_UNSAFE);
    return context_drain(call.context);
}

CUresult cuCtxSynchronize_v2(CUcontext handle)
{
    CALL(CALL_PLAIN);
    CUcontext context = context_of(call.context, handle);
    return context ? context_drain(context) : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult cuCtxSetLimit(CUlimit limit, size_t value)
{
    CALL(CALL_CONTEXT);
    if ((unsigned)limit > CU_LIMIT_MALLOC_HEAP_SIZE) return CUDA_ERROR_UNSUPPORTED_LIMIT;
    call.context->limits[limit] = value;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetLimit(size_t *out, CUlimit limit)
{
    CALL(CALL_CONTEXT);
    if ((unsigned)limit > CU_LIMIT_MALLOC_HEAP_SIZE) return CUDA_ERROR_UNSUPPORTED_LIMIT;
    if (!out) return CUDA_ERROR_INVALID_VALUE;
    *out = call.context->limits[limit];
    return CUDA_SUCCESS;
}

CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned int flags)
{
    CALL(CALL_CONTEXT);
    if (!context_of(NULL, peer)) return CUDA_ERROR_INVALID_CONTEXT;
    if (flags) return CUDA_ERROR_INVALID_VALUE;
    if (peer->device == call.context->device) return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
    uint32_t bit = UINT32_C(1) << peer->device->ordinal;
    if (call.context->peers & bit) return CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
    call.context->peers |= bit;
    return CUDA_SUCCESS;
}

CUresult cuCtxDisablePeerAccess(CUcontext peer)
{
    CALL(CALL_CONTEXT);
    if (!context_of(NULL, peer)) return CUDA_ERROR_INVALID_CONTEXT;
    uint32_t bit = UINT32_C(1) << peer->device->ordinal;
    if (!(call.context->peers & bit)) return CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
    call.context->peers &= ~bit;
    return CUDA_SUCCESS;
}

// What works with it, or makes another, waits until one that is just being destroyed is gone.
static CUresult primary_lookup(CUdevice ordinal, device_t **out)
{
    *out = device_of(ordinal);
    while (*out && (*out)->primary_ends) state_wait();
    return *out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

static void primary_destroy(device_t *device)
{
    device->primary_ends = true;
    context_destroy(device->primary);
    device->primary_ends = false;
    state_notify();
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *out, CUdevice ordinal)
{
    CALL(CALL_PLAIN);
    device_t *device;
    CUresult error = primary_lookup(ordinal, &device);
    if (error) return error;
    if (!out) return CUDA_ERROR_INVALID_VALUE;
    if (device->lost) return device->lost;
    if (device->primary_count == 0) {
        unsigned flags = device->primary_flags;
        if (!device->primary)
            device->primary = context_create(device, flags);
        else if (!context_begin(device->primary, flags))
            return CUDA_ERROR_OUT_OF_MEMORY;
        if (!device->primary) return CUDA_ERROR_OUT_OF_MEMORY;
    }
    device->primary_count++;
    *out = device->primary;
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice ordinal)
{
    CALL(CALL_RELEASE);
    device_t *device;
    CUresult error = primary_lookup(ordinal, &device);
    if (error) return error;
    if (device->primary_count == 0) return CUDA_ERROR_INVALID_CONTEXT;
    if (--device->primary_count == 0) primary_destroy(device);
    return call.late;
}

CUresult cuDevicePrimaryCtxReset_v2(CUdevice ordinal)
{
    CALL(CALL_RELEASE);
    device_t *device;
    CUresult error = primary_lookup(ordinal, &device);
    if (error) return error;
    if (device->primary_count == 0) return CUDA_SUCCESS;
    primary_destroy(device);
    return context_begin(device->primary, device->primary_flags) ? call.late
                                                                 : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice ordinal, unsigned int flags)
{
    CALL(CALL_PLAIN);
    device_t *device;
    CUresult error = primary_lookup(ordinal, &device);
    if (error) return error;
    if (!flags_valid(flags)) return CUDA_ERROR_INVALID_VALUE;
    device->primary_flags = flags;
    if (device->primary_count) device->primary->flags = flags;
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxGetState(CUdevice ordinal, unsigned int *flags, int *active)
{
    CALL(CALL_PLAIN);
    device_t *device;
    CUresult error = primary_lookup(ordinal, &device);
    if (error) return error;
    if (!flags || !active) return CUDA_ERROR_INVALID_VALUE;
    *flags = device->primary_flags;
    *active = device->primary_count > 0;
    return CUDA_SUCCESS;
}
