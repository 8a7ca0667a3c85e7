// SPDX-License-Identifier: Apache-2.0
// Our functions: each calls HIP's own and records that. Arguments and results pass as they are.
#include "capture/call.h"
#include "capture/hip/real.h"
#include "capture/mode.h"
#include "capture/names.h"

#define EXPORT __attribute__((visibility("default")))

// Functions of the host that stand for kernels, and HIP's objects for kernels of modules.
static names_t kernels;

static uint32_t kernel_name(const void *function)
{
    return names_get(&kernels, function);
}

static _Atomic uint32_t numbers[HIP_COUNT]; // names of the trace
static _Atomic uint32_t domain;
static bool calls_on;

__attribute__((constructor)) static void calls_choose(void)
{
    calls_on = capture_mode()->calls;
}

static inline uint64_t hip_begin(void)
{
    return calls_on ? call_begin() : 0;
}

__attribute__((noinline)) static void hip_end(uint64_t start, hip_index_t index, int result,
                                              const void *stream, uint32_t kernel)
{
    call_end(start, &(call_about_t){
                        .name = trace_name_at(&numbers[index], hip_names[index]),
                        .domain = trace_name_at(&domain, "hip"),
                        .kernel = kernel,
                        .result = (uint64_t)(uint32_t)result,
                        .stream = stream,
                    });
}

#define CALL(name, stream, kernel, parameters, arguments)                                          \
    static int wrap_##name parameters                                                              \
    {                                                                                              \
        int(*real) parameters = (int(*) parameters)hip_real(HIP_##name);                           \
        if (__builtin_expect(!real, 0)) return HIP_SYMBOL_NOT_FOUND;                               \
        uint64_t start = hip_begin();                                                              \
        if (!start) return real arguments;                                                         \
        int result = real arguments;                                                               \
        hip_end(start, HIP_##name, result, stream, kernel);                                        \
        return result;                                                                             \
    }                                                                                              \
    EXPORT int name parameters __attribute__((alias("wrap_" #name)));
#include "capture/hip/calls.def"
#undef CALL

// A kernel of a module gets its object, by which it is launched.
static int wrap_hipModuleGetFunction(void **function, void *module, const char *name)
{
    int (*real)(void **, void *, const char *) =
        (int (*)(void **, void *, const char *))hip_real(HIP_hipModuleGetFunction);
    if (!real) return HIP_SYMBOL_NOT_FOUND;
    uint64_t start = hip_begin();
    int result = real(function, module, name);
    if (!start) return result;
    if (result == HIP_SUCCESS) names_put(&kernels, *function, NULL, trace_name(name));
    hip_end(start, HIP_hipModuleGetFunction, result, NULL, 0);
    return result;
}
EXPORT int hipModuleGetFunction(void **function, void *module, const char *name)
    __attribute__((alias("wrap_hipModuleGetFunction")));

static int wrap_hipGetProcAddress(const char *name, void **function, int version, uint64_t flags,
                                  void *status)
{
    int (*real)(const char *, void **, int, uint64_t, void *) =
        (int (*)(const char *, void **, int, uint64_t, void *))hip_real(HIP_hipGetProcAddress);
    if (!real) return HIP_SYMBOL_NOT_FOUND;
    int result = real(name, function, version, flags, status);
    if (result == HIP_SUCCESS && calls_on && function && *function)
        *function = (void *)hip_catch(name, (hip_fn)*function);
    return result;
}
EXPORT int hipGetProcAddress(const char *name, void **function, int version, uint64_t flags,
                             void *status) __attribute__((alias("wrap_hipGetProcAddress")));

// Compiled programs call it for each kernel before main. The names are in the program.
static HIP_REGISTER(wrap_hipRegisterFunction)
{
    HIP_REGISTER((*real)) = (HIP_REGISTER((*)))hip_real(HIP___hipRegisterFunction);
    names_put(&kernels, host, name, 0);
    if (real) real(modules, host, device, name, limit, thread, block, block_size, grid_size, wave);
}
EXPORT HIP_REGISTER(__hipRegisterFunction) __attribute__((alias("wrap_hipRegisterFunction")));

const hip_fn hip_ours[HIP_COUNT] = {
#define CALL(name, stream, kernel, parameters, arguments) [HIP_##name] = (hip_fn)wrap_##name,
#include "capture/hip/calls.def"
#undef CALL
    [HIP_hipModuleGetFunction] = (hip_fn)wrap_hipModuleGetFunction,
    [HIP_hipGetProcAddress] = (hip_fn)wrap_hipGetProcAddress,
    [HIP___hipRegisterFunction] = (hip_fn)wrap_hipRegisterFunction,
};
