// SPDX-License-Identifier: Apache-2.0
// MSL of SPIR-V, by SPIRV-Cross, which is opened when the first such image is loaded.
//
// Of Vulkan's compute shaders. What they bind by set and number becomes one argument buffer, at
// index 0 of the kernel: sets are put one behind the other, each in the order of its numbers, and
// the place in that list is what a dispatch binds by. Push constants are at index 1.
#ifndef KEEL_SRC_DRIVERS_METAL_EXECUTABLE_CROSS_H_
#define KEEL_SRC_DRIVERS_METAL_EXECUTABLE_CROSS_H_

#include "drivers/metal/base/device.h"
#include "executable/image.h"

// What every kernel is called in its text, one text for each.
#define METAL_CROSS_NAME "keel_entry"

// What texts are made for, by the family of the GPU.
typedef struct metal_environment_t {
    uint32_t version;       // of MSL, as 30000 for 3.0
    bool mac;               // of macOS, and not of iOS
    bool lanes;             // it has SIMD-groups with functions of their own
    uint32_t subgroup_size; // that is in the text; of GPUs without such functions 1
} metal_environment_t;
metal_environment_t metal_environment(const metal_device_t *device);

// The text of an entry point, ends in 0; the caller frees it. *sizes: the kernel wants to know how
// long what it binds is: the argument buffer has one pointer more, to a word of 32 bits for each,
// and these words are at index 2, too. KEEL_UNSUPPORTED if SPIRV-Cross cannot be opened, or says
// no.
keel_status_t metal_cross(const metal_device_t *device, const keel_image_t *image,
                          const keel_image_entry_info_t *entry, char **text,
                          bool *sizes) KEEL_MUST_USE;

#endif
