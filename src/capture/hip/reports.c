// SPDX-License-Identifier: Apache-2.0
#include "capture/hip/reports.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "capture/call.h"
#include "capture/hip/real.h"
#include "capture/library.h"
#include "capture/mode.h"

enum {
    CALLS = 3, // the domain of calls
    WANTED = 0,
    NOT_WANTED = 1,
    OPERATIONS = 1024, // more than HIP has functions
};

// What HIP has of a call, behind its arguments: as many bytes as its version takes for them.
typedef struct report_t report_t;
struct report_t {
    uint64_t timestamp; // for those who are called
    uint64_t user;
    void (*enter)(uint32_t operation, void *call);
    void (*leave)(uint32_t operation, void *call);
};

static size_t report_at; // bytes from the begin of a call
static const char *(*operation_name)(uint32_t operation);

// Which of our functions an operation is; HIP_COUNT: none.
static hip_index_t operation_index(uint32_t operation)
{
    static _Atomic uint16_t known[OPERATIONS]; // the index and 1; 0: not looked up
    if (operation >= OPERATIONS) return HIP_COUNT;
    // relaxed: all that look find the same.
    uint32_t index = atomic_load_explicit(&known[operation], memory_order_relaxed);
    if (!index) {
        const char *name = operation_name(operation);
        index = (uint32_t)(name ? hip_index(name) : HIP_COUNT) + 1;
        atomic_store_explicit(&known[operation], (uint16_t)index, memory_order_relaxed);
    }
    return (hip_index_t)(index - 1);
}

// What the call returns is not told.
static void call_left(uint32_t operation, void *call)
{
    static _Atomic uint32_t domain, names[HIP_COUNT];
    hip_index_t index = operation_index(operation);
    const report_t *report = (const report_t *)(const void *)((char *)call + report_at);
    call_end(report->user, &(call_about_t){.name = trace_name_at(&names[index], hip_names[index]),
                                           .domain = trace_name_at(&domain, "hip")});
}

// HIP calls it at the begin of each of its functions, and then, if it wanted the call, at the end.
// A call that is recorded already is one of ours.
static int call_reported(int domain, uint32_t operation, void *call)
{
    if (domain != CALLS || !call || call_current()) return NOT_WANTED;
    if (operation_index(operation) == HIP_COUNT) return NOT_WANTED;
    uint64_t start = call_begin();
    if (!start) return NOT_WANTED;
    report_t *report = (report_t *)(void *)((char *)call + report_at);
    *report = (report_t){.user = start, .leave = call_left};
    memcpy(call, &call_thread_.current, sizeof(uint64_t)); // HIP's own records would have it
    return WANTED;
}

// Bytes of a call before the report; 0: the version is not known.
static size_t place_of(const char *library)
{
    char path[PATH_MAX];
    int major, minor;
    const char *version = realpath(library, path) ? strstr(path, "libamdhip64.so.") : NULL;
    if (!version || sscanf(version, "libamdhip64.so.%d.%d", &major, &minor) != 2) return 0;
    // hipChooseDevice takes most, and is the same in all of them.
    if ((major == 6 && minor >= 1 && minor <= 4) || (major == 7 && minor <= 2)) return 1520;
    return major == 5 && minor == 7 ? 840 : 0;
}

static bool others_ask(void)
{
    void *tracer = dlopen("libroctracer64.so.4", RTLD_LAZY | RTLD_NOLOAD);
    if (tracer) dlclose(tracer);
    return tracer != NULL;
}

void reports_ask(void)
{
    library_t library;
    if (!capture_mode()->calls || hip_has_table() || others_ask() ||
        !library_find(HIP_LIBRARY, &library))
        return;
    report_at = place_of(library.path);
    void (*ask)(int (*)(int, uint32_t, void *)) = (void (*)(int (*)(int, uint32_t, void *)))dlsym(
        library.handle, "hipRegisterTracerCallback");
    operation_name = (const char *(*)(uint32_t))dlsym(library.handle, "hipApiName");
    if (report_at && ask && operation_name) ask(call_reported);
}
