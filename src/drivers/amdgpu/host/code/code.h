// SPDX-License-Identifier: Apache-2.0
// Code that GPUs run.
//
//     executable.c  code objects and their kernels
//     builtin.c     the driver's own kernels
#ifndef KEEL_SRC_DRIVERS_AMDGPU_HOST_CODE_CODE_H_
#define KEEL_SRC_DRIVERS_AMDGPU_HOST_CODE_CODE_H_

#include "drivers/amdgpu/host/base/device.h"

// executable.c
uint32_t amdgpu_executable_rank(keel_device_t *device, keel_image_kind_t kind, const char *target);
keel_status_t amdgpu_executable_load(keel_device_t *device, const keel_image_t *image,
                                     keel_executable_t **executable);
void amdgpu_executable_unload(keel_executable_t *executable);
keel_status_t amdgpu_executable_global(keel_executable_t *executable, const char *name,
                                       keel_external_buffer_t *where);
keel_status_t amdgpu_executable_write(keel_executable_t *executable,
                                      const keel_external_buffer_t *where, const void *data);
extern const cache_class_t amdgpu_module_class;
// Loads a code object, or that of a bundle which is for the device.
keel_status_t amdgpu_code_load(amdgpu_device_t *device, const void *data, size_t size,
                               hsa_executable_t *executable) KEEL_MUST_USE;
keel_status_t amdgpu_kernel_find(amdgpu_device_t *device, hsa_executable_t executable,
                                 const char *name, amdgpu_kernel_t *kernel) KEEL_MUST_USE;
// Where a variable is on the first node.
keel_status_t amdgpu_variable_find(amdgpu_device_t *device, hsa_executable_t executable,
                                   const char *name, uint64_t *address) KEEL_MUST_USE;

// builtin.c
keel_status_t amdgpu_builtins_load(amdgpu_device_t *device) KEEL_MUST_USE;
// The same, of a device library that is given. KEEL_UNSUPPORTED for one of another version.
keel_status_t amdgpu_library_load(amdgpu_device_t *device, const void *data,
                                  size_t size) KEEL_MUST_USE;
void amdgpu_builtins_unload(amdgpu_device_t *device);

#endif
