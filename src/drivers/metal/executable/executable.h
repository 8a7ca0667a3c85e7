// SPDX-License-Identifier: Apache-2.0
// Executables and their kernels, and what Metal compiles.
#ifndef KEEL_SRC_DRIVERS_METAL_EXECUTABLE_EXECUTABLE_H_
#define KEEL_SRC_DRIVERS_METAL_EXECUTABLE_EXECUTABLE_H_

#include "drivers/metal/base/device.h"

// executable.c
typedef struct metal_kernel_t {
    struct metal_pipeline_t *code; // of the executable's module
    id variables;                  // a buffer, the executable's; NULL: there are none
    bool launched;                 // it asks Metal for the grid, and not its block
    bool bound;                    // it takes an argument buffer, and constants apart from it
    _Atomic uint32_t traced;       // its name in a trace
} metal_kernel_t;
uint32_t metal_executable_rank(keel_device_t *device, keel_image_kind_t kind, const char *target);
keel_status_t metal_executable_load(keel_device_t *device, const keel_image_t *image,
                                    keel_executable_t **executable);
void metal_executable_unload(keel_executable_t *executable);
keel_status_t metal_executable_global(keel_executable_t *executable, const char *name,
                                      keel_external_buffer_t *where);
keel_status_t metal_executable_write(keel_executable_t *executable,
                                     const keel_external_buffer_t *where, const void *data);

// compile.c
// Retained; NULL with an error: Metal makes none.
id metal_library_make(metal_device_t *device, const char *text, id options, id *error);
id metal_library_load(metal_device_t *device, id data, id *error);   // of a metallib
id metal_state_make(metal_device_t *device, id function, id *error); // a pipeline
id metal_state_make_indirect(metal_device_t *device, id function);   // for indirect commands

// builtin.c
keel_status_t metal_builtins_make(metal_device_t *device) KEEL_MUST_USE;
void metal_builtins_release(metal_device_t *device);

#endif
