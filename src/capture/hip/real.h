// SPDX-License-Identifier: Apache-2.0
// The functions of HIP, ours and its own. A program calls ours because this library is preloaded,
// or because it asked for their addresses by dlsym or hipGetProcAddress.
#ifndef KEEL_SRC_CAPTURE_HIP_REAL_H_
#define KEEL_SRC_CAPTURE_HIP_REAL_H_

#include <stdatomic.h>
#include <stdbool.h>

#include "capture/hip/abi.h"

typedef enum hip_index_t {
#define CALL(name, stream, kernel, parameters, arguments) HIP_##name,
#include "capture/hip/calls.def"
#undef CALL
#define OTHER(name) HIP_##name,
#include "capture/hip/others.def"
#undef OTHER
    HIP_COUNT,
} hip_index_t;

typedef void (*hip_fn)(void);
#define HIP_LIBRARY "libamdhip64.so"

extern const char *const hip_names[HIP_COUNT];
extern const hip_fn hip_ours[HIP_COUNT]; // wrap.c
extern _Atomic(hip_fn) hip_reals[HIP_COUNT];

// Looks for HIP's own function in what is loaded; never loads a library. NULL: it is not there now.
hip_fn hip_look(hip_index_t index);

// HIP's own function; NULL: it is not there now. Any thread.
static inline hip_fn hip_real(hip_index_t index)
{
    // relaxed: functions of a library that stays loaded; any of them will do.
    hip_fn known = atomic_load_explicit(&hip_reals[index], memory_order_relaxed);
    return __builtin_expect(known != NULL, 1) ? known : hip_look(index);
}

// Which function a name is; HIP_COUNT: none.
hip_index_t hip_index(const char *name);

// What a program that looked a name up, and found `real`, is to get: our function, or `real` if
// that is none of HIP's, or of a second HIP in the process.
hip_fn hip_catch(const char *name, hip_fn real);

// Whether HIP has handed its table over, so that all calls come to our functions; table.c.
bool hip_has_table(void);

// What dlsym is to give out for a name; NULL: what the C library's does; or DLSYM_MISSING.
void *hip_dlsym_choose(void *handle, const char *name);

#endif
