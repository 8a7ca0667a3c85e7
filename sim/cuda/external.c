// SPDX-License-Identifier: Apache-2.0
#include "cuda/external.h"

#include "cuda/call.h"
#include "cuda/engine.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PAYLOAD_SIZE = 4096 };

typedef struct payload_t {
    char magic[8];
    uint64_t value;
} payload_t;

struct CUextSemaphore_st {
    unsigned magic;
    CUcontext context;
    payload_t *payload; // mapped
    unsigned pending;   // signals and waits that are enqueued
};

// Maps what a descriptor has; NULL if it is no semaphore. *is_open: it is something.
static payload_t *payload_map(int fd, bool *is_open)
{
    struct stat info;
    *is_open = fstat(fd, &info) == 0;
    if (!*is_open || !S_ISREG(info.st_mode) || info.st_size != PAYLOAD_SIZE) return NULL;
    payload_t *payload = mmap(NULL, PAYLOAD_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (payload == MAP_FAILED) return NULL;
    if (memcmp(payload->magic, SEMAPHORE_MAGIC, sizeof payload->magic) == 0) return payload;
    munmap(payload, PAYLOAD_SIZE);
    return NULL;
}

static uint64_t payload_value(const payload_t *payload)
{
    return __atomic_load_n(&payload->value, __ATOMIC_ACQUIRE);
}

// False if it is that far already.
static bool payload_raise(payload_t *payload, uint64_t value)
{
    uint64_t before = payload_value(payload);
    do {
        if (before >= value) return false;
    } while (!__atomic_compare_exchange_n(&payload->value, &before, value, true, __ATOMIC_ACQ_REL,
                                          __ATOMIC_ACQUIRE));
    return true;
}

int simSemaphoreCreate(uint64_t value)
{
    payload_t payload = {.value = value};
    memcpy(payload.magic, SEMAPHORE_MAGIC, sizeof payload.magic);
    int fd = memfd_create("timeline semaphore", MFD_CLOEXEC);
    if (fd < 0) return -1;
    if (ftruncate(fd, PAYLOAD_SIZE) == 0 &&
        pwrite(fd, &payload, sizeof payload, 0) == (ssize_t)sizeof payload) {
        return fd;
    }
    close(fd);
    return -1;
}

int simSemaphoreSignal(int fd, uint64_t value)
{
    bool is_open;
    payload_t *payload = payload_map(fd, &is_open);
    if (!payload) return -1;
    bool raised = payload_raise(payload, value);
    munmap(payload, PAYLOAD_SIZE);
    return raised ? 0 : -1;
}

int simSemaphoreValue(int fd, uint64_t *value)
{
    bool is_open;
    payload_t *payload = payload_map(fd, &is_open);
    if (!payload) return -1;
    *value = payload_value(payload);
    munmap(payload, PAYLOAD_SIZE);
    return 0;
}

static void external_signal(const semaphore_work_t *work, CUcontext context)
{
    payload_t *payload = work->semaphore->payload;
    if (payload_raise(payload, work->value)) return;
    complain("a semaphore is signalled to %llu and is at %llu already",
             (unsigned long long)work->value, (unsigned long long)payload_value(payload));
    pthread_mutex_lock(&state.lock);
    context_fail(context, CUDA_ERROR_LAUNCH_FAILED);
    pthread_mutex_unlock(&state.lock);
}

void external_run(const semaphore_work_t *work, CUcontext context)
{
    if (!work->waits) {
        external_signal(work, context);
        return;
    }
    // The signalling side may be another process, so there is nothing to sleep on.
    for (unsigned us = 1; payload_value(work->semaphore->payload) < work->value;
         us = us < 100 ? us * 2 : us) {
        if (__atomic_load_n(&context->error, __ATOMIC_ACQUIRE)) return;
        sleep_us(us);
    }
}

void external_end(const semaphore_work_t *work)
{
    work->semaphore->pending--;
}

static bool is_parked(CUcontext context)
{
    for (CUstream stream = context->streams; stream; stream = stream->next) {
        const command_t *head = stream->head;
        if (head && head->kind == COMMAND_WORK && head->work.kind == WORK_SEMAPHORE &&
            head->work.semaphore.waits) {
            return true;
        }
    }
    return false;
}

void external_settle(CUcontext context)
{
    while (!context->error && is_parked(context)) state_wait();
}

static bool is_zero(const unsigned *words, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (words[i]) return false;
    }
    return true;
}

