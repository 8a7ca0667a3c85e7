// SPDX-License-Identifier: Apache-2.0
// Drives the interpreter with code objects, without a runtime: loads them, gives them memory, runs
// their kernels.
#ifndef SIM_AMD_BENCH_DEVICE_H_
#define SIM_AMD_BENCH_DEVICE_H_

#include "amd/isa/isa.h"

enum { DEVICE_NODE = 1 };

typedef struct {
    uint8_t *image; // owned
    size_t size;
} module_t;

// Both end the program, with a message, when the file is not what it should be.
module_t module_load(const char *path);
uint64_t module_symbol(const module_t *module, const char *name);
void module_unload(module_t *module);

// Memory of the host that devices, of any node, may touch at the same address.
void *device_alloc(size_t size);
void device_free(void *memory);

// Runs a kernel over groups of a size; arguments are the bytes of its kernarg segment. The sizes of
// its own memory come from the kernel's descriptor.
bool device_run(isa_t *isa, uint64_t kernel, uint32_t groups, uint32_t size, const void *arguments,
                size_t argument_size);

// The same in two steps: what is to run, which the caller may change, and its run.
dispatch_t device_dispatch(uint64_t kernel, uint32_t groups, uint32_t size);
bool device_launch(isa_t *isa, dispatch_t dispatch, const void *arguments, size_t argument_size);

// Numbers that look random and are the same each time.
uint64_t random_next(uint64_t *state);

#endif
