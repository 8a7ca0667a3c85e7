// SPDX-License-Identifier: Apache-2.0
// MTLLibrary, MTLFunction and MTLComputePipelineState.
#ifndef SIM_METAL_LIBRARY_H_
#define SIM_METAL_LIBRARY_H_

#include "metal/classes.h"
#include "metal/msl.h"

typedef struct options_t {
    object_t object;
    bool fast; // arithmetic may be inexact, as Metal has it by itself
} options_t;

typedef struct library_t {
    object_t object;
    code_t *code; // owned
} library_t;

typedef struct function_t {
    object_t object;
    library_t *library; // retained
    const entry_t *entry;
} function_t;

typedef struct pipeline_t {
    object_t object;
    function_t *function; // retained
    bool indirect;        // for indirect commands, too
} pipeline_t;

// How a pipeline is made.
typedef struct pipeline_descriptor_t {
    object_t object;
    function_t *function; // retained
    bool indirect;
} pipeline_descriptor_t;

// Count 1; or NULL, and an autoreleased error if `error` is not NULL. By Apple's compiler, which
// `xpc` may take away.
library_t *library_compile(const char *source, bool fast, void **error);
pipeline_t *pipeline_new(function_t *function, void **error); // NULL: Metal makes none
unsigned long pipeline_threads(const pipeline_t *pipeline);   // that a group may have

#endif
