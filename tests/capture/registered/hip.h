// SPDX-License-Identifier: Apache-2.0
// The functions of a HIP that is played.
#ifndef TESTS_CAPTURE_REGISTERED_HIP_H_
#define TESTS_CAPTURE_REGISTERED_HIP_H_

#include <stddef.h>

typedef struct hip_place_t {
    int type, id;
} hip_place_t;

int hipMalloc(void **memory, size_t size);
int hipDrvLaunchKernelEx(const void *config, void *function, void **parameters, void **extra);
int hipMemcpy3DBatchAsync(size_t count, void *copies, void *failed, unsigned long long flags,
                          void *stream);
int hipMemPrefetchAsync_v2(const void *memory, size_t size, hip_place_t place, unsigned flags,
                           void *stream);
int hipLibraryGetKernel(void **kernel, void *library, const char *name);
int hipKernelGetFunction(void **function, void *kernel);

// The same functions, as this library has them: who calls these passes by a preloaded library.
typedef struct hip_functions_t {
    int (*malloc)(void **, size_t);
    int (*launch)(const void *, void *, void **, void **);
    int (*batch)(size_t, void *, void *, unsigned long long, void *);
    int (*prefetch)(const void *, size_t, hip_place_t, unsigned, void *);
    int (*kernel)(void **, void *, const char *);
    int (*function)(void **, void *);
    int *called; // how many calls came through
} hip_functions_t;
const hip_functions_t *hip_own(void);

#endif
