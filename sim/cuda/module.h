// SPDX-License-Identifier: Apache-2.0
// Modules, their functions, and kernels at work.
#ifndef SIM_CUDA_MODULE_H_
#define SIM_CUDA_MODULE_H_

#include "cuda/image.h"
#include "cuda/ptx.h"
#include "cuda/state.h"

struct CUfunc_st {
    unsigned magic;
    CUmodule module;
    const cuda_host_entry_t *entry;
    uint32_t max_dynamic; // bytes of dynamic shared memory it may be launched with
    int carveout;
};

// Never given back to the heap: graphs may hold its functions, and find that they are gone.
struct CUmod_st {
    unsigned magic;
    CUmodule next;
    CUcontext context;
    void *library;     // a shared object, or
    ptx_module_t *ptx; // a text
    const cuda_host_image_t *image;
    CUfunction functions;
    unsigned running; // kernels
};

// Of modules that are unloaded, and were loaded in contexts that ended.
void modules_forget(CUcontext context);

// Without the lock; a fault of the kernel fails the context.
void kernel_run(const kernel_work_t *kernel, const char *maker, CUcontext context);

// What device code may ask for; graph.c has it.
extern const cuda_host_services_t services;

#endif
