// SPDX-License-Identifier: Apache-2.0
// What HIP's functions take and return, as far as it is neither a number nor a pointer.
#ifndef KEEL_SRC_CAPTURE_HIP_ABI_H_
#define KEEL_SRC_CAPTURE_HIP_ABI_H_

#include <stddef.h>
#include <stdint.h>

typedef struct hip_dim3_t {
    uint32_t x, y, z;
} hip_dim3_t;

typedef struct hip_extent_t {
    size_t width, height, depth;
} hip_extent_t;

typedef struct hip_pitched_t {
    void *memory;
    size_t pitch, width, height;
} hip_pitched_t;

typedef struct hip_location_t { // of memory
    int type, id;
} hip_location_t;

typedef struct hip_handle_t { // of another process
    char bytes[64];
} hip_handle_t;

// A function with the parameters of __hipRegisterFunction.
#define HIP_REGISTER(name) void name HIP_REGISTER_FUNCTION
#define HIP_REGISTER_FUNCTION                                                                      \
    (void **modules, const void *host, char *device, const char *name, unsigned limit,             \
     void *thread, void *block, void *block_size, void *grid_size, int *wave)

enum {
    HIP_SUCCESS = 0,
    HIP_SYMBOL_NOT_FOUND = 302,
};

#endif
