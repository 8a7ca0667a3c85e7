// SPDX-License-Identifier: Apache-2.0
// What a device is and can.
#include <stdio.h>
#include <string.h>

#include "base/status.h"
#include "drivers/amdgpu/host/base/device.h"
#include "kit/gfx.h"

// HSA writes "GPU-" and sixteen digits, or "GPU-XX" for none. HIP takes these digits themselves for
// the sixteen bytes of a UUID, and so does this: the same GPU has the same one by either.
static void uuid_read(const char *text, keel_device_info_t *info)
{
    enum { BEFORE = 4 };
    info->has_uuid = strlen(text) == BEFORE + sizeof info->uuid;
    if (info->has_uuid) memcpy(info->uuid, text + BEFORE, sizeof info->uuid);
}

static keel_status_t info_read(amdgpu_device_t *device)
{
    const hsa_symbols_t *hsa = device->hsa;
    keel_device_info_t *info = &device->base.info;
    char name[64] = "", uuid[64] = "";
    uint32_t place = 0, domain = 0;
    KEEL_TRY(HSA_CALL(hsa, hsa_agent_get_info, device->agent, HSA_AMD_AGENT_INFO_UUID, uuid));
    uuid_read(uuid, info);
    KEEL_TRY(
        HSA_CALL(hsa, hsa_agent_get_info, device->agent, HSA_AMD_AGENT_INFO_PRODUCT_NAME, name));
    KEEL_TRY(HSA_CALL(hsa, hsa_agent_get_info, device->agent, HSA_AMD_AGENT_INFO_BDFID, &place));
    KEEL_TRY(HSA_CALL(hsa, hsa_agent_get_info, device->agent, HSA_AMD_AGENT_INFO_DOMAIN, &domain));
    snprintf(info->hardware, sizeof info->hardware, "%.63s", name);
    snprintf(info->pci, sizeof info->pci, "%04x:%02x:%02x.%x", domain & 0xffff, place >> 8 & 0xff,
             place >> 3 & 0x1f, place & 7);
    snprintf(info->vendor, sizeof info->vendor, "AMD");
    snprintf(info->api, sizeof info->api, "HSA %u.%u", hsa->version >> 16, hsa->version & 0xffff);
    device_info_add_pci(info, PCI_AMD);
    return amdgpu_agent_target(hsa, device->agent, info->target);
}

// Old releases do not know the rate of the clock.
static uint32_t clock_khz(const amdgpu_device_t *device)
{
    uint64_t hertz = 0;
    device->hsa->hsa_agent_get_info(device->agent, HSA_AMD_AGENT_INFO_TIMESTAMP_FREQUENCY, &hertz);
    return hertz >= 1000 ? (uint32_t)(hertz / 1000) : gfx_usual_khz(device->base.info.target);
}

static const keel_caps_t fixed_caps = {
    .bits = KEEL_CAP_QUEUE_ALLOCA | KEEL_CAP_BRANCHES | KEEL_CAP_EVENTS | KEEL_CAP_TIMESTAMPS |
            KEEL_CAP_FILES | KEEL_CAP_HOST_CALLS | KEEL_CAP_IMPORT_HOST | KEEL_CAP_EXECUTES |
            KEEL_CAP_DYNAMIC_COUNTS | KEEL_CAP_RAW_ARGUMENTS | KEEL_CAP_GROUP_SIZE |
            KEEL_CAP_DLPACK | KEEL_CAP_COPY_ACROSS | KEEL_CAP_NATIVE,
    .native = KEEL_CAP_TIMESTAMPS | KEEL_CAP_IMPORT_HOST | KEEL_CAP_EXECUTES |
              KEEL_CAP_RAW_ARGUMENTS | KEEL_CAP_GROUP_SIZE | KEEL_CAP_DLPACK |
              KEEL_CAP_COPY_ACROSS | KEEL_CAP_NATIVE,
    .queue_families = 1u << KEEL_QUEUE_COMPUTE | 1u << KEEL_QUEUE_TRANSFER,
    .min_priority = -1,
    .max_priority = 1,
    .nodes = 1,
    .max_bindings = AMDGPU_MAX_BINDINGS,
    .max_slots = 1024,
    .max_constants = AMDGPU_MAX_CONSTANTS,
    .max_arguments = AMDGPU_MAX_ARGUMENTS,
    .max_local_memory = 64 << 10,
    .max_groups = UINT32_MAX,
    .buffer_alignment = AMDGPU_ALIGNMENT,
    .max_commands = 1u << 24,
    .max_depth = RUN_MAX_DEPTH,
    .memory_types = {KEEL_MEMORY_DEVICE_LOCAL | KEEL_MEMORY_DEVICE_VISIBLE,
                     KEEL_MEMORY_DEVICE_VISIBLE | KEEL_MEMORY_HOST_VISIBLE |
                         KEEL_MEMORY_HOST_COHERENT | KEEL_MEMORY_HOST_CACHED},
};

