// SPDX-License-Identifier: Apache-2.0
// The images of kernels/, which the build puts into each example. A program of your own may as well
// give keel_executable_options_t.path.
#ifndef EXAMPLES_KERNELS_H_
#define EXAMPLES_KERNELS_H_

#include <keel/executable.h>

extern const unsigned char keel_embed_example_kernels[];
extern const uint64_t keel_embed_example_kernels_size;
extern const unsigned char keel_embed_example_host_kernels[];
extern const uint64_t keel_embed_example_host_kernels_size;

// kernels.c, a container: for every device.
KEEL_MUST_USE static inline keel_status_t kernels_load(keel_device_t *device,
                                                       keel_executable_t **kernels)
{
    keel_executable_options_t image = {
        .data = keel_embed_example_kernels,
        .size = keel_embed_example_kernels_size,
        .name = "examples",
    };
    return keel_executable_load(device, &image, kernels);
}

// host.c, a shared object: for devices with KEEL_CAP_KERNEL_STATUS.
KEEL_MUST_USE static inline keel_status_t host_kernels_load(keel_device_t *device,
                                                            keel_executable_t **kernels)
{
    keel_executable_options_t image = {
        .data = keel_embed_example_host_kernels,
        .size = keel_embed_example_host_kernels_size,
        .name = "examples of the host",
    };
    return keel_executable_load(device, &image, kernels);
}

#endif
