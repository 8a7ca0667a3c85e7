// SPDX-License-Identifier: Apache-2.0
// The functions of the CUDA driver, ours and its own. A program calls ours because this library is
// preloaded, or because it asked for their addresses by dlsym or cuGetProcAddress.
#ifndef KEEL_SRC_CAPTURE_CUDA_DRIVER_H_
#define KEEL_SRC_CAPTURE_CUDA_DRIVER_H_

#include <stdatomic.h>
#include <stddef.h>

typedef enum cuda_index_t {
#define FUNCTION(name) CUDA_##name,
#include "capture/cuda/driver.def"
#undef FUNCTION
    CUDA_COUNT,
} cuda_index_t;

typedef void (*cuda_fn)(void);

extern const char *const cuda_names[CUDA_COUNT];
extern const cuda_fn cuda_ours[CUDA_COUNT]; // wrap.c
extern _Atomic(cuda_fn) cuda_reals[CUDA_COUNT];

// Looks for the driver's own function in what is loaded; never loads a library. NULL: it is not
// there now.
cuda_fn cuda_look(cuda_index_t index);

// The driver's own function; NULL: it is not there now. Any thread.
static inline cuda_fn cuda_real(cuda_index_t index)
{
    // relaxed: functions of a library that stays loaded; any of them will do.
    cuda_fn known = atomic_load_explicit(&cuda_reals[index], memory_order_relaxed);
    return __builtin_expect(known != NULL, 1) ? known : cuda_look(index);
}

// What a program that asked for a name, and found a function, is to get: ours, or what it found if
// ours does not stand for that, or for that of another driver in the process. Any thread.
void *cuda_catch(const char *name, void *found);

// What dlsym is to give out for a name; NULL: what the C library's does; or DLSYM_MISSING.
void *cuda_dlsym_choose(void *handle, const char *name);

// The name of a kernel, or a text in its place: the driver tells it from CUDA 12.3 on. The
// driver's.
const char *cuda_kernel_name(void *kernel);

#endif