// A packet counts items in 32 bits, so that the largest group says how many groups there may be.
static keel_status_t caps_read(amdgpu_device_t *device)
{
    const hsa_symbols_t *hsa = device->hsa;
    keel_caps_t *caps = &device->base.caps;
    uint16_t sizes[3] = {0};
    uint32_t units = 0;
    *caps = fixed_caps;
    if (hsa->exports) {
        caps->bits |= KEEL_CAP_EXPORT_FD;
        caps->native |= KEEL_CAP_EXPORT_FD;
    }
    KEEL_TRY(
        HSA_CALL(hsa, hsa_agent_get_info, device->agent, HSA_AGENT_INFO_WORKGROUP_MAX_DIM, sizes));
    KEEL_TRY(HSA_CALL(hsa, hsa_agent_get_info, device->agent, HSA_AGENT_INFO_WORKGROUP_MAX_SIZE,
                      &caps->max_group_size));
    KEEL_TRY(HSA_CALL(hsa, hsa_agent_get_info, device->agent, HSA_AGENT_INFO_WAVEFRONT_SIZE,
                      &caps->subgroup_size));
    KEEL_TRY(HSA_CALL(hsa, hsa_agent_get_info, device->agent, HSA_AMD_AGENT_INFO_COMPUTE_UNIT_COUNT,
                      &units));
    caps->workers = units;
    caps->max_buffer_size = device->nodes[0].memory;
    for (int i = 0; i < 3; i++) {
        caps->max_group_sizes[i] = sizes[i];
        caps->max_group_counts[i] = UINT32_MAX / (sizes[i] ? sizes[i] : 1);
    }
    return NULL;
}

// What goes out is called by the first name that suits it.
static void dlpack_fill(amdgpu_device_t *device)
{
    enum { CPU = 1, ROCM = 10, ROCM_HOST = 11 }; // DLPack's numbers
    keel_dlpack_place_t *place = device->dlpack;
    *place++ = (keel_dlpack_place_t){ROCM_HOST, 0, KEEL_EVERY_NODE, KEEL_MEMORY_HOST_VISIBLE};
    for (uint32_t i = 0; i < device->node_count; i++)
        *place++ =
            (keel_dlpack_place_t){ROCM, device->nodes[i].ordinal, i, KEEL_MEMORY_DEVICE_LOCAL};
    *place++ = (keel_dlpack_place_t){CPU, 0, KEEL_EVERY_NODE, KEEL_MEMORY_HOST_VISIBLE};
    *place = (keel_dlpack_place_t){0}; // the end
    device->base.caps.dlpack = device->dlpack;
}

// What holds for all of them, behind what was read of the first.
static keel_status_t group_read(amdgpu_device_t *device)
{
    keel_caps_t *caps = &device->base.caps;
    keel_device_info_t *info = &device->base.info;
    caps->nodes = device->node_count;
    dlpack_fill(device);
    for (uint32_t i = 1; i < device->node_count; i++) {
        uint32_t units = 0;
        KEEL_TRY(HSA_CALL(device->hsa, hsa_agent_get_info, device->agents[i],
                          HSA_AMD_AGENT_INFO_COMPUTE_UNIT_COUNT, &units));
        caps->workers += units;
        if (device->nodes[i].memory < caps->max_buffer_size)
            caps->max_buffer_size = device->nodes[i].memory;
    }
    if (device->node_count == 1) return NULL;
    // Each of them has its own.
    info->has_uuid = info->has_numa_node = false;
    memset(info->uuid, 0, sizeof info->uuid);
    info->pci[0] = 0;
    info->numa_node = 0;
    return NULL;
}

keel_status_t amdgpu_caps_read(amdgpu_device_t *device)
{
    KEEL_TRY(info_read(device));
    device->clock_khz = clock_khz(device);
    KEEL_TRY(caps_read(device));
    return group_read(device);
}
