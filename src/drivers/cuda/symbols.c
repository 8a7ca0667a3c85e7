// SPDX-License-Identifier: Apache-2.0
#include "drivers/cuda/symbols.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "base/fork.h"
#include "base/lock.h"
#include "base/status.h"

enum { LEAST_VERSION = 12040 }; // CUDA 12.4: graphs with conditions and updatable nodes

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
    case CUDA_ERROR_INVALID_VALUE:
    case CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED: return KEEL_INVALID_ARGUMENT;
    case CUDA_ERROR_INVALID_IMAGE:
    case CUDA_ERROR_INVALID_PTX:
    case CUDA_ERROR_INVALID_SOURCE: return KEEL_CORRUPT;
    case CUDA_ERROR_NO_BINARY_FOR_GPU:
    case CUDA_ERROR_JIT_COMPILER_NOT_FOUND:
    case CUDA_ERROR_UNSUPPORTED_PTX_VERSION:
    case CUDA_ERROR_NOT_SUPPORTED: return KEEL_UNSUPPORTED;
    case CUDA_ERROR_INVALID_HANDLE: // of what only Keel makes: somebody has reset the device
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

static keel_status_t too_old(int version)
{
    return KEEL_ERROR(KEEL_UNSUPPORTED,
                      "the NVIDIA driver is for CUDA %d.%d; %d.%d or newer is needed: update it",
                      version / 1000, version % 1000 / 10, LEAST_VERSION / 1000,
                      LEAST_VERSION % 1000 / 10);
}

static keel_status_t symbols_fill(cuda_symbols_t *symbols)
{
    get_address_fn get_address = NULL;
    void *found = dlsym(symbols->library, "cuGetProcAddress_v2");
    if (!found)
        return KEEL_ERROR(KEEL_UNSUPPORTED, "libcuda has no cuGetProcAddress_v2: the NVIDIA driver "
                                            "is older than CUDA 12; update it");
    memcpy(&get_address, &found, sizeof found);
#define SYMBOL(name, version_, parameters)                                                         \
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
    if (symbols->version < LEAST_VERSION) return too_old(symbols->version);
#define SYMBOL(name, version_, parameters)                                                         \
    if (!symbols->name)                                                                            \
        return KEEL_ERROR(KEEL_UNSUPPORTED, "libcuda has no " #name " of version " #version_);
#include "drivers/cuda/symbols.def"
#undef SYMBOL
    return NULL;
}

static keel_status_t library_open(const char *path, void **library)
{
    *library = dlopen(path ? path : "libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (*library) return NULL;
    return KEEL_ERROR(KEEL_NOT_FOUND, "no NVIDIA driver can be opened here: %s", dlerror());
}

// A library that was opened. libcuda keeps threads and state of the process, so it stays: memory of
// the C library's, which does not count as this library's.
typedef struct opened_t {
    struct opened_t *next;
    cuda_symbols_t symbols;
    bool is_default;
    uint32_t generation; // of fork
    char path[];
} opened_t;

static lock_t opened_lock;
static opened_t *opened_list;

static void opened_discard(opened_t *opened)
{
    if (opened->symbols.library) dlclose(opened->symbols.library);
    free(opened);
}

static keel_status_t opened_create(const char *path, opened_t **made)
{
    size_t size = path ? strlen(path) + 1 : 1;
    opened_t *opened = calloc(1, sizeof *opened + size);
    if (!opened) return status_no_memory();
    cuda_symbols_t *symbols = &opened->symbols;
    opened->is_default = !path;
    opened->generation = fork_generation();
    if (path) memcpy(opened->path, path, size);
    keel_status_t status = library_open(path, &symbols->library);
    if (!status) status = symbols_fill(symbols);
    if (!status) status = CUDA_CALL(symbols, cuInit, 0);
    if (keel_status_code(status) == KEEL_NOT_FOUND && symbols->cuInit)
        status = keel_status_wrap(status, "the NVIDIA driver is here, but no GPU is");
    if (status) {
        opened_discard(opened);
        return status;
    }
    *made = opened;
    return NULL;
}

// The one of that path; if there is none, `made` from now on.
static opened_t *opened_find(const char *path, opened_t *made)
{
    lock_enter(&opened_lock);
    opened_t *opened = opened_list;
    while (opened &&
           (path ? opened->is_default || strcmp(opened->path, path) != 0 : !opened->is_default))
        opened = opened->next;
    if (!opened && made) {
        made->next = opened_list;
        opened_list = opened = made;
    }
    lock_leave(&opened_lock);
    return opened;
}

keel_status_t cuda_symbols_open(const char *path, const cuda_symbols_t **symbols)
{
    keel_status_t status = NULL;
    opened_t *opened = opened_find(path, NULL), *made = NULL;
    *symbols = NULL;
    if (!opened) {
        // It may take seconds, for which nobody waits who has another one.
        KEEL_TRY(opened_create(path, &made));
        opened = opened_find(path, made);
        if (opened != made) opened_discard(made);
    }
    if (!fork_is_ours(opened->generation))
        status = KEEL_ERROR(KEEL_UNSUPPORTED,
                            "this process was forked from one that used CUDA, which then works in "
                            "that one alone; fork before, or exec");
    if (!status) *symbols = &opened->symbols;
    return status;
}
