// SPDX-License-Identifier: Apache-2.0
// A CUPTI in software: the part of its activity API that tracers use, for the software CUDA driver.
// It delivers records in buffers of the client's, which it gives back when they are full or
// flushed.
#include "cuda/tool.h"
#include "cupti/records.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

enum {
    KIND_COPY = 1,
    KIND_SET = 2,
    KIND_KERNEL = 10,
    KIND_MEMORY = 49,
    KINDS = 64,
    SUCCESS = 0,
    INVALID_PARAMETER = 1,
    INVALID_KIND = 21,
    MAX_LIMIT_REACHED = 12,
    MULTIPLE_SUBSCRIBERS = 39,
    DOMAIN_DRIVER = 1,
    DOMAIN_RUNTIME = 2,
    VERSION = 130001,
    CLOCK_AHEAD = 1000000000, // ns: its clock is not the host's
};

static const char *const functions[] = {
#define SYMBOL(name, function, version, parameters) #function,
#include "cuda/symbols.def"
#undef SYMBOL
};
enum { FUNCTIONS = sizeof functions / sizeof *functions };

static struct {
    pthread_mutex_t lock;
    bool subscribed, watching;
    uint64_t kinds;         // a bit for each that is enabled
    bool chosen[FUNCTIONS]; // of whose calls the client is told
    bool runtime;           // and of those of the runtime's one function
    void (*called)(void *user, uint32_t domain, uint32_t function, const CUpti_CallbackData *call);
    void *user;
    void (*request)(uint8_t **buffer, size_t *size, size_t *limit);
    void (*complete)(void *context, uint32_t stream, uint8_t *buffer, size_t size, size_t used);
    uint8_t *buffer;
    size_t size, used, dropped;
} cupti = {.lock = PTHREAD_MUTEX_INITIALIZER};

// The environment's KEEL_SIM_CUPTI has a word.
static bool setting(const char *word)
{
    const char *text = getenv("KEEL_SIM_CUPTI");
    return text && strstr(text, word);
}

static bool is_enabled(unsigned kind)
{
    return cupti.kinds >> kind & 1;
}

// The client is called without the lock: it may ask what was dropped.
static void buffer_complete(void)
{
    uint8_t *buffer = cupti.buffer;
    size_t size = cupti.size, used = cupti.used;
    cupti.buffer = NULL;
    cupti.size = cupti.used = 0;
    if (!buffer) return;
    pthread_mutex_unlock(&cupti.lock);
    cupti.complete(NULL, 0, buffer, size, used);
    pthread_mutex_lock(&cupti.lock);
}

static void buffer_request(void)
{
    uint8_t *buffer = NULL;
    size_t size = 0, limit = 0;
    pthread_mutex_unlock(&cupti.lock);
    cupti.request(&buffer, &size, &limit);
    pthread_mutex_lock(&cupti.lock);
    if (cupti.buffer && buffer) { // another thread was faster
        pthread_mutex_unlock(&cupti.lock);
        cupti.complete(NULL, 0, buffer, size, 0);
        pthread_mutex_lock(&cupti.lock);
    } else if (!cupti.buffer) {
        cupti.buffer = buffer;
        cupti.size = size;
    }
}

static void record_add(const void *record, size_t size)
{
    static unsigned count;
    pthread_mutex_lock(&cupti.lock);
    // Every tenth is dropped, as if there were no room.
    bool drops = setting("drop") && ++count % 10 == 0;
    if (!drops && cupti.buffer && cupti.size - cupti.used < size) buffer_complete();
    if (!drops && !cupti.buffer) buffer_request();
    if (!drops && cupti.buffer && cupti.size - cupti.used >= size) {
        memcpy(cupti.buffer + cupti.used, record, size);
        cupti.used += size;
    } else {
        cupti.dropped++;
    }
    pthread_mutex_unlock(&cupti.lock);
}

static uint32_t function_find(const char *name)
{
    uint32_t i = 0;
    while (i < FUNCTIONS && strcmp(functions[i], name) != 0) i++;
    return i;
}

static void client_tell(uint32_t domain, uint32_t function, CUpti_CallbackData call)
{
    bool wanted = domain == DOMAIN_RUNTIME ? cupti.runtime && setting("runtime")
                                           : function <= FUNCTIONS && cupti.chosen[function - 1];
    if (wanted) cupti.called(cupti.user, domain, function, &call);
}

// With KEEL_SIM_CUPTI=runtime each call is made by one of the runtime.
static void begin_seen(const sim_call_t *call)
{
    CUpti_CallbackData data = {.callbackSite = 0, .correlationId = call->correlation};
    client_tell(DOMAIN_RUNTIME, 1, data);
    client_tell(DOMAIN_DRIVER, function_find(call->name) + 1, data);
}

