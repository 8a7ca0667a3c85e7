// SPDX-License-Identifier: Apache-2.0
// Memory faults. HSA tells one function of a process of them, and of the GPU, not of the queue: all
// devices of that GPU end. A fault of a GPU that no device of Keel's has is left to HSA, which ends
// the process.
#include <stdio.h>

#include "base/status.h"
#include "drivers/amdgpu/host/base/device.h"

static lock_t watch_lock; // for the list
static amdgpu_device_t *watched;

void amdgpu_fault_watch(amdgpu_device_t *device)
{
    lock_enter(&watch_lock);
    device->next_watched = watched;
    watched = device;
    lock_leave(&watch_lock);
}

void amdgpu_fault_forget(amdgpu_device_t *device)
{
    lock_enter(&watch_lock);
    amdgpu_device_t **link = &watched;
    while (*link && *link != device) link = &(*link)->next_watched;
    if (*link) *link = device->next_watched;
    lock_leave(&watch_lock);
}

static void reasons_write(uint32_t bits, char *text, size_t size)
{
    static const char *const names[] = {
        "no memory is there that the GPU may use", "the memory may not be written",
        "the memory may not be executed",          "the memory is the host's alone",
        "the GPU's memory is damaged (ECC)",       "the address is not exact",
        "the GPU's registers are damaged (ECC)",
    };
    size_t length = 0;
    snprintf(text, size, "the cause is not known");
    for (uint32_t i = 0; i < KEEL_LENGTH(names) && length < size; i++)
        if (bits & 1u << i)
            length += (size_t)snprintf(text + length, size - length, "%s%s", length ? ", " : "",
                                       names[i]);
}

static keel_status_t fault_status(const hsa_amd_gpu_memory_fault_info_t *fault)
{
    char reasons[256];
    reasons_write(fault->fault_reason_mask, reasons, sizeof reasons);
    return KEEL_ERROR(KEEL_DEVICE_LOST, "memory fault of the GPU at address 0x%llx: %s",
                      (unsigned long long)fault->virtual_address, reasons);
}

hsa_status_t amdgpu_fault(const hsa_amd_event_t *event, void *symbols)
{
    bool ours = false;
    if (event->event_type != HSA_AMD_GPU_MEMORY_FAULT_EVENT) return HSA_STATUS_ERROR;
    lock_enter(&watch_lock);
    for (amdgpu_device_t *d = watched; d; d = d->next_watched) {
        if (d->hsa != symbols || !amdgpu_device_has(d, event->memory_fault.agent)) continue;
        amdgpu_device_fail(d, fault_status(&event->memory_fault));
        ours = true;
    }
    lock_leave(&watch_lock);
    return ours ? HSA_STATUS_SUCCESS : HSA_STATUS_ERROR;
}
