// SPDX-License-Identifier: Apache-2.0
// What CUPTI costs by itself: a library for CUDA_INJECTION64_PATH that asks for records, as
// variables of the environment say, and throws them away. Numbers are CUPTI's own.
//   FLOOR_KINDS=10,5     activities
//   FLOOR_APIS=r211,d307 activities of single functions of the runtime (r) and the driver (d)
//   FLOOR_CALLS=r211     callbacks of such functions, which do nothing
//   FLOOR_ZEROED=1       buffers are zeroed here, not by CUPTI
//   FLOOR_DEVICE=BYTES   size of its buffers on the device
//   FLOOR_PINNED=1       these lie in the host's memory
//   FLOOR_SHARED=1       no buffers for single threads
//   FLOOR_CLOCK=1        its times are of a clock that is read here
// At its end it says how many bytes came.
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SIZE = 8 << 20 };

static void *cupti;
static size_t bytes_seen, buffers_seen;
static void *subscriber;

typedef int (*call_fn)(uintptr_t, uintptr_t, uintptr_t, uintptr_t);

static int call(const char *name, uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d)
{
    call_fn function = (call_fn)(uintptr_t)dlsym(cupti, name);
    int result = function ? function(a, b, c, d) : -1;
    if (result) fprintf(stderr, "floor: %s(%#lx, %#lx): %d\n", name, (long)a, (long)b, result);
    return result;
}

static void requested(uint8_t **buffer, size_t *size, size_t *limit)
{
    *buffer = getenv("FLOOR_ZEROED") ? calloc(1, SIZE) : malloc(SIZE);
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

static uint64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static void finish(void)
{
    call("cuptiActivityFlushAll", 1, 0, 0, 0);
    fprintf(stderr, "floor: %zu bytes in %zu buffers\n", bytes_seen, buffers_seen);
}

static void attribute(int number, uint64_t value, size_t size)
{
    call("cuptiActivitySetAttribute", (uintptr_t)number, (uintptr_t)&size, (uintptr_t)&value, 0);
}

// The functions of a list: r and d for runtime and driver, and a number.
static void functions_each(const char *list, int as_callbacks)
{
    for (const char *at = list; at && *at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
        uintptr_t number = strtoul(at + 1, NULL, 10);
        int runtime = *at == 'r';
        if (as_callbacks)
            call("cuptiEnableCallback", 1, (uintptr_t)subscriber, runtime ? 2 : 1, number);
        else
            call(runtime ? "cuptiActivityEnableRuntimeApi" : "cuptiActivityEnableDriverApi", number,
                 1, 0, 0);
    }
}

__attribute__((visibility("default"))) int InitializeInjection(void);
int InitializeInjection(void)
{
    const char *kinds = getenv("FLOOR_KINDS"), *device = getenv("FLOOR_DEVICE");
    cupti = dlopen("libcupti.so.13", RTLD_LAZY | RTLD_NOLOAD);
    if (!cupti) cupti = dlopen("libcupti.so.13", RTLD_LAZY);
    if (!cupti) cupti = dlopen("/usr/local/cuda/lib64/libcupti.so", RTLD_LAZY);
    if (!cupti) cupti = dlopen("/usr/local/cuda/extras/CUPTI/lib64/libcupti.so", RTLD_LAZY);
    if (!cupti) return fprintf(stderr, "floor: no libcupti: %s\n", dlerror()), 1;
    call("cuptiSubscribe", (uintptr_t)&subscriber, (uintptr_t)called, 0, 0);
    if (getenv("FLOOR_SHARED")) attribute(9, 0, 1);
    if (getenv("FLOOR_ZEROED")) attribute(5, 1, 1);
    if (getenv("FLOOR_PINNED")) attribute(8, 1, 1);
    if (device) attribute(0, strtoull(device, NULL, 10), sizeof(size_t));
    call("cuptiActivityRegisterCallbacks", (uintptr_t)requested, (uintptr_t)completed, 0, 0);
    if (getenv("FLOOR_CLOCK"))
        call("cuptiActivityRegisterTimestampCallback", (uintptr_t)now, 0, 0, 0);
    for (const char *at = kinds; at && *at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
        call("cuptiActivityEnable", strtoul(at, NULL, 10), 0, 0, 0);
    functions_each(getenv("FLOOR_APIS"), 0);
    functions_each(getenv("FLOOR_CALLS"), 1);
    atexit(finish);
    return 1;
}
