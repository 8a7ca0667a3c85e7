// SPDX-License-Identifier: Apache-2.0
// Memory of the application, which is locked (kit/pages.h). The GPU sees it at another address, or
// at the host's own where the kernel can (SVM): of that memory HSA knows nothing any more, nor has
// it to be unlocked.
#include "base/status.h"
#include "drivers/amdgpu/host/memory/memory.h"

// All agents may use it then: another device of this driver asks for it no more.
static keel_status_t pages_register(const pages_user_t *user, void *data, uint64_t size,
                                    bool written, uint64_t *address, bool *already)
{
    const hsa_symbols_t *hsa = user->driver;
    hsa_amd_pointer_info_t info;
    void *locked = NULL;
    (void)written;
    KEEL_TRY(amdgpu_pointer_ask(hsa, data, &info));
    *already = info.type != HSA_EXT_POINTER_TYPE_UNKNOWN;
    // What HSA has allocated may be for other GPUs alone.
    if (info.type == HSA_EXT_POINTER_TYPE_HSA)
        return amdgpu_access_add(user->vendor, (uintptr_t)data);
    if (*already) return NULL;
    keel_status_t status = HSA_CALL(hsa, hsa_amd_memory_lock, data, size, NULL, 0, &locked);
    *address = (uintptr_t)locked;
    // HSA has no word for memory that is not there.
    return keel_status_code(status) == KEEL_INTERNAL ? status_as(status, KEEL_INVALID_ARGUMENT)
                                                     : status;
}

static keel_status_t pages_address(const pages_user_t *user, void *data, uint64_t *address)
{
    hsa_amd_pointer_info_t info;
    KEEL_TRY(amdgpu_pointer_ask(user->driver, data, &info));
    if (info.type == HSA_EXT_POINTER_TYPE_UNKNOWN)
        return KEEL_ERROR(KEEL_INVALID_ARGUMENT, "the memory at %p is not locked", data);
    *address = (uint64_t)(uintptr_t)info.agentBaseAddress +
               (uint64_t)((char *)data - (char *)info.hostBaseAddress);
    return NULL;
}

static void pages_unregister(const pages_user_t *user, void *data)
{
    ((const hsa_symbols_t *)user->driver)->hsa_amd_memory_unlock(data);
}

static void vendor_close(const pages_user_t *user)
{
    (void)user; // HSA keeps no device open
}

const pages_ops_t amdgpu_pages_ops = {pages_register, pages_address, pages_unregister,
                                      vendor_close};