static void call_seen(const sim_call_t *call)
{
    int result = call->result;
    CUpti_CallbackData data = {
        .callbackSite = 1, .functionReturnValue = &result, .correlationId = call->correlation};
    client_tell(DOMAIN_DRIVER, function_find(call->name) + 1, data);
    client_tell(DOMAIN_RUNTIME, 1, data);
}

static void kernel_seen(const sim_work_t *work)
{
    record_add(&(CUpti_ActivityKernel10){.kind = KIND_KERNEL,
                                         .start = work->start + CLOCK_AHEAD,
                                         .end = work->end + CLOCK_AHEAD,
                                         .deviceId = work->device,
                                         .contextId = work->context,
                                         .streamId = work->stream,
                                         .gridX = (int32_t)work->grid[0],
                                         .gridY = (int32_t)work->grid[1],
                                         .gridZ = (int32_t)work->grid[2],
                                         .blockX = (int32_t)work->block[0],
                                         .blockY = (int32_t)work->block[1],
                                         .blockZ = (int32_t)work->block[2],
                                         .dynamicSharedMemory = (int32_t)work->shared,
                                         .correlationId = work->correlation,
                                         .name = strdup(work->name), // for ever, as the vendor's
                                         .graphNodeId = work->node,
                                         .graphId = work->graph},
               sizeof(CUpti_ActivityKernel10));
}

static void copy_seen(const sim_work_t *work)
{
    static const uint8_t kinds[2][2] = {{8, 2}, {1, 9}}; // from host, to host
    record_add(&(CUpti_ActivityMemcpy6){.kind = KIND_COPY,
                                        .copyKind = kinds[work->from_host][work->to_host],
                                        .bytes = work->bytes,
                                        .start = work->start + CLOCK_AHEAD,
                                        .end = work->end + CLOCK_AHEAD,
                                        .deviceId = work->device,
                                        .contextId = work->context,
                                        .streamId = work->stream,
                                        .correlationId = work->correlation,
                                        .graphNodeId = work->node,
                                        .graphId = work->graph,
                                        .copyCount = 1},
               sizeof(CUpti_ActivityMemcpy6));
}

static void set_seen(const sim_work_t *work)
{
    record_add(&(CUpti_ActivityMemset4){.kind = KIND_SET,
                                        .bytes = work->bytes,
                                        .start = work->start + CLOCK_AHEAD,
                                        .end = work->end + CLOCK_AHEAD,
                                        .deviceId = work->device,
                                        .contextId = work->context,
                                        .streamId = work->stream,
                                        .correlationId = work->correlation,
                                        .graphNodeId = work->node,
                                        .graphId = work->graph},
               sizeof(CUpti_ActivityMemset4));
}

static void work_seen(const sim_work_t *work)
{
    if (work->kind == SIM_KERNEL && is_enabled(KIND_KERNEL)) kernel_seen(work);
    if (work->kind == SIM_COPY && is_enabled(KIND_COPY)) copy_seen(work);
    if (work->kind == SIM_SET && is_enabled(KIND_SET)) set_seen(work);
}

static void memory_seen(const sim_memory_t *memory)
{
    if (!is_enabled(KIND_MEMORY)) return;
    record_add(&(CUpti_ActivityMemory4){.kind = KIND_MEMORY,
                                        .memoryOperationType = memory->allocated ? 1 : 2,
                                        .memoryKind = 3,
                                        .correlationId = memory->correlation,
                                        .address = memory->address,
                                        .bytes = memory->bytes,
                                        .timestamp = memory->time + CLOCK_AHEAD,
                                        .processId = (uint32_t)getpid(),
                                        .deviceId = memory->device,
                                        .contextId = memory->context},
               sizeof(CUpti_ActivityMemory4));
}

static void watch(void)
{
    static const sim_tool_t tool = {begin_seen, call_seen, work_seen, memory_seen};
    void *cuda = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    void *symbol = cuda ? dlsym(cuda, "simCudaWatch") : NULL;
    void (*begin)(const sim_tool_t *) = (void (*)(const sim_tool_t *))(uintptr_t)symbol;
    if (begin && !cupti.watching) begin(&tool);
    cupti.watching = begin != NULL;
}

EXPORT int cuptiGetVersion(uint32_t *version);
EXPORT int cuptiSubscribe(void **subscriber,
                          void (*called)(void *, uint32_t, uint32_t, const CUpti_CallbackData *),
                          void *user);
EXPORT int cuptiActivityRegisterCallbacks(void (*request)(uint8_t **, size_t *, size_t *),
                                          void (*complete)(void *, uint32_t, uint8_t *, size_t,
                                                           size_t));
