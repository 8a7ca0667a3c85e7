// SPDX-License-Identifier: Apache-2.0
// Our functions of the CUDA driver: each calls the driver's own. Arguments and results pass as they
// are. In the mode `lite` launches of kernels are counted, and those of graphs recorded.
#include <stddef.h>

#include "capture/call.h"
#include "capture/cuda/driver.h"
#include "capture/cuda/launches.h"
#include "capture/mode.h"

#define EXPORT __attribute__((visibility("default")))

enum { SUCCESS = 0, NOT_FOUND = 500 };

static bool on;
static THREAD_LOCAL bool inside; // a launch, in which the driver may call itself

__attribute__((constructor)) static void mode_look(void)
{
    on = capture_mode()->launches;
}

// Whether the launch that begins is one of the application's, to be counted if it goes well.
static inline bool launch_begin(void)
{
    if (!on || !trace_is_on() || inside) return false;
    inside = true;
    return true;
}

static inline void launch_end(void *kernel, int result)
{
    if (result == SUCCESS) launches_add(kernel);
    inside = false;
}

#define LAUNCHES(name, parameters, arguments)                                                      \
    static int wrap_##name parameters                                                              \
    {                                                                                              \
        int(*real) parameters = (int(*) parameters)cuda_real(CUDA_##name);                         \
        if (__builtin_expect(!real, 0)) return NOT_FOUND;                                          \
        if (!launch_begin()) return real arguments;                                                \
        int result = real arguments;                                                               \
        launch_end(kernel, result);                                                                \
        return result;                                                                             \
    }                                                                                              \
    EXPORT int name parameters __attribute__((alias("wrap_" #name)));

#define SHAPED                                                                                     \
    (void *kernel, unsigned a, unsigned b, unsigned c, unsigned d, unsigned e, unsigned f,         \
     unsigned shared, void *stream, void *values, void *extra)
#define TOGETHER                                                                                   \
    (void *kernel, unsigned a, unsigned b, unsigned c, unsigned d, unsigned e, unsigned f,         \
     unsigned shared, void *stream, void *values)
LAUNCHES(cuLaunchKernel, SHAPED, (kernel, a, b, c, d, e, f, shared, stream, values, extra))
LAUNCHES(cuLaunchKernel_ptsz, SHAPED, (kernel, a, b, c, d, e, f, shared, stream, values, extra))
LAUNCHES(cuLaunchCooperativeKernel, TOGETHER, (kernel, a, b, c, d, e, f, shared, stream, values))
LAUNCHES(cuLaunchCooperativeKernel_ptsz, TOGETHER,
         (kernel, a, b, c, d, e, f, shared, stream, values))
LAUNCHES(cuLaunchKernelEx, (const void *config, void *kernel, void *values, void *extra),
         (config, kernel, values, extra))
LAUNCHES(cuLaunchKernelEx_ptsz, (const void *config, void *kernel, void *values, void *extra),
         (config, kernel, values, extra))

// A graph takes so long that the record of its launch is not felt.
static int graph_launch(cuda_index_t index, void *graph, void *stream)
{
    static _Atomic uint32_t names[CUDA_COUNT], domain; // of the trace
    int (*real)(void *, void *) = (int (*)(void *, void *))cuda_real(index);
    if (!real) return NOT_FOUND;
    uint64_t start = on ? call_begin() : 0;
    int result = real(graph, stream);
    if (start)
        call_end(start, &(call_about_t){.name = trace_name_at(&names[index], cuda_names[index]),
                                        .domain = trace_name_at(&domain, "cuda driver"),
                                        .result = (uint64_t)(uint32_t)result,
                                        .stream = stream});
    return result;
}

#define REPLAYS(name)                                                                              \
    static int wrap_##name(void *graph, void *stream)                                              \
    {                                                                                              \
        return graph_launch(CUDA_##name, graph, stream);                                           \
    }                                                                                              \
    EXPORT int name(void *graph, void *stream) __attribute__((alias("wrap_" #name)));
REPLAYS(cuGraphLaunch)
REPLAYS(cuGraphLaunch_ptsz)

// Kernels are gone after it.
#define DROPS(name, type)                                                                          \
    static int wrap_##name(type what)                                                              \
    {                                                                                              \
        int (*real)(type) = (int (*)(type))cuda_real(CUDA_##name);                                 \
        int result = real ? real(what) : NOT_FOUND;                                                \
        launches_forget();                                                                         \
        return result;                                                                             \
    }                                                                                              \
    EXPORT int name(type what) __attribute__((alias("wrap_" #name)));
DROPS(cuModuleUnload, void *)
DROPS(cuLibraryUnload, void *)
DROPS(cuCtxDestroy, void *)
DROPS(cuCtxDestroy_v2, void *)
DROPS(cuDevicePrimaryCtxRelease, int)
DROPS(cuDevicePrimaryCtxRelease_v2, int)
DROPS(cuDevicePrimaryCtxReset, int)
DROPS(cuDevicePrimaryCtxReset_v2, int)

// What gives functions of the driver out gives ours.
#define GIVES(name, parameters, arguments)                                                         \
    static int wrap_##name parameters                                                              \
    {                                                                                              \
        int(*real) parameters = (int(*) parameters)cuda_real(CUDA_##name);                         \
        int result = real ? real arguments : NOT_FOUND;                                            \
        if (result == SUCCESS && function) *function = cuda_catch(symbol, *function);              \
        return result;                                                                             \
    }                                                                                              \
    EXPORT int name parameters __attribute__((alias("wrap_" #name)));
#define ASKED    (const char *symbol, void **function, int version, uint64_t flags)
#define ASKED_V2 (const char *symbol, void **function, int version, uint64_t flags, void *status)
GIVES(cuGetProcAddress, ASKED, (symbol, function, version, flags))
GIVES(cuGetProcAddress_ptsz, ASKED, (symbol, function, version, flags))
GIVES(cuGetProcAddress_v2, ASKED_V2, (symbol, function, version, flags, status))
GIVES(cuGetProcAddress_v2_ptsz, ASKED_V2, (symbol, function, version, flags, status))

const cuda_fn cuda_ours[CUDA_COUNT] = {
#define FUNCTION(name) [CUDA_##name] = (cuda_fn)wrap_##name,
#include "capture/cuda/driver.def"
#undef FUNCTION
};
