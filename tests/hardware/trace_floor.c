// SPDX-License-Identifier: Apache-2.0
// What CUPTI costs by itself: a library for CUDA_INJECTION64_PATH that asks for records and throws
// them away. Its environment says what is set before CUDA starts:
//   FLOOR_SET=5:1,0:33554432  attributes of CUPTI's, by their numbers
//   FLOOR_CLOCK=1             its times are of a clock that is read here
//   FLOOR_HARDWARE=1          it is asked to have the GPU write the records by itself
//   FLOOR_TIMES=1             it says which calls of CUPTI took long
//   FLOOR_FILTER=1            calls are recorded but for those that a mode of the tracer leaves out
//   FLOOR_LATE=1              CUPTI is opened by floor_start, not before
// The program then chooses by floor_use, again and again. At the end of the process it says how
// many bytes came.
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define EXPORT __attribute__((visibility("default")))

enum { SIZE = 8 << 20 };

static void *cupti;
static size_t bytes_seen, buffers_seen;
static void *subscriber;

static uint64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

// With FLOOR_TIMES=1 it says what took longer than a tenth of a millisecond.
static void took(const char *name, uintptr_t argument, uint64_t before)
{
    uint64_t us = (now() - before) / 1000;
    if (us >= 100 && getenv("FLOOR_TIMES"))
        fprintf(stderr, "floor: %s(%#lx) took %lu us\n", name, (long)argument, us);
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

static void called(void *user, uint32_t domain, uint32_t function, const void *data)
{
    (void)user, (void)domain, (void)function, (void)data;
}

static void finish(void)
{
    if (!cupti) return;
    call("cuptiActivityFlushAll", 1, 0, 0, 0);
    fprintf(stderr, "floor: %zu bytes in %zu buffers\n", bytes_seen, buffers_seen);
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

// The functions of a list: r and d for runtime and driver, and a number.
static void functions_each(const char *list, int as_callbacks, int on)
{
    for (const char *at = list; at && *at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
        uintptr_t number = strtoul(at + 1, NULL, 10);
        int runtime = *at == 'r';
        if (as_callbacks)
            call("cuptiEnableCallback", (uintptr_t)on, (uintptr_t)subscriber, runtime ? 2 : 1,
                 number);
        else
            call(runtime ? "cuptiActivityEnableRuntimeApi" : "cuptiActivityEnableDriverApi", number,
                 (uintptr_t)on, 0, 0);
    }
}

static void kinds_each(const char *list, int on)
{
    const char *function = on ? "cuptiActivityEnable" : "cuptiActivityDisable";
    for (const char *at = list; at && *at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
        call(function, strtoul(at, NULL, 10), 0, 0, 0);
}

// Turns on, or off: activities (numbers), activities of single functions, and callbacks of them,
// which do nothing; lists like "10,5" and "r211,d307".
EXPORT void floor_use(const char *kinds, const char *apis, const char *calls, int on);
void floor_use(const char *kinds, const char *apis, const char *calls, int on)
{
    kinds_each(kinds, on);
    functions_each(apis, 0, on);
    functions_each(calls, 1, on);
    if (!on) call("cuptiActivityFlushAll", 0, 0, 0, 0);
}

// As the mode `cuda` does it: all calls, and then not those that only tell something.
static void functions_filter(void)
{
    uint64_t before = now();
    kinds_each("5,4", 1);
    for (uintptr_t domain = 1; domain <= 2; domain++)
        for (uintptr_t i = 1; i < 1024; i++) {
            const char *name = NULL;
            int (*look)(uintptr_t, uintptr_t, const char **) =
                (int (*)(uintptr_t, uintptr_t, const char **))(uintptr_t)dlsym(
                    cupti, "cuptiGetCallbackName");
            if (look(domain, i, &name) != 0 || !name || !strstr(name, "Get")) continue;
            call(domain == 2 ? "cuptiActivityEnableRuntimeApi" : "cuptiActivityEnableDriverApi", i,
                 0, 0, 0);
        }
    took("functions_filter", 0, before);
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

// Opens CUPTI. False if there is none.
EXPORT int floor_start(void);
int floor_start(void)
{
    uint64_t before = now();
    cupti = library_open();
    took("dlopen", 0, before);
    if (!cupti) return fprintf(stderr, "floor: no libcupti: %s\n", dlerror()), 0;
    call("cuptiSubscribe", (uintptr_t)&subscriber, (uintptr_t)called, 0, 0);
    attributes_set(getenv("FLOOR_SET"));
    if (getenv("FLOOR_HARDWARE")) call("cuptiActivityEnableHWTrace", 1, 0, 0, 0);
    call("cuptiActivityRegisterCallbacks", (uintptr_t)requested, (uintptr_t)completed, 0, 0);
    if (getenv("FLOOR_CLOCK"))
        call("cuptiActivityRegisterTimestampCallback", (uintptr_t)now, 0, 0, 0);
    if (getenv("FLOOR_FILTER")) functions_filter();
    atexit(finish);
    return 1;
}

// Takes CUPTI out of the process again.
EXPORT void floor_stop(void);
void floor_stop(void)
{
    finish();
    call("cuptiUnsubscribe", (uintptr_t)subscriber, 0, 0, 0);
    call("cuptiFinalize", 0, 0, 0, 0);
    cupti = NULL;
}

EXPORT int InitializeInjection(void);
int InitializeInjection(void)
{
    if (!getenv("FLOOR_LATE")) floor_start();
    return 1;
}