CUresult cuImportExternalSemaphore(CUexternalSemaphore *out,
                                   const CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC *desc)
{
    CALL(CALL_CONTEXT);
    bool is_open;
    if (!out || !desc || desc->flags || !is_zero(desc->reserved, 16)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (desc->type != CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_TIMELINE_SEMAPHORE_FD) {
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    payload_t *payload = payload_map(desc->handle.fd, &is_open);
    if (!payload) return is_open ? CUDA_ERROR_INVALID_HANDLE : CUDA_ERROR_OPERATING_SYSTEM;
    CUexternalSemaphore semaphore = calloc(1, sizeof *semaphore);
    if (!semaphore) {
        munmap(payload, PAYLOAD_SIZE);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *semaphore = (struct CUextSemaphore_st){MAGIC_SEMAPHORE, call.context, payload, 0};
    call.context->semaphores++;
    close(desc->handle.fd); // which is the driver's from here on
    *out = semaphore;
    return CUDA_SUCCESS;
}

CUresult cuDestroyExternalSemaphore(CUexternalSemaphore semaphore)
{
    CALL(CALL_RELEASE);
    if (!IS(semaphore, MAGIC_SEMAPHORE)) return CUDA_ERROR_INVALID_HANDLE;
    CUcontext context = semaphore->context;
    if (semaphore->pending && context->alive && !context->error) {
        complain("%s: %u signals and waits are still to come", call_name(), semaphore->pending);
        abort();
    }
    if (context->semaphores) context->semaphores--;
    while (semaphore->pending) state_wait(); // until they are dropped
    munmap(semaphore->payload, PAYLOAD_SIZE);
    object_bury(semaphore);
    return call.late;
}

static CUresult external_push(CUstream stream, CUexternalSemaphore semaphore, uint64_t value,
                              bool waits)
{
    work_t work = {.kind = WORK_SEMAPHORE,
                   .maker = call_name(),
                   .semaphore = {.semaphore = semaphore, .value = value, .waits = waits}};
    semaphore->pending++;
    return stream_work(stream, &work);
}

// What signals and waits are told lies in the same places.
typedef CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS signal_params_t;
typedef CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS wait_params_t;
_Static_assert(sizeof(signal_params_t) == sizeof(wait_params_t), "one size");
_Static_assert(offsetof(signal_params_t, params.fence) == offsetof(wait_params_t, params.fence) &&
                   offsetof(signal_params_t, flags) == offsetof(wait_params_t, flags),
               "one layout");

static CUresult semaphores_push(CUstream stream, const CUexternalSemaphore *semaphores,
                                const wait_params_t *params, unsigned count, bool waits)
{
    if (!stream || !semaphores) return CUDA_ERROR_INVALID_HANDLE;
    for (unsigned i = 0; i < count; i++) {
        if (!IS(semaphores[i], MAGIC_SEMAPHORE)) return CUDA_ERROR_INVALID_HANDLE;
        if (semaphores[i]->context != stream->context) return CUDA_ERROR_INVALID_HANDLE;
    }
    if (!params) return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < count; i++) {
        if (params[i].flags || !is_zero(params[i].reserved, 16)) return CUDA_ERROR_INVALID_VALUE;
    }
    CUresult error = CUDA_SUCCESS;
    for (unsigned i = 0; i < count && !error; i++) {
        error = external_push(stream, semaphores[i], params[i].params.fence.value, waits);
    }
    return error;
}

CUresult cuSignalExternalSemaphoresAsync(const CUexternalSemaphore *semaphores,
                                         const CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS *params,
                                         unsigned int count, CUstream handle)
{
    CALL(CALL_CONTEXT);
    const void *same = params;
    return semaphores_push(stream_of(call.context, handle), semaphores, same, count, false);
}

CUresult cuWaitExternalSemaphoresAsync(const CUexternalSemaphore *semaphores,
                                       const CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS *params,
                                       unsigned int count, CUstream handle)
{
    CALL(CALL_CONTEXT);
    return semaphores_push(stream_of(call.context, handle), semaphores, params, count, true);
}
