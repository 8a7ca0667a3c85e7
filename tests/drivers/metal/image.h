// SPDX-License-Identifier: Apache-2.0
// Executables out of containers that a test makes.
#ifndef TESTS_DRIVERS_METAL_IMAGE_H_
#define TESTS_DRIVERS_METAL_IMAGE_H_

#include "base/memory.h"
#include "drivers/metal/device.h"
#include "executable/container.h"

static inline keel_status_t load_image(keel_device_t *device, container_input_t input,
                                       keel_executable_t **executable)
{
    void *bytes = NULL;
    size_t size = 0;
    assert_null(container_write(&(container_options_t){0}, &input, 1, &bytes, &size));
    keel_executable_options_t options = {.data = bytes, .size = size};
    keel_status_t status = keel_executable_load(device, &options, executable);
    mem_free(bytes);
    return status;
}

static inline keel_status_t load_text(keel_device_t *device, const char *text,
                                      const keel_image_entry_t *entries, uint32_t count,
                                      keel_executable_t **executable)
{
    container_input_t input = {KEEL_IMAGE_MSL, "msl", text, strlen(text), entries, count};
    return load_image(device, input, executable);
}

#endif
