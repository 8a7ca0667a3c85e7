// SPDX-License-Identifier: Apache-2.0
// Finding and opening devices.
#include <keel/driver/driver.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/lock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/status.h"
#include "drivers/cuda/cuda.h"
#include "drivers/stream/stream.h"

enum { ID_SIZE = 64 };

static keel_status_t device_uuid(const cuda_symbols_t *symbols, CUdevice device, char *text)
{
    CUuuid uuid;
    KEEL_TRY(CUDA_CALL(symbols, cuDeviceGetUuid, &uuid, device));
    size_t at = 0;
    for (int i = 0; i < 16; i++) {
        bool dash = i == 4 || i == 6 || i == 8 || i == 10;
        at += (size_t)snprintf(text + at, ID_SIZE - at, "%s%02x", dash ? "-" : "",
                               (unsigned char)uuid.bytes[i]);
    }
    return NULL;
}

static keel_status_t device_describe(const cuda_symbols_t *symbols, int ordinal,
                                     keel_device_info_t *info)
{
    CUdevice device;
    size_t memory = 0;
    char name[80] = "";
    KEEL_TRY(CUDA_CALL(symbols, cuDeviceGet, &device, ordinal));
    KEEL_TRY(CUDA_CALL(symbols, cuDeviceGetName, name, sizeof name, device));
    KEEL_TRY(CUDA_CALL(symbols, cuDeviceTotalMem, &memory, device));
    snprintf(info->uri, sizeof info->uri, "cuda://%d", ordinal);
    snprintf(info->name, sizeof info->name, "%s, %llu GiB", name,
             (unsigned long long)(memory >> 30));
    return NULL;
}

static keel_status_t cuda_list(keel_device_info_t *devices, size_t capacity, size_t *count)
{
    const cuda_symbols_t *symbols;
    int found = 0;
    *count = 0;
    keel_status_t status = cuda_symbols_open(NULL, &symbols);
    if (!status) status = CUDA_CALL(symbols, cuDeviceGetCount, &found);
    for (int i = 0; !status && i < found && (size_t)i < capacity; i++)
        status = device_describe(symbols, i, &devices[i]);
    // No driver, or none that works: no devices. Opening one says why.
    if (status)
        log_say(KEEL_LOG_INFO, "there are no CUDA devices: %s", keel_status_message(status));
    else
        *count = (size_t)found;
    keel_status_release(status);
    return NULL;
}

// By UUID, of a GPU or a part of one, or PCI address, which has more zeros before it in nvidia-smi.
static keel_status_t device_is(const cuda_symbols_t *symbols, CUdevice device, const char *which,
                               bool *is)
{
    char text[ID_SIZE];
    KEEL_TRY(device_uuid(symbols, device, text));
    bool uuid = strncasecmp(which, "GPU-", 4) == 0 || strncasecmp(which, "MIG-", 4) == 0;
    *is = uuid && strcasecmp(text, which + 4) == 0;
    KEEL_TRY(CUDA_CALL(symbols, cuDeviceGetPCIBusId, text, sizeof text, device));
    *is = *is || strcasecmp(text + strspn(text, "0"), which + strspn(which, "0")) == 0;
    return NULL;
}

static keel_status_t device_find(const cuda_symbols_t *symbols, const char *which, int *ordinal)
{
    int count = 0;
    KEEL_TRY(CUDA_CALL(symbols, cuDeviceGetCount, &count));
    bool is_number = !which[strspn(which, "0123456789")]; // nothing at all is 0
    long number = is_number ? strtol(which, NULL, 10) : -1;
    if (number >= 0 && number < count) {
        *ordinal = (int)number;
        return NULL;
    }
    for (int i = 0; number < 0 && i < count; i++) {
        CUdevice device;
        bool is;
        KEEL_TRY(CUDA_CALL(symbols, cuDeviceGet, &device, i));
        KEEL_TRY(device_is(symbols, device, which, &is));
        if (!is) continue;
        *ordinal = i;
        return NULL;
    }
    return KEEL_ERROR(KEEL_NOT_FOUND,
                      "there is no cuda://%s; there are 0 to %d, by number, UUID (GPU-...) or PCI "
                      "address (0000:01:00.0)",
                      which, count - 1);
}

static keel_status_t attribute(const stream_vendor_t *v, CUdevice_attribute name, uint32_t *value)
{
    return CUDA_CALL(v->symbols, cuDeviceGetAttribute, (int *)value, name, v->device);
}

