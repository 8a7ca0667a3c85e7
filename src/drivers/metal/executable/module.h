// SPDX-License-Identifier: Apache-2.0
// What Metal has made of an image: libraries, functions, pipelines. Executables of one image share
// it, since their variables lie in buffers of their own. All of it within a pool; any thread.
#ifndef KEEL_SRC_DRIVERS_METAL_EXECUTABLE_MODULE_H_
#define KEEL_SRC_DRIVERS_METAL_EXECUTABLE_MODULE_H_

#include "drivers/metal/executable/executable.h"

typedef struct metal_pipeline_t {
    struct metal_pipeline_t *next;
    char *name;               // of the function, or of SPIR-V's entry point; owned
    id state;                 // MTLComputePipelineState, retained
    unsigned long threads;    // that a group of it may have
    unsigned long local;      // bytes of threadgroup memory that its kernel declares
    bool sizes;               // it wants to know how long what its argument buffer has is
    id function;              // retained
    lock_t lock;              // for what is below
    id indirect;              // the same for indirect commands, retained; NULL: none was needed yet
    bool direct_only;         // Metal has refused to make that
    id encoders[METAL_SPARE]; // that no thread uses, retained
    uint32_t encoder_count;
} metal_pipeline_t;

extern const cache_class_t metal_module_class; // the owner is the device

// As a container says, or else as its bytes do; KEEL_IMAGE_UNKNOWN: it is none.
keel_image_kind_t metal_image_kind(const keel_image_t *image);
// The text or the compiled library; NULL of SPIR-V, of which each entry point has its own.
id metal_module_library(const cache_item_t *module);
// For indirect commands, made when it is first asked for; NULL: Metal does not make it.
id metal_pipeline_indirect(metal_device_t *device, metal_pipeline_t *pipeline);
// The pipeline of a kernel, which lives as long as the module.
keel_status_t metal_module_find(cache_item_t *module, const char *name,
                                metal_pipeline_t **pipeline) KEEL_MUST_USE;

#endif
