// SPDX-License-Identifier: Apache-2.0
// MTLDevice.
#ifndef SIM_METAL_DEVICE_H_
#define SIM_METAL_DEVICE_H_

#include "metal/classes.h"
#include "metal/worker.h"

typedef struct device_t {
    object_t object;
    unsigned index;
    worker_t *handlers;           // runs the handlers of command buffers
    atomic_uint_fast64_t started; // command buffers that the GPU has begun
} device_t;

typedef struct extent_t {
    unsigned long width, height, depth;
} extent_t;

// Count 1 each time. Devices themselves live as long as the process.
EXPORT void *MTLCreateSystemDefaultDevice(void);
EXPORT void *MTLCopyAllDevices(void);

#endif
