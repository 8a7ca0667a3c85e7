// SPDX-License-Identifier: Apache-2.0
// cuGetProcAddress, and the names of errors.
#include "cuda/call.h"
#include "cuda/limits.h"
#include "cuda/variant.h"

#include <string.h>

typedef void (*function_t)(void);

static const struct {
    const char *name;
    int version;
    function_t function;
} symbols[] = {
#define SYMBOL(name, function, version, parameters) {#name, version, (function_t)function},
#include "cuda/symbols.def"
#undef SYMBOL
};

static CUresult symbol_find(const char *name, void **out, int version, cuuint64_t flags,
                            CUdriverProcAddressQueryResult *status)
{
    CUdriverProcAddressQueryResult found = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    if (!name || !out || version > settings()->version) return CUDA_ERROR_INVALID_VALUE;
    // There is one default stream per context that calls without a stream mean: the legacy one.
    if (flags & ~(cuuint64_t)CU_GET_PROC_ADDRESS_LEGACY_STREAM) return CUDA_ERROR_INVALID_VALUE;
    *out = NULL;
    if (symbol_is_missing(name)) version = 0;
    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
        if (strcmp(symbols[i].name, name) != 0) continue;
        if (symbols[i].version <= version) {
            memcpy(out, &symbols[i].function, sizeof *out);
            found = CU_GET_PROC_ADDRESS_SUCCESS;
        } else if (found == CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND) {
            found = CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT;
        }
    }
    if (status) *status = found;
    return found == CU_GET_PROC_ADDRESS_SUCCESS ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

CUresult cuGetProcAddress(const char *name, void **out, int version, cuuint64_t flags)
{
    CALL(CALL_BEFORE_INIT | CALL_UNCOUNTED);
    return symbol_find(name, out, version, flags, NULL);
}

CUresult cuGetProcAddress_v2(const char *name, void **out, int version, cuuint64_t flags,
                             CUdriverProcAddressQueryResult *status)
{
    CALL(CALL_BEFORE_INIT | CALL_UNCOUNTED);
    return symbol_find(name, out, version, flags, status);
}

#define ERROR(name, text) {name, #name, text}

static const struct {
    CUresult error;
    const char *name, *text;
} errors[] = {
    ERROR(CUDA_SUCCESS, "no error"),
    ERROR(CUDA_ERROR_INVALID_VALUE, "invalid argument"),
    ERROR(CUDA_ERROR_OUT_OF_MEMORY, "out of memory"),
    ERROR(CUDA_ERROR_NOT_INITIALIZED, "initialization error"),
    ERROR(CUDA_ERROR_DEINITIALIZED, "driver shutting down"),
    ERROR(CUDA_ERROR_DEVICE_UNAVAILABLE, "the device is busy or not available"),
    ERROR(CUDA_ERROR_NO_DEVICE, "no device was found"),
    ERROR(CUDA_ERROR_INVALID_DEVICE, "invalid device ordinal"),
    ERROR(CUDA_ERROR_INVALID_IMAGE, "the image of a module is invalid"),
    ERROR(CUDA_ERROR_INVALID_CONTEXT, "no valid context is current"),
    ERROR(CUDA_ERROR_NO_BINARY_FOR_GPU, "no image for this device"),
    ERROR(CUDA_ERROR_ECC_UNCORRECTABLE, "an uncorrectable memory error"),
    ERROR(CUDA_ERROR_UNSUPPORTED_LIMIT, "the limit is not supported"),
    ERROR(CUDA_ERROR_PEER_ACCESS_UNSUPPORTED, "peer access is not supported between these devices"),
    ERROR(CUDA_ERROR_INVALID_PTX, "the PTX is invalid"),
    ERROR(CUDA_ERROR_FILE_NOT_FOUND, "file not found"),
    ERROR(CUDA_ERROR_OPERATING_SYSTEM, "a call of the operating system failed"),
    ERROR(CUDA_ERROR_INVALID_HANDLE, "invalid handle"),
    ERROR(CUDA_ERROR_ILLEGAL_STATE, "the object is not in a state for this"),
    ERROR(CUDA_ERROR_NOT_FOUND, "the name was not found"),
    ERROR(CUDA_ERROR_NOT_READY, "not ready"),
    ERROR(CUDA_ERROR_ILLEGAL_ADDRESS, "an illegal memory access was encountered"),
    ERROR(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, "too many resources requested for launch"),
    ERROR(CUDA_ERROR_LAUNCH_TIMEOUT, "the launch took too long"),
    ERROR(CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED, "peer access is already enabled"),
    ERROR(CUDA_ERROR_PEER_ACCESS_NOT_ENABLED, "peer access is not enabled"),
    ERROR(CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE, "the primary context is active"),
    ERROR(CUDA_ERROR_CONTEXT_IS_DESTROYED, "the context is destroyed"),
    ERROR(CUDA_ERROR_ASSERT, "an assertion of device code failed"),
    ERROR(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, "the memory is registered already"),
    ERROR(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, "the memory is not registered"),
    ERROR(CUDA_ERROR_HARDWARE_STACK_ERROR, "an error in the call stack of device code"),
    ERROR(CUDA_ERROR_ILLEGAL_INSTRUCTION, "an illegal instruction was encountered"),
    ERROR(CUDA_ERROR_MISALIGNED_ADDRESS, "misaligned address"),
    ERROR(CUDA_ERROR_LAUNCH_FAILED, "unspecified launch failure"),
    ERROR(CUDA_ERROR_NOT_PERMITTED, "the operation is not permitted"),
    ERROR(CUDA_ERROR_NOT_SUPPORTED, "the operation is not supported"),
    ERROR(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "not while a stream is captured"),
    ERROR(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED,
          "a call that captures do not allow spoilt this one"),
    ERROR(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, "the executable graph cannot be updated so"),
    ERROR(CUDA_ERROR_UNKNOWN, "unknown error"),
};

static CUresult error_find(CUresult error, const char **out, bool name)
{
    if (!out) return CUDA_ERROR_INVALID_VALUE;
    *out = NULL;
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
        if (errors[i].error == error) *out = name ? errors[i].name : errors[i].text;
    }
    return *out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGetErrorName(CUresult error, const char **out)
{
    CALL(CALL_BEFORE_INIT | CALL_UNCOUNTED);
    return error_find(error, out, true);
}

CUresult cuGetErrorString(CUresult error, const char **out)
{
    CALL(CALL_BEFORE_INIT | CALL_UNCOUNTED);
    return error_find(error, out, false);
}
