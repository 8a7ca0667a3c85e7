// SPDX-License-Identifier: Apache-2.0
// The device library: the driver's own kernels.
#include "base/status.h"
#include "drivers/amdgpu/device/version.h"
#include "drivers/amdgpu/host/code/code.h"

// A bundle with a code object for each target, as device/make.sh makes it.
extern const unsigned char keel_embed_amdgpu_library[];
extern const uint64_t keel_embed_amdgpu_library_size;
// The same with the trace ring.
extern const unsigned char keel_embed_amdgpu_library_traced[];
extern const uint64_t keel_embed_amdgpu_library_traced_size;

static const char *const names[AMDGPU_BUILTINS] = {
    [AMDGPU_TIMESTAMP] = "keel_timestamp",
    [AMDGPU_FILL] = "keel_fill",
    [AMDGPU_COPY] = "keel_copy",
};

#define VERSION_PARTS(v)                                                                           \
    (unsigned)((v) >> 56), (unsigned)((v) >> 48 & 0xff), (unsigned)((v) >> 40 & 0xff),             \
        (unsigned)((v) >> 32 & 0xff), (unsigned)(v)

// Host and library have structs in common, so that they must be made of the same source.
static keel_status_t version_check(amdgpu_device_t *device)
{
    const uint64_t ours = LIBRARY_VERSION;
    uint64_t address = 0, theirs = 0;
    keel_status_t status =
        amdgpu_variable_find(device, device->library, "keel_library_version", &address);
    if (status) return keel_status_wrap(status, "the device library says no version");
    KEEL_TRY(HSA_CALL(device->hsa, hsa_memory_copy, &theirs, (const void *)(uintptr_t)address,
                      sizeof theirs));
    if (theirs == ours) return NULL;
    return KEEL_ERROR(
        KEEL_UNSUPPORTED,
        "the device library is of version %u.%u.%u-%u with layout %08x, the driver of "
        "%u.%u.%u-%u with layout %08x: both must be made of the same source "
        "(src/drivers/amdgpu/device/make.sh)",
        VERSION_PARTS(theirs), VERSION_PARTS(ours));
}

keel_status_t amdgpu_library_load(amdgpu_device_t *device, const void *data, size_t size)
{
    keel_status_t status = amdgpu_code_load(device, data, size, &device->library);
    if (status)
        return keel_status_wrap(status, "the driver's own kernels cannot be loaded for %s",
                                device->base.info.target);
    device->has_library = true;
    KEEL_TRY(version_check(device));
    for (int i = 0; i < AMDGPU_BUILTINS; i++)
        KEEL_TRY(amdgpu_kernel_find(device, device->library, names[i], &device->builtins[i]));
    return NULL;
}

keel_status_t amdgpu_builtins_load(amdgpu_device_t *device)
{
    if (device->traced)
        return amdgpu_library_load(device, keel_embed_amdgpu_library_traced,
                                   keel_embed_amdgpu_library_traced_size);
    return amdgpu_library_load(device, keel_embed_amdgpu_library, keel_embed_amdgpu_library_size);
}

void amdgpu_builtins_unload(amdgpu_device_t *device)
{
    if (device->has_library) device->hsa->hsa_executable_destroy(device->library);
    device->has_library = false;
}
