// SPDX-License-Identifier: Apache-2.0
// Memory of HSA's pools, and of the application.
//
//     chunk.c       chunks of a pool's memory, which are cut into blocks
//     memory.c      memory for the driver itself
//     access.c      which GPUs may use it
//     pages.c       memory of the application, which is locked
//     share.c       memory by descriptors
//     buffer.c      buffers
#ifndef KEEL_SRC_DRIVERS_AMDGPU_HOST_MEMORY_MEMORY_H_
#define KEEL_SRC_DRIVERS_AMDGPU_HOST_MEMORY_MEMORY_H_

#include "drivers/amdgpu/host/base/device.h"

// chunk.c
// Memory of a pool, which all GPUs of the device may use.
keel_status_t amdgpu_pool_allocate(amdgpu_device_t *device, hsa_amd_memory_pool_t pool,
                                   uint64_t size,
                                   KEEL_AMDGPU_DEVICE_PTR void **memory) KEEL_MUST_USE;
// Of blocks of these two sizes.
void amdgpu_chunks_init(amdgpu_chunks_t *chunks, amdgpu_device_t *device,
                        hsa_amd_memory_pool_t pool, uint64_t small, uint64_t large);
// Memory of at least `size` bytes: a block, or what HSA makes for it alone. Any thread.
keel_status_t amdgpu_chunks_take(amdgpu_chunks_t *chunks, uint64_t size,
                                 KEEL_AMDGPU_DEVICE_PTR void **memory) KEEL_MUST_USE;
void amdgpu_chunks_give_back(amdgpu_chunks_t *chunks, KEEL_AMDGPU_DEVICE_PTR void *memory);
// Gives HSA the chunks that no block is taken of. Any thread.
void amdgpu_chunks_trim(amdgpu_chunks_t *chunks);
// The same, and from now on each as soon as its last block comes back.
void amdgpu_chunks_close(amdgpu_chunks_t *chunks);

// memory.c
// Of a device whose GPUs, and their pools, are known.
keel_status_t amdgpu_memory_start(amdgpu_device_t *device) KEEL_MUST_USE;
// What is still taken goes when it comes back. Also after a failed start.
void amdgpu_memory_close(amdgpu_device_t *device);
// What the driver keeps of a pool for later goes back. Any thread.
void amdgpu_memory_trim(amdgpu_device_t *device, hsa_amd_memory_pool_t pool);
// Memory of a GPU's own.
keel_status_t amdgpu_local_alloc(amdgpu_device_t *device, uint32_t node, uint64_t size,
                                 uint64_t *address) KEEL_MUST_USE;
void amdgpu_local_free(amdgpu_device_t *device, uint32_t node, uint64_t address, uint64_t size);

// access.c
// Whether all GPUs of the device may use memory that HSA has allocated. Any thread.
keel_status_t amdgpu_access_ask(const amdgpu_device_t *device, uint64_t address,
                                bool *has) KEEL_MUST_USE;
// Adds them to those that may. Any thread; code of the application that changes the same list at
// the same time is not waited for.
keel_status_t amdgpu_access_add(const amdgpu_device_t *device, uint64_t address) KEEL_MUST_USE;

// pages.c
extern const pages_ops_t amdgpu_pages_ops;

// share.c
keel_status_t amdgpu_buffer_export(keel_buffer_t *buffer, keel_external_buffer_t *external);
keel_status_t amdgpu_import_descriptor(keel_buffer_t *buffer) KEEL_MUST_USE;
void amdgpu_descriptor_forget(keel_buffer_t *buffer);

// buffer.c
keel_status_t amdgpu_buffer_alloc(keel_buffer_t *buffer);
void amdgpu_buffer_free(keel_buffer_t *buffer);
keel_status_t amdgpu_buffer_import(keel_buffer_t *buffer);
void amdgpu_buffer_forget(keel_buffer_t *buffer);

#endif