static keel_status_t limits_read(stream_vendor_t *v, stream_limits_t *limits)
{
    uint32_t major, minor;
    size_t memory = 0;
    KEEL_TRY(CUDA_CALL(v->symbols, cuDeviceGetName, limits->name, sizeof limits->name, v->device));
    KEEL_TRY(CUDA_CALL(v->symbols, cuDeviceTotalMem, &memory, v->device));
    KEEL_TRY(attribute(v, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, &limits->processors));
    KEEL_TRY(attribute(v, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, &limits->max_group_size));
    KEEL_TRY(attribute(v, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, &limits->max_group_sizes[0]));
    KEEL_TRY(attribute(v, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, &limits->max_group_sizes[1]));
    KEEL_TRY(attribute(v, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, &limits->max_group_sizes[2]));
    KEEL_TRY(attribute(v, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN,
                       &limits->max_local_memory));
    KEEL_TRY(attribute(v, CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, &limits->has_managed));
    KEEL_TRY(attribute(v, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, &limits->has_pools));
    KEEL_TRY(attribute(v, CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED,
                       &limits->has_shared));
    KEEL_TRY(attribute(v, CU_DEVICE_ATTRIBUTE_TIMELINE_SEMAPHORE_INTEROP_SUPPORTED,
                       &limits->has_outside));
    KEEL_TRY(attribute(v, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, &major));
    KEEL_TRY(attribute(v, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, &minor));
    v->architecture = (int)(major * 10 + minor);
    snprintf(limits->target, sizeof limits->target, "nvptx:sm_%d", v->architecture);
    limits->max_groups[0] = INT32_MAX;
    limits->max_groups[1] = limits->max_groups[2] = UINT16_MAX;
    limits->max_arguments = 32764; // since CUDA 12.1, on all that can run the built-in kernels
    limits->max_pending = 896;     // launching blocks at 1021 pending launches (measured)
    limits->memory = memory;
    // kDLCUDA, kDLCUDAHost, kDLCUDAManaged
    limits->dlpack = (device_dlpack_t){v->device, 2, 3, limits->has_managed ? 13 : 0};
    return NULL;
}

static const stream_api_t *cuda_api(void)
{
    static lock_t lock;
    static stream_api_t api;
    lock_enter(&lock);
    if (!api.driver) {
        cuda_fill_memory(&api);
        cuda_fill_graph(&api);
        cuda_fill_device(&api);
    }
    lock_leave(&lock);
    return &api;
}

static keel_status_t vendor_init(stream_vendor_t *v, const stream_options_t *options, int ordinal,
                                 stream_limits_t *limits)
{
    CUdevice its = 0;
    CUcontext other = NULL;
    stream_before_t before;
    KEEL_TRY(CUDA_CALL(v->symbols, cuDeviceGet, &v->device, ordinal));
    KEEL_TRY(limits_read(v, limits));
    v->context = options->context;
    v->adopted = v->context != NULL; // else the device's primary one, which all libraries share
    if (!v->adopted)
        KEEL_TRY(CUDA_CALL(v->symbols, cuDevicePrimaryCtxRetain, &v->context, v->device));
    v->implicit = options->adopted == CU_STREAM_LEGACY;
    cuda_api()->enter(v, &before);
    keel_status_t status = CUDA_CALL(v->symbols, cuCtxGetDevice, &its);
    if (!status && its != v->device)
        status = KEEL_ERROR(KEEL_INVALID_ARGUMENT, "option context is a context of device %d", its);
    if (!status && options->adopted == CU_STREAM_PER_THREAD)
        status = KEEL_ERROR(KEEL_INVALID_ARGUMENT,
                            "option stream is the default stream of each thread, another one for "
                            "each; give a stream that you made, or the legacy one (0x1)");
    if (!status && options->adopted)
        status = CUDA_CALL(v->symbols, cuStreamGetCtx, options->adopted, &other);
    if (!status && other && other != v->context)
        status = KEEL_ERROR(KEEL_INVALID_ARGUMENT, "option stream is a stream of another context; "
                                                   "give context=0x... as well, which it is of");
    if (!status)
        status =
            CUDA_CALL(v->symbols, cuCtxGetStreamPriorityRange, &limits->least, &limits->greatest);
    cuda_api()->leave(&before);
    return status;
}

static keel_status_t cuda_open(const keel_uri_t *uri, keel_device_t **device)
{
    stream_options_t options;
    const cuda_symbols_t *symbols;
    int ordinal = 0;
    KEEL_TRY(stream_options_parse(uri, &options));
    KEEL_TRY(cuda_symbols_open(options.library, &symbols));
    KEEL_TRY(device_find(symbols, uri->which, &ordinal));
    stream_vendor_t *v = mem_zalloc(sizeof *v);
    if (!v) return status_no_memory();
    v->symbols = symbols;
    stream_limits_t limits = {0};
    keel_status_t status = vendor_init(v, &options, ordinal, &limits);
    if (status) {
        cuda_api()->close(v);
        // What is the caller's and not alive is no device lost.
        bool lost = keel_status_code(status) == KEEL_DEVICE_LOST;
        return lost && (options.context || options.adopted)
                   ? status_as(status, KEEL_INVALID_ARGUMENT)
                   : status;
    }
    KEEL_TRY(stream_device_create(cuda_api(), v, &limits, &options, device));
    log_say(KEEL_LOG_INFO, "cuda://%d: %s, %s, driver for CUDA %d.%d", ordinal, limits.name,
            limits.target, symbols->version / 1000, symbols->version % 1000 / 10);
    return NULL;
}

const keel_driver_t cuda_driver = {.name = "cuda", .list = cuda_list, .open = cuda_open};
