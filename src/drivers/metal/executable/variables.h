// SPDX-License-Identifier: Apache-2.0
// Variables of an executable. MSL has none in device memory, so `keel cc` has kernels take a buffer
// with all of them, at index 1, and says at the beginning of the text what lies where.
#ifndef KEEL_SRC_DRIVERS_METAL_EXECUTABLE_VARIABLES_H_
#define KEEL_SRC_DRIVERS_METAL_EXECUTABLE_VARIABLES_H_

#include "drivers/metal/base/device.h"

typedef struct metal_variable_t {
    char *name; // owned
    uint64_t offset, size;
} metal_variable_t;

typedef struct metal_variables_t {
    bool by_keel;            // `keel cc` made the text: kernels are called keel_NAME
    bool launched;           // kernels ask Metal for the grid, and not their block
    uint64_t size;           // of the buffer; 0: there is none
    unsigned char *values;   // owned
    metal_variable_t *items; // owned
    uint32_t count, capacity;
} metal_variables_t;

// Reads the lines of a text that end in 0. To be finished also when it fails.
keel_status_t metal_variables_read(metal_variables_t *variables, const char *text) KEEL_MUST_USE;
const metal_variable_t *metal_variables_find(const metal_variables_t *variables, const char *name);
void metal_variables_finish(metal_variables_t *variables);

#endif
