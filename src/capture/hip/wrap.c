// SPDX-License-Identifier: Apache-2.0
// Our functions: each calls HIP's own and records that. Arguments and results pass as they are.
#include <stdio.h>

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

__attribute__((always_inline)) static inline uint64_t hip_begin(void)
{
    return calls_on ? call_begin() : 0;
}

// What hip_end does where it must call others.
__attribute__((noinline)) static void hip_end_late(uint64_t start, hip_index_t index, int result,
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

__attribute__((noinline)) static void hip_end(uint64_t start, hip_index_t index, int result,
                                              const void *stream, uint32_t kernel)
{
    // relaxed, both: as in trace_name_at.
    call_about_t about = {
        .name = atomic_load_explicit(&numbers[index], memory_order_relaxed),
        .domain = atomic_load_explicit(&domain, memory_order_relaxed),
        .kernel = kernel,
        .result = (uint64_t)(uint32_t)result,
        .stream = stream,
    };
    trace_record_t *record = about.name && about.domain ? trace_take_ready() : NULL;
    if (__builtin_expect(record != NULL, 1))
        call_put(record, start, clock_ticks(), &about);
    else
        hip_end_late(start, index, result, stream, kernel);
}

// A call that takes memory, if there are bytes, or gives it back.
__attribute__((noinline)) static void memory_end(uint64_t start, hip_index_t index, int result,
                                                 const void *stream, const void *address,
                                                 uint64_t bytes)
{
    call_end(start, &(call_about_t){
                        .name = trace_name_at(&numbers[index], hip_names[index]),
                        .domain = trace_name_at(&domain, "hip"),
                        .result = (uint64_t)(uint32_t)result,
                        .stream = stream,
                        .memory = bytes ? TRACE_MEMORY_TAKEN : TRACE_MEMORY_GIVEN_BACK,
                        .address = address,
                        .bytes = bytes,
                    });
}

// `ends` records the call.
#define WRAP(name, parameters, arguments, ends)                                                    \
    static int wrap_##name parameters                                                              \
    {                                                                                              \
        int(*real) parameters = (int(*) parameters)hip_real(HIP_##name);                           \
        if (__builtin_expect(!real, 0)) return HIP_SYMBOL_NOT_FOUND;                               \
        uint64_t start = hip_begin();                                                              \
        int result = real arguments;                                                               \
        if (__builtin_expect(start != 0, 1)) ends;                                                 \
        return result;                                                                             \
    }                                                                                              \
    EXPORT int name parameters __attribute__((alias("wrap_" #name)));
#define CALL(name, stream, kernel, parameters, arguments)                                          \
    WRAP(name, parameters, arguments, hip_end(start, HIP_##name, result, stream, kernel))
// Where the memory is, is told by a call that succeeds.
#define MEMORY(name, stream, address, bytes, parameters, arguments)                                \
    WRAP(name, parameters, arguments,                                                              \
         memory_end(start, HIP_##name, result, stream, result == HIP_SUCCESS ? (address) : NULL,   \
                    bytes))
#include "capture/hip/calls.def"
#undef CALL

// A kernel of a module, or of a library, gets its object, by which it is launched.
static int kernel_find(hip_index_t index, void **kernel, void *in, const char *name)
{
    int (*real)(void **, void *, const char *) =
        (int (*)(void **, void *, const char *))hip_real(index);
    if (!real) return HIP_SYMBOL_NOT_FOUND;
    uint64_t start = hip_begin();
    int result = real(kernel, in, name);
    if (!start) return result;
    if (result == HIP_SUCCESS) names_put(&kernels, *kernel, NULL, trace_name(name));
    hip_end(start, index, result, NULL, 0);
    return result;
}

#define FINDS(name)                                                                                \
    static int wrap_##name(void **kernel, void *in, const char *text)                              \
    {                                                                                              \
        return kernel_find(HIP_##name, kernel, in, text);                                          \
    }                                                                                              \
    EXPORT int name(void **kernel, void *in, const char *text)                                     \
        __attribute__((alias("wrap_" #name)));
FINDS(hipModuleGetFunction)
FINDS(hipLibraryGetKernel)

// The same kernel as an object of another kind.
static int wrap_hipKernelGetFunction(void **function, void *kernel)
{
    int (*real)(void **, void *) = (int (*)(void **, void *))hip_real(HIP_hipKernelGetFunction);
    if (!real) return HIP_SYMBOL_NOT_FOUND;
    uint64_t start = hip_begin();
    int result = real(function, kernel);
    if (!start) return result;
    uint32_t name = kernel_name(kernel);
    if (result == HIP_SUCCESS && name) names_put(&kernels, *function, NULL, name);
    hip_end(start, HIP_hipKernelGetFunction, result, NULL, 0);
    return result;
}
EXPORT int hipKernelGetFunction(void **function, void *kernel)
    __attribute__((alias("wrap_hipKernelGetFunction")));

// What gives functions of HIP out gives ours. It may give the variant of one for a default stream
// of each thread, which has another name.
static int given(int result, const char *name, void **function)
{
    char variant[64];
    if (result != HIP_SUCCESS || !calls_on || !function || !*function) return result;
    snprintf(variant, sizeof variant, "%s_spt", name);
    hip_index_t index = hip_index(variant);
    bool varies = index != HIP_COUNT && hip_real(index) == (hip_fn)*function;
    *function = (void *)hip_catch(varies ? variant : name, (hip_fn)*function);
    return result;
}

#define GIVES(name, parameters, arguments)                                                         \
    static int wrap_##name parameters                                                              \
    {                                                                                              \
        int(*real) parameters = (int(*) parameters)hip_real(HIP_##name);                           \
        return real ? given(real arguments, symbol, function) : HIP_SYMBOL_NOT_FOUND;              \
    }                                                                                              \
    EXPORT int name parameters __attribute__((alias("wrap_" #name)));
GIVES(hipGetProcAddress,
      (const char *symbol, void **function, int version, uint64_t flags, void *status),
      (symbol, function, version, flags, status))
GIVES(hipGetProcAddress_spt,
      (const char *symbol, void **function, int version, uint64_t flags, void *status),
      (symbol, function, version, flags, status))
GIVES(hipGetDriverEntryPoint,
      (const char *symbol, void **function, unsigned long long flags, void *status),
      (symbol, function, flags, status))
GIVES(hipGetDriverEntryPoint_spt,
      (const char *symbol, void **function, unsigned long long flags, void *status),
      (symbol, function, flags, status))

// Compiled programs call it for each kernel before main. The names are in the program.
static HIP_REGISTER(wrap___hipRegisterFunction)
{
    HIP_REGISTER((*real)) = (HIP_REGISTER((*)))hip_real(HIP___hipRegisterFunction);
    names_put(&kernels, host, name, 0);
    if (real) real(modules, host, device, name, limit, thread, block, block_size, grid_size, wave);
}
EXPORT HIP_REGISTER(__hipRegisterFunction) __attribute__((alias("wrap___hipRegisterFunction")));

const hip_fn hip_ours[HIP_COUNT] = {
#define CALL(name, stream, kernel, parameters, arguments) [HIP_##name] = (hip_fn)wrap_##name,
#include "capture/hip/calls.def"
#undef CALL
#define OTHER(name) [HIP_##name] = (hip_fn)wrap_##name,
#include "capture/hip/others.def"
#undef OTHER
};
