// SPDX-License-Identifier: Apache-2.0
// What Apple's compiler does. It is a process of its own, which may go while it works, above all
// on machines under load. What was asked of it then is asked once more; the second answer counts.
// Kernels with too much threadgroup memory were seen to end it every time.
#include <string.h>

#include "base/log.h"
#include "drivers/metal/executable/executable.h"

// That is said in the text alone: the domains of such errors differ.
static bool is_lost(const metal_api_t *api, id made, id error)
{
    if (made || !error) return false;
    const char *text = metal_text(api, error);
    if (!strstr(text, "XPC_ERROR") && !strstr(text, "Compiler encountered an internal error"))
        return false;
    log_say(KEEL_LOG_WARNING,
            "Metal's compiler went, and is asked once more; too much threadgroup memory may be "
            "why: %s",
            text);
    return true;
}

id metal_library_make(metal_device_t *device, const char *text, id options, id *error)
{
    const metal_api_t *api = device->api;
    id source = mtl_string(api, api->string_class, text);
    id made = mtl_new_library(api, device->device, source, options, error);
    if (is_lost(api, made, *error))
        made = mtl_new_library(api, device->device, source, options, error);
    return made;
}

id metal_library_load(metal_device_t *device, id data, id *error)
{
    const metal_api_t *api = device->api;
    id made = mtl_new_library_of_data(api, device->device, data, error);
    if (is_lost(api, made, *error))
        made = mtl_new_library_of_data(api, device->device, data, error);
    return made;
}

id metal_state_make(metal_device_t *device, id function, id *error)
{
    const metal_api_t *api = device->api;
    id made = mtl_new_pipeline(api, device->device, function, error);
    if (is_lost(api, made, *error)) made = mtl_new_pipeline(api, device->device, function, error);
    return made;
}

id metal_state_make_indirect(metal_device_t *device, id function)
{
    const metal_api_t *api = device->api;
    id error = NULL, descriptor = mtl_new(api, api->objc_getClass("MTLComputePipelineDescriptor"));
    mtl_set_function(api, descriptor, function);
    mtl_set_indirect(api, descriptor, true);
    id made = mtl_new_pipeline_of(api, device->device, descriptor, 0, NULL, &error);
    if (is_lost(api, made, error))
        made = mtl_new_pipeline_of(api, device->device, descriptor, 0, NULL, &error);
    mtl_release(api, descriptor);
    return made;
}