EXPORT int cuptiActivityEnable(uint32_t kind);
EXPORT int cuptiActivityDisable(uint32_t kind);
EXPORT int cuptiActivityGetNextRecord(uint8_t *buffer, size_t used, CUpti_Activity **record);
EXPORT int cuptiActivityGetNumDroppedRecords(void *context, uint32_t stream, size_t *count);
EXPORT int cuptiActivityFlushAll(uint32_t flags);
EXPORT int cuptiGetTimestamp(uint64_t *ns);
EXPORT int cuptiGetCallbackName(uint32_t domain, uint32_t function, const char **name);
EXPORT int cuptiGetResultString(int result, const char **text);
EXPORT int cuptiEnableCallback(uint32_t enable, void *subscriber, uint32_t domain,
                               uint32_t function);

int cuptiGetVersion(uint32_t *version)
{
    *version = setting("future") ? 150000 : VERSION;
    return SUCCESS;
}

int cuptiSubscribe(void **subscriber,
                   void (*called)(void *, uint32_t, uint32_t, const CUpti_CallbackData *),
                   void *user)
{
    if (cupti.subscribed || setting("taken")) return MULTIPLE_SUBSCRIBERS;
    cupti.called = called;
    cupti.user = user;
    cupti.subscribed = true;
    *subscriber = &cupti;
    return SUCCESS;
}

int cuptiActivityRegisterCallbacks(void (*request)(uint8_t **, size_t *, size_t *),
                                   void (*complete)(void *, uint32_t, uint8_t *, size_t, size_t))
{
    cupti.request = request;
    cupti.complete = complete;
    watch();
    return SUCCESS;
}

int cuptiActivityEnable(uint32_t kind)
{
    if (kind >= KINDS || !cupti.request) return INVALID_KIND;
    pthread_mutex_lock(&cupti.lock);
    cupti.kinds |= UINT64_C(1) << kind;
    pthread_mutex_unlock(&cupti.lock);
    return SUCCESS;
}

int cuptiActivityDisable(uint32_t kind)
{
    if (kind >= KINDS) return INVALID_KIND;
    pthread_mutex_lock(&cupti.lock);
    cupti.kinds &= ~(UINT64_C(1) << kind);
    pthread_mutex_unlock(&cupti.lock);
    return SUCCESS;
}

static size_t record_size(uint32_t kind)
{
    switch (kind) {
    case KIND_KERNEL: return sizeof(CUpti_ActivityKernel10);
    case KIND_COPY: return sizeof(CUpti_ActivityMemcpy6);
    case KIND_SET: return sizeof(CUpti_ActivityMemset4);
    case KIND_MEMORY: return sizeof(CUpti_ActivityMemory4);
    default: return 0;
    }
}

int cuptiActivityGetNextRecord(uint8_t *buffer, size_t used, CUpti_Activity **record)
{
    uint8_t *next = buffer;
    if (*record) next = (uint8_t *)*record + record_size((*record)->kind);
    if (next >= buffer + used) return MAX_LIMIT_REACHED;
    *record = (CUpti_Activity *)(void *)next;
    return SUCCESS;
}

int cuptiActivityGetNumDroppedRecords(void *context, uint32_t stream, size_t *count)
{
    (void)context, (void)stream;
    pthread_mutex_lock(&cupti.lock);
    *count = cupti.dropped;
    cupti.dropped = 0;
    pthread_mutex_unlock(&cupti.lock);
    return SUCCESS;
}

int cuptiActivityFlushAll(uint32_t flags)
{
    (void)flags;
    pthread_mutex_lock(&cupti.lock);
    buffer_complete();
    pthread_mutex_unlock(&cupti.lock);
    return SUCCESS;
}

int cuptiGetTimestamp(uint64_t *ns)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    *ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec + CLOCK_AHEAD;
    return SUCCESS;
}

int cuptiGetCallbackName(uint32_t domain, uint32_t function, const char **name)
{
    if (domain == DOMAIN_RUNTIME && function == 1) return *name = "cudaPlayed_v7000", SUCCESS;
    if (domain != DOMAIN_DRIVER || !function || function > FUNCTIONS) return INVALID_PARAMETER;
    *name = functions[function - 1];
    return SUCCESS;
}

int cuptiGetResultString(int result, const char **text)
{
    *text = result == SUCCESS ? "CUPTI_SUCCESS" : "CUPTI_ERROR";
    return SUCCESS;
}

int cuptiEnableCallback(uint32_t enable, void *subscriber, uint32_t domain, uint32_t function)
{
    const char *name;
    if (subscriber != &cupti) return INVALID_PARAMETER;
    if (cuptiGetCallbackName(domain, function, &name) != SUCCESS) return INVALID_PARAMETER;
    if (domain == DOMAIN_RUNTIME)
        cupti.runtime = enable;
    else
        cupti.chosen[function - 1] = enable;
    return SUCCESS;
}
