// SPDX-License-Identifier: Apache-2.0
#include "drivers/hip/symbols.h"

#include <dlfcn.h>
#include <string.h>

#include "base/status.h"
#include "drivers/hip/releases.h"
#include "drivers/stream/api.h"
#include "kit/library.h"

static keel_code_t code_of(hipError_t result)
{
    switch (result) {
    case hipErrorOutOfMemory:
    case hipErrorLaunchOutOfResources: return KEEL_RESOURCE_EXHAUSTED;
    case hipErrorNoDevice:
    case hipErrorInvalidDevice:
    case hipErrorNotFound: return KEEL_NOT_FOUND;
    case hipErrorInvalidValue:
    case hipErrorInvalidConfiguration:
    case hipErrorInvalidDevicePointer:
    case hipErrorHostMemoryAlreadyRegistered: return KEEL_INVALID_ARGUMENT;
    case hipErrorInvalidImage: return KEEL_CORRUPT;
    case hipErrorNoBinaryForGpu:
    case hipErrorSharedObjectInitFailed: // a code object of a version that came later
    case hipErrorNotSupported: return KEEL_UNSUPPORTED;
    case hipErrorInvalidKernelFile: // an instruction that the GPU does not know
    case hipErrorInvalidSource:
    case hipErrorInvalidHandle: // of what only Keel makes: another library has reset the device
    case hipErrorInvalidContext:
    case hipErrorNotInitialized:
    case hipErrorDeinitialized:
    case hipErrorECCNotCorrectable:
    case hipErrorIllegalAddress:
    case hipErrorLaunchTimeOut:
    case hipErrorContextIsDestroyed:
    case hipErrorAssert:
    case hipErrorLaunchFailure:
    case hipErrorUnknown:
    case hipErrorRuntimeMemory:
    case hipErrorRuntimeOther: return KEEL_DEVICE_LOST;
    default: return KEEL_INTERNAL;
    }
}

static keel_status_t status_for(const hip_symbols_t *symbols, hipError_t result, keel_code_t code,
                                const char *call)
{
    const char *name = symbols->hipGetErrorName(result), *text = symbols->hipGetErrorString(result);
    (void)symbols->hipGetLastError();
    return KEEL_ERROR(code, "%s returned %s (%d): %s", call, name ? name : "?", (int)result,
                      text ? text : "");
}

keel_status_t hip_status_make(const hip_symbols_t *symbols, hipError_t result, const char *call)
{
    return result == hipSuccess ? NULL : status_for(symbols, result, code_of(result), call);
}

keel_status_t hip_status_entered(const hip_symbols_t *symbols, hipError_t result, const char *call)
{
    keel_code_t code = code_of(result);
    bool absent = code == KEEL_NOT_FOUND || code == KEEL_RESOURCE_EXHAUSTED;
    if (result == hipSuccess) return NULL;
    return status_for(symbols, result, absent ? code : KEEL_DEVICE_LOST, call);
}

// What the releases do not share: which function describes a device.
static keel_status_t release_fill(void *library, hip_symbols_t *symbols)
{
    KEEL_TRY(HIP_CALL(symbols, hipRuntimeGetVersion, &symbols->version));
    int version = symbols->version;
    symbols->release = hip_release_find(version);
    if (!symbols->release)
        return KEEL_ERROR(KEEL_UNSUPPORTED, "it is HIP %d.%d; 5.2 or newer is needed: update ROCm",
                          version / 10000000, version / 100000 % 100);
    const char *name = symbols->release->properties.function;
    void *found = dlsym(library, name);
    if (!found) return KEEL_ERROR(KEEL_UNSUPPORTED, "libamdhip64 has no %s", name);
    memcpy(&symbols->properties, &found, sizeof found);
    found = dlsym(library, "hsa_amd_pointer_info");
    memcpy(&symbols->origin, &found, sizeof found);
    return NULL;
}

// By dlsym: the library's own hipGetProcAddress may open another HIP.
static keel_status_t symbols_fill(void *library, hip_symbols_t *symbols)
{
    void *found;
#define SYMBOL(type, name, feature_, parameters)                                                   \
    found = dlsym(library, #name);                                                                 \
    if (!found && STREAM_##feature_ == STREAM_REQUIRED)                                            \
        return KEEL_ERROR(KEEL_UNSUPPORTED, "libamdhip64 has no " #name);                          \
    if (!found) symbols->missing |= STREAM_##feature_;                                             \
    memcpy(&symbols->name, &found, sizeof found);
#include "drivers/hip/symbols.def"
#undef SYMBOL
    return release_fill(library, symbols);
}

static keel_status_t library_fill(void *handle, void *table)
{
    hip_symbols_t *symbols = table;
    KEEL_TRY(symbols_fill(handle, symbols));
    return library_started("ROCm", HIP_CALL(symbols, hipInit, 0));
}

keel_status_t hip_symbols_open(const char *path, const hip_symbols_t **symbols)
{
    static library_kind_t kind = {
        .name = "HIP",
        .files = {"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5"},
        .size = sizeof(hip_symbols_t),
        .fill = library_fill,
    };
    const void *table = NULL;
    keel_status_t status = library_open(&kind, path, &table);
    *symbols = table;
    return status;
}
