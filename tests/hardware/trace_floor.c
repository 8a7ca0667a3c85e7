// SPDX-License-Identifier: Apache-2.0
// What CUPTI costs by itself: a library for CUDA_INJECTION64_PATH that asks for records and throws
// them away. Its environment says what is asked for, all of it before CUDA has started:
//   FLOOR_SET=5:1,0:33554432  attributes of CUPTI's, by their numbers
//   FLOOR_KINDS=10,1          kinds of activities, by their numbers
//   FLOOR_CALLS=records       calls that do more than tell something, each by its number
//   FLOOR_CALLS=but           the kinds of calls, and then not those that only tell something
//   FLOOR_CALLS=callbacks     as `records`, but a function is called, which writes 64 bytes
//   FLOOR_SUBSCRIBE=0         without a subscriber
//   FLOOR_TIMES=1             it says which calls of CUPTI took long
// At the end of the process it says how much came.
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define EXPORT __attribute__((visibility("default")))

enum { SIZE = 1 << 20, FUNCTIONS = 1200, RECORDS = 1 << 16, SITE_EXIT = 1 };

static void *cupti, *subscriber;
static size_t bytes_seen, buffers_seen;

static uint64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

// With FLOOR_TIMES=1 it says what took longer than 30 us.
static void took(const char *name, uintptr_t argument, uint64_t before)
{
    uint64_t us = (now() - before) / 1000;
    if (us >= 30 && getenv("FLOOR_TIMES"))
        fprintf(stderr, "floor: %s(%lu) took %lu us\n", name, (long)argument, us);
}

typedef int (*call_fn)(uintptr_t, uintptr_t, uintptr_t, uintptr_t);

static int call(const char *name, uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d)
{
    call_fn function = (call_fn)(uintptr_t)dlsym(cupti, name);
    uint64_t before = now();
    int result = function ? function(a, b, c, d) : -1;
    took(name, a, before);
    if (result) fprintf(stderr, "floor: %s(%#lx, %#lx): %d\n", name, (long)a, (long)b, result);
    return result;
}

static void requested(uint8_t **buffer, size_t *size, size_t *limit)
{
    *buffer = calloc(1, SIZE); // as attribute 5 wants it
    *size = SIZE;
    *limit = 0;
}

static void completed(void *context, uint32_t stream, uint8_t *buffer, size_t size, size_t used)
{
    (void)context, (void)stream, (void)size;
    bytes_seen += used;
    buffers_seen++;
    free(buffer);
}

// What CUPTI tells of a call.
typedef struct called_t {
    int site;
    const char *function;
    const void *parameters;
    const int *result;
    const char *symbol;
    void *context;
    uint32_t context_number;
    uint64_t *mine; // the same at the beginning and at the end of a call
    uint32_t correlation;
} called_t;

typedef struct record_t {
    uint64_t start, end, correlation, function, result, padding[3];
} record_t;

static record_t records[RECORDS]; // of one thread, as the programs that are measured have
static size_t records_count;

static void called(void *user, uint32_t domain, uint32_t function, const called_t *data)
{
    (void)user;
    if (data->site != SITE_EXIT) {
        *data->mine = now();
        return;
    }
    records[records_count++ % RECORDS] = (record_t){
        .start = *data->mine,
        .end = now(),
        .correlation = data->correlation,
        .function = (uint64_t)domain << 32 | function,
        .result = data->result ? (uint64_t)*data->result : 0,
    };
}

static void finish(void)
{
    call("cuptiActivityFlushAll", 1, 0, 0, 0);
    fprintf(stderr, "floor: %zu bytes in %zu buffers, %zu calls\n", bytes_seen, buffers_seen,
            records_count);
}

static int is_byte(unsigned long attribute)
{
    return attribute == 5 || attribute == 8 || attribute == 9;
}

static void attributes_set(const char *list)
{
    for (const char *at = list; at && *at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
        char *value_at;
        unsigned long number = strtoul(at, &value_at, 10);
        uint64_t value = strtoull(value_at + 1, NULL, 10);
        size_t size = is_byte(number) ? 1 : sizeof(size_t);
        call("cuptiActivitySetAttribute", number, (uintptr_t)&size, (uintptr_t)&value, 0);
    }
}

static void kinds_enable(const char *list)
{
    for (const char *at = list; at && *at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
        call("cuptiActivityEnable", strtoul(at, NULL, 10), 0, 0, 0);
}

// As the mode `cuda` has it.
static int function_tells(const char *name)
{
    static const char *const words[] = {
        "Get",    "Peek",    "IsCapturing", "Occupancy", "SetDevice",
        "CtxSet", "CtxPush", "CtxPop",      "Query",     "CallConfiguration"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strstr(name, words[i])) return 1;
    return 0;
}

static void function_set(const char *how, uintptr_t domain, uintptr_t function, int tells)
{
    const char *choose =
        domain == 2 ? "cuptiActivityEnableRuntimeApi" : "cuptiActivityEnableDriverApi";
    if (strcmp(how, "but") == 0 && tells) call(choose, function, 0, 0, 0);
    if (strcmp(how, "records") == 0 && !tells) call(choose, function, 1, 0, 0);
    if (strcmp(how, "callbacks") == 0 && !tells)
        call("cuptiEnableCallback", 1, (uintptr_t)subscriber, domain, function);
}

static void calls_enable(const char *how)
{
    int (*look)(uintptr_t, uintptr_t, const char **) =
        (int (*)(uintptr_t, uintptr_t, const char **))(uintptr_t)dlsym(cupti,
                                                                       "cuptiGetCallbackName");
    uint64_t before = now();
    if (strcmp(how, "but") == 0) kinds_enable("5,4");
    for (uintptr_t domain = 1; domain <= 2; domain++)
        for (uintptr_t i = 1; i < FUNCTIONS; i++) {
            const char *name = NULL;
            if (look(domain, i, &name) == 0 && name)
                function_set(how, domain, i, function_tells(name));
        }
    took("all functions", 0, before);
}

static void *library_open(void)
{
    static const char *const names[] = {"libcupti.so.13", "/usr/local/cuda/lib64/libcupti.so",
                                        "/usr/local/cuda/extras/CUPTI/lib64/libcupti.so"};
    void *handle = dlopen(names[0], RTLD_LAZY | RTLD_NOLOAD);
    for (size_t i = 0; !handle && i < sizeof names / sizeof *names; i++)
        handle = dlopen(names[i], RTLD_LAZY);
    return handle;
}

static void begin(void)
{
    uint64_t before = now();
    cupti = library_open();
    took("dlopen", 0, before);
    if (!cupti) {
        fprintf(stderr, "floor: no libcupti: %s\n", dlerror());
        return;
    }
    if (!getenv("FLOOR_SUBSCRIBE"))
        call("cuptiSubscribe", (uintptr_t)&subscriber, (uintptr_t)called, 0, 0);
    attributes_set(getenv("FLOOR_SET"));
    call("cuptiActivityRegisterCallbacks", (uintptr_t)requested, (uintptr_t)completed, 0, 0);
    kinds_enable(getenv("FLOOR_KINDS"));
    if (getenv("FLOOR_CALLS")) calls_enable(getenv("FLOOR_CALLS"));
    took("all", 0, before);
    atexit(finish);
}

EXPORT int InitializeInjection(void);
int InitializeInjection(void)
{
    begin();
    return 1;
}
