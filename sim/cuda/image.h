// SPDX-License-Identifier: Apache-2.0
// What cuModuleLoadData takes: a shared object for the processor of the host that exports
// `cuda_host_image`. These structs are its binary interface;
// a maker of images declares them anew.
#ifndef SIM_CUDA_IMAGE_H_
#define SIM_CUDA_IMAGE_H_

#include <stddef.h>
#include <stdint.h>

#define CUDA_HOST_IMAGE    "cuda_host_image"
#define CUDA_HOST_SERVICES "cuda_host_services"

enum { CUDA_HOST_ABI = 1 };

// One thread block.
typedef struct cuda_host_block_t {
    uint32_t block[3];    // which one
    uint32_t grid[3];     // of how many
    uint32_t threads[3];  // in each
    uint32_t shared_size; // bytes at `shared`, the static ones first
    void *shared;         // aligned to 128; what is in it is not defined
} cuda_host_block_t;

// Runs all threads of one block. Not 0: a trap. `params` is the block of parameters, aligned to 16.
typedef int (*cuda_host_kernel_fn)(const void *params, const cuda_host_block_t *block);

typedef struct cuda_host_param_t {
    uint32_t offset, size;
} cuda_host_param_t;

typedef struct cuda_host_entry_t {
    const char *name;
    cuda_host_kernel_fn kernel;
    uint32_t threads[3];  // the only block size it takes; zeros: any
    uint32_t max_threads; // in a block; 0: as many as the device
    uint32_t shared_size; // static bytes
    uint32_t registers;   // per thread, to be told to those who ask
    uint32_t param_size;
    uint32_t param_count;
    const cuda_host_param_t *params;
} cuda_host_entry_t;

typedef struct cuda_host_global_t {
    const char *name;
    void *address;
    uint64_t size;
} cuda_host_global_t;

typedef struct cuda_host_image_t {
    uint32_t abi; // CUDA_HOST_ABI
    uint32_t entry_count;
    const cuda_host_entry_t *entries;
    uint32_t global_count;
    uint32_t reserved;
    const cuda_host_global_t *globals;
} cuda_host_image_t;

// What device code may ask of a device. An image that exports a pointer to this struct under the
// name `cuda_host_services` finds it set. Those that return an int return 0 for success.
typedef struct cuda_host_services_t {
    void (*set_conditional)(uint64_t handle, uint32_t value);
    int (*node_set_grid)(void *node, uint32_t x, uint32_t y, uint32_t z);
    int (*node_set_enabled)(void *node, int enabled);
    int (*node_set_param)(void *node, size_t offset, const void *value, size_t size);
} cuda_host_services_t;

#endif
