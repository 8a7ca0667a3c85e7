// SPDX-License-Identifier: Apache-2.0
#include "drivers/amdgpu/host/base/symbols.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/status.h"
#include "drivers/amdgpu/host/base/device.h"
#include "kit/library.h"

static keel_code_t code_of(hsa_status_t result)
{
    switch ((int)result) {
    case HSA_STATUS_ERROR_INVALID_ALLOCATION:
    case HSA_STATUS_ERROR_OUT_OF_RESOURCES: return KEEL_RESOURCE_EXHAUSTED;
    case HSA_STATUS_ERROR_INVALID_ARGUMENT: return KEEL_INVALID_ARGUMENT;
    case HSA_STATUS_ERROR_INVALID_SYMBOL_NAME:
    case HSA_STATUS_ERROR_VARIABLE_UNDEFINED: return KEEL_NOT_FOUND;
    case HSA_STATUS_ERROR_INVALID_CODE_OBJECT:
    case HSA_STATUS_ERROR_INVALID_CODE_OBJECT_READER: return KEEL_CORRUPT;
    case HSA_STATUS_ERROR_INVALID_ISA:
    case HSA_STATUS_ERROR_INVALID_ISA_NAME:
    case HSA_STATUS_ERROR_INCOMPATIBLE_ARGUMENTS: return KEEL_UNSUPPORTED;
    case HSA_STATUS_ERROR_EXCEPTION:
    case HSA_STATUS_ERROR_MEMORY_APERTURE_VIOLATION:
    case HSA_STATUS_ERROR_ILLEGAL_INSTRUCTION:
    case HSA_STATUS_ERROR_MEMORY_FAULT: return KEEL_DEVICE_LOST;
    default: return KEEL_INTERNAL;
    }
}

keel_status_t hsa_status_make(const hsa_symbols_t *symbols, hsa_status_t result, const char *call)
{
    const char *text = NULL;
    symbols->hsa_status_string(result, &text);
    return KEEL_ERROR(code_of(result), "%s returned 0x%x: %s", call, (unsigned)result,
                      text ? text : "?");
}

static keel_status_t symbols_find(void *library, hsa_symbols_t *symbols)
{
    void *found;
#define SYMBOL(type, name, parameters)                                                             \
    found = dlsym(library, #name);                                                                 \
    if (!found) return KEEL_ERROR(KEEL_UNSUPPORTED, "libhsa-runtime64 has no " #name);             \
    memcpy(&symbols->name, &found, sizeof found);
#define OPTIONAL(type, name, parameters)                                                           \
    found = dlsym(library, #name);                                                                 \
    memcpy(&symbols->name, &found, sizeof found);
#include "drivers/amdgpu/host/base/symbols.def"
#undef OPTIONAL
#undef SYMBOL
    return NULL;
}

static keel_status_t version_read(hsa_symbols_t *symbols)
{
    uint16_t major = 0, minor = 0;
    KEEL_TRY(HSA_CALL(symbols, hsa_system_get_info, HSA_SYSTEM_INFO_VERSION_MAJOR, &major));
    KEEL_TRY(HSA_CALL(symbols, hsa_system_get_info, HSA_SYSTEM_INFO_VERSION_MINOR, &minor));
    symbols->version = (uint32_t)major << 16 | minor;
    return NULL;
}

// The runtime may know how, and the kernel not.
static void exports_ask(hsa_symbols_t *symbols)
{
    bool able = false;
    if (!symbols->hsa_amd_portable_export_dmabuf || !symbols->hsa_amd_portable_close_dmabuf) return;
    symbols->hsa_system_get_info(HSA_AMD_SYSTEM_INFO_DMABUF_SUPPORTED, &able);
    symbols->exports = able;
}

// Old releases take one handler in a process, which another library may have brought.
static void faults_watch(hsa_symbols_t *symbols)
{
    keel_status_t status =
        HSA_CALL(symbols, hsa_amd_register_system_event_handler, amdgpu_fault, symbols);
    symbols->tells_faults = !status;
    if (status)
        log_say(KEEL_LOG_WARNING, "a memory fault of a GPU will end the process: %s",
                keel_status_message(status));
    keel_status_release(status);
}

// Without a GPU, or without the right to use it, hsa_init lacks resources.
static keel_status_t library_fill(void *handle, void *table)
{
    hsa_symbols_t *symbols = table;
    KEEL_TRY(symbols_find(handle, symbols));
    keel_status_t status = HSA_CALL(symbols, hsa_init);
    if (keel_status_code(status) == KEEL_RESOURCE_EXHAUSTED)
        status = status_as(status, KEEL_NOT_FOUND);
    if (!status) status = version_read(symbols);
    if (!status) exports_ask(symbols);
    const char *rings = getenv("HSA_ALLOCATE_QUEUE_DEV_MEM"); // as ROCm reads it, from 6.4 on
    symbols->rings_local = rings && !strcmp(rings, "1");
    if (!status) faults_watch(symbols);
    return library_started("ROCm", status);
}

keel_status_t hsa_symbols_open(const char *path, const hsa_symbols_t **symbols)
{
    static library_kind_t kind = {
        .name = "ROCm's runtime",
        .files = {"libhsa-runtime64.so.1"},
        .size = sizeof(hsa_symbols_t),
        .fill = library_fill,
    };
    const void *table = NULL;
    keel_status_t status = library_open(&kind, path, &table);
    *symbols = table;
    return status;
}
