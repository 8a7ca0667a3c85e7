// SPDX-License-Identifier: Apache-2.0
#include "drivers/cuda/symbols.h"

#include <dlfcn.h>
#include <string.h>

#include "base/status.h"
#include "drivers/stream/api.h"
#include "kit/library.h"

enum { LEAST_VERSION = 12040 }; // CUDA 12.4: what the built-in kernels are written for

typedef CUresult (*get_address_fn)(const char *name, void **address, int version, uint64_t flags,
                                   int *found);

static keel_code_t code_of(CUresult result)
{
    switch (result) {
    case CUDA_ERROR_OUT_OF_MEMORY:
    case CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES: return KEEL_RESOURCE_EXHAUSTED;
    case CUDA_ERROR_NO_DEVICE:
    case CUDA_ERROR_INVALID_DEVICE:
    case CUDA_ERROR_NOT_FOUND: return KEEL_NOT_FOUND;
    case CUDA_ERROR_DEVICE_UNAVAILABLE: return KEEL_FAILED_PRECONDITION; // others have it alone
    case CUDA_ERROR_INVALID_VALUE:
    case CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED: return KEEL_INVALID_ARGUMENT;
    case CUDA_ERROR_INVALID_IMAGE:
    case CUDA_ERROR_INVALID_PTX:
    case CUDA_ERROR_INVALID_SOURCE: return KEEL_CORRUPT;
    case CUDA_ERROR_NO_BINARY_FOR_GPU:
    case CUDA_ERROR_JIT_COMPILER_NOT_FOUND:
    case CUDA_ERROR_UNSUPPORTED_PTX_VERSION:
    case CUDA_ERROR_NOT_SUPPORTED: return KEEL_UNSUPPORTED;
    case CUDA_ERROR_INVALID_HANDLE: // of what only Keel makes: another library has reset the device
    case CUDA_ERROR_INVALID_CONTEXT:
    case CUDA_ERROR_DEINITIALIZED:
    case CUDA_ERROR_ECC_UNCORRECTABLE:
    case CUDA_ERROR_NVLINK_UNCORRECTABLE:
    case CUDA_ERROR_CONTAINED:
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_CONTEXT_IS_DESTROYED:
    case CUDA_ERROR_ASSERT:
    case CUDA_ERROR_TENSOR_MEMORY_LEAK:
    case CUDA_ERROR_MPS_CLIENT_TERMINATED:
    case CUDA_ERROR_EXTERNAL_DEVICE:
    case CUDA_ERROR_UNKNOWN: return KEEL_DEVICE_LOST;
    default: break;
    }
    // The hardware's own exceptions lie side by side.
    bool fault = result >= CUDA_ERROR_HARDWARE_STACK_ERROR && result <= CUDA_ERROR_LAUNCH_FAILED;
    return fault ? KEEL_DEVICE_LOST : KEEL_INTERNAL;
}

keel_status_t cuda_status_make(const cuda_symbols_t *symbols, CUresult result, const char *call)
{
    if (result == CUDA_SUCCESS) return NULL;
    const char *name = NULL, *text = NULL;
    if (!symbols->cuGetErrorName || symbols->cuGetErrorName(result, &name) || !name) name = "?";
    if (!symbols->cuGetErrorString || symbols->cuGetErrorString(result, &text) || !text) text = "";
    return KEEL_ERROR(code_of(result), "%s returned %s (%d): %s", call, name, (int)result, text);
}

static keel_status_t symbols_fill(void *library, cuda_symbols_t *symbols)
{
    get_address_fn get_address = NULL;
    void *found = dlsym(library, "cuGetProcAddress_v2");
    if (!found)
        return KEEL_ERROR(KEEL_UNSUPPORTED, "it is no libcuda, or older than CUDA 12, and has no "
                                            "cuGetProcAddress_v2: update the NVIDIA driver");
    memcpy(&get_address, &found, sizeof found);
#define SYMBOL(name, version_, needs_, feature_, parameters)                                       \
    {                                                                                              \
        void *address = NULL;                                                                      \
        CUresult result =                                                                          \
            get_address(#name, &address, (version_), CU_GET_PROC_ADDRESS_LEGACY_STREAM, NULL);     \
        if (result == CUDA_SUCCESS) memcpy(&symbols->name, &address, sizeof address);              \
    }
#include "drivers/cuda/symbols.def"
#undef SYMBOL
    if (!symbols->cuDriverGetVersion)
        return KEEL_ERROR(KEEL_UNSUPPORTED, "libcuda has no cuDriverGetVersion");
    KEEL_TRY(CUDA_CALL(symbols, cuDriverGetVersion, &symbols->version));
    int version = symbols->version;
    if (version < LEAST_VERSION)
        return KEEL_ERROR(
            KEEL_UNSUPPORTED,
            "the NVIDIA driver is for CUDA %d.%d; %d.%d or newer is needed: update it",
            version / 1000, version % 1000 / 10, LEAST_VERSION / 1000, LEAST_VERSION % 1000 / 10);
#define SYMBOL(name, version_, needs_, feature_, parameters)                                       \
    if (!symbols->name && STREAM_##feature_ == STREAM_REQUIRED)                                    \
        return KEEL_ERROR(KEEL_UNSUPPORTED, "libcuda has no " #name " of version " #version_);     \
    if (!symbols->name) symbols->missing |= STREAM_##feature_;
#include "drivers/cuda/symbols.def"
#undef SYMBOL
    return NULL;
}

static keel_status_t library_fill(void *handle, void *table)
{
    cuda_symbols_t *symbols = table;
    KEEL_TRY(symbols_fill(handle, symbols));
    return library_started("the NVIDIA driver", CUDA_CALL(symbols, cuInit, 0));
}

keel_status_t cuda_symbols_open(const char *path, const cuda_symbols_t **symbols)
{
    static library_kind_t kind = {.name = "NVIDIA driver",
                                  .files = {"libcuda.so.1"},
                                  .size = sizeof(cuda_symbols_t),
                                  .fill = library_fill};
    const void *table = NULL;
    keel_status_t status = library_open(&kind, path, &table);
    *symbols = table;
    return status;
}
