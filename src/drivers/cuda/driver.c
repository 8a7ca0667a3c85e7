// SPDX-License-Identifier: Apache-2.0
// Finding and opening devices.
#include <keel/driver/driver.h>

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/status.h"
#include "drivers/cuda/cuda.h"
#include "drivers/stream/stream.h"
#include "kit/gpus.h"

static keel_status_t gpu_count(const void *symbols, int *count)
{
    return CUDA_CALL((const cuda_symbols_t *)symbols, cuDeviceGetCount, count);
}

static keel_status_t gpu_describe(const void *library, int ordinal, char name[GPU_TEXT],
                                  uint64_t *memory)
{
    const cuda_symbols_t *symbols = library;
    CUdevice device;
    size_t bytes = 0;
    KEEL_TRY(CUDA_CALL(symbols, cuDeviceGet, &device, ordinal));
    KEEL_TRY(CUDA_CALL(symbols, cuDeviceGetName, name, GPU_TEXT, device));
    keel_status_t status = CUDA_CALL(symbols, cuDeviceTotalMem, &bytes, device);
    *memory = bytes;
    return status;
}

// UUIDs are those of GPUs, and of parts of them.
static keel_status_t gpu_names(const void *library, int ordinal, gpu_names_t *names)
{
    const cuda_symbols_t *symbols = library;
    CUdevice device;
    CUuuid uuid;
    KEEL_TRY(CUDA_CALL(symbols, cuDeviceGet, &device, ordinal));
    KEEL_TRY(CUDA_CALL(symbols, cuDeviceGetUuid, &uuid, device));
    gpu_uuid_print(uuid.bytes, names->uuid);
    return CUDA_CALL(symbols, cuDeviceGetPCIBusId, names->address, GPU_TEXT, device);
}

static const gpus_t gpus = {"cuda", gpu_count, gpu_describe, gpu_names};

static keel_status_t cuda_list(keel_device_listing_t *devices, size_t capacity, size_t *count)
{
    const cuda_symbols_t *symbols = NULL;
    keel_status_t opened = cuda_symbols_open(NULL, &symbols);
    return gpus_list(&gpus, opened, symbols, devices, capacity, count);
}

static keel_status_t attribute(const stream_vendor_t *v, CUdevice_attribute name, uint32_t *value)
{
    return CUDA_CALL(v->symbols, cuDeviceGetAttribute, (int *)value, name, v->device);
}

// What the library has, and the device as well.
static keel_status_t features_read(const stream_vendor_t *v, uint32_t *features)
{
    static const struct {
        CUdevice_attribute attribute;
        uint32_t feature;
    } asked[] = {
        {CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, STREAM_MANAGED},
        {CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, STREAM_POOLS},
        {CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, STREAM_SHARED},
        {CU_DEVICE_ATTRIBUTE_TIMELINE_SEMAPHORE_INTEROP_SUPPORTED, STREAM_OUTSIDE},
    };
    *features = STREAM_GRAPHS | STREAM_CONDITIONS | STREAM_UPDATABLE | STREAM_UPLOAD |
                STREAM_ARGUMENTS | STREAM_PEERS;
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
        uint32_t has = 0;
        KEEL_TRY(attribute(v, asked[i].attribute, &has));
        if (has) *features |= asked[i].feature;
    }
    *features &= ~v->symbols->missing;
    if (!(*features & STREAM_UPLOAD)) *features &= ~(uint32_t)STREAM_UPDATABLE;
    if (!(*features & STREAM_GRAPHS))
        *features &= ~(uint32_t)(STREAM_CONDITIONS | STREAM_UPDATABLE | STREAM_UPLOAD);
    return NULL;
}

// Measured on an H200 with driver 580.159.04; docs/hardware.md has the figures.
// What was measured is in docs/hardware.md: "Executable graphs", "Changing many arguments" and
// "Other observations".
static const stream_quirks_t quirks = {
    .pending = 896,            // below the number of launches after which one blocks
    .launch_graphs = 32,       // a graph of one kernel costs less than a launch
    .graph_room = 32,          // about as many as CUDA has room for at first
    .small_transfer = 1 << 16, // a kernel in such a graph costs less than a fill or a copy
    .rebind_least = 128,       // below that the host is as fast
    .graph_waits = true,
    .locks_pages = true,
    .free_waits = true,
    .host_copies_wait = true,
    .pool_lags = true,
};

static keel_status_t info_read(const stream_vendor_t *v, keel_device_info_t *info)
{
    CUuuid uuid;
    KEEL_TRY(
        CUDA_CALL(v->symbols, cuDeviceGetName, info->hardware, sizeof info->hardware, v->device));
    KEEL_TRY(CUDA_CALL(v->symbols, cuDeviceGetPCIBusId, info->pci, sizeof info->pci, v->device));
    KEEL_TRY(CUDA_CALL(v->symbols, cuDeviceGetUuid, &uuid, v->device));
    memcpy(info->uuid, uuid.bytes, sizeof info->uuid);
    info->has_uuid = true;
    for (char *c = info->pci; *c; c++) *c = (char)tolower((unsigned char)*c);
    snprintf(info->vendor, sizeof info->vendor, "NVIDIA");
    snprintf(info->target, sizeof info->target, "nvptx:sm_%d", v->architecture);
    snprintf(info->api, sizeof info->api, "CUDA %d.%d", v->symbols->version / 1000,
             v->symbols->version % 1000 / 10);
    device_info_add_pci(info, PCI_NVIDIA);
    return NULL;
}

static keel_status_t limits_read(stream_vendor_t *v, stream_limits_t *limits)
{
    uint32_t major, minor;
    size_t memory = 0;
    KEEL_TRY(CUDA_CALL(v->symbols, cuDeviceTotalMem, &memory, v->device));
    KEEL_TRY(attribute(v, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, &limits->processors));
    KEEL_TRY(attribute(v, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, &limits->max_group_size));
    KEEL_TRY(attribute(v, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, &limits->max_group_sizes[0]));
    KEEL_TRY(attribute(v, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, &limits->max_group_sizes[1]));
    KEEL_TRY(attribute(v, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, &limits->max_group_sizes[2]));
    KEEL_TRY(attribute(v, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, &limits->max_group_counts[0]));
    KEEL_TRY(attribute(v, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, &limits->max_group_counts[1]));
    KEEL_TRY(attribute(v, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, &limits->max_group_counts[2]));
    KEEL_TRY(attribute(v, CU_DEVICE_ATTRIBUTE_WARP_SIZE, &limits->subgroup_size));
    KEEL_TRY(attribute(v, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN,
                       &limits->max_local_memory));
    KEEL_TRY(features_read(v, &limits->features));
    KEEL_TRY(attribute(v, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, &major));
    KEEL_TRY(attribute(v, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, &minor));
    v->architecture = (int)(major * 10 + minor);
    KEEL_TRY(info_read(v, &limits->info));
    limits->max_arguments = 32764; // since CUDA 12.1, on all that can run the built-in kernels
    limits->memory = memory;
    limits->quirks = quirks;
    // kDLCUDA, kDLCUDAHost, kDLCUDAManaged
    limits->dlpack = (device_dlpack_t){v->device, 2, 3, limits->features & STREAM_MANAGED ? 13 : 0};
    return NULL;
}

static const stream_api_t *cuda_api(void)
{
    static stream_api_t api;
    static stream_fill_t *const fills[] = {cuda_fill_memory, cuda_fill_graph, cuda_fill_device,
                                           NULL};
    return stream_api_once(&api, fills);
}

static keel_status_t stream_check(const stream_vendor_t *v, CUstream stream)
{
    CUcontext its = NULL;
    if (stream == CU_STREAM_PER_THREAD)
        return KEEL_ERROR(KEEL_INVALID_ARGUMENT,
                          "option stream is the default stream of each thread, another one for "
                          "each; give a stream that you made, or the legacy one (0x1)");
    KEEL_TRY(CUDA_CALL(v->symbols, cuStreamGetCtx, stream, &its));
    if (!its || its == v->context) return NULL;
    return KEEL_ERROR(KEEL_INVALID_ARGUMENT, "option stream is a stream of another context; give "
                                             "context=0x... as well, which it is of");
}

static stream_natives_t natives_of(const stream_vendor_t *v)
{
    return (stream_natives_t){
        .device = KEEL_NATIVE_CUDA_DEVICE,
        .context = KEEL_NATIVE_CUDA_CONTEXT,
        .stream = KEEL_NATIVE_CUDA_STREAM,
        .event = KEEL_NATIVE_CUDA_EVENT,
        .device_handle = (uint64_t)v->device,
        .context_handle = (uintptr_t)v->context,
    };
}

static keel_status_t vendor_init(stream_vendor_t *v, const stream_options_t *options, int ordinal,
                                 stream_limits_t *limits)
{
    CUdevice its = 0;
    stream_before_t before;
    KEEL_TRY(CUDA_CALL(v->symbols, cuDeviceGet, &v->device, ordinal));
    KEEL_TRY(limits_read(v, limits));
    v->context = options->context;
    v->adopted = v->context != NULL; // else the device's primary one, which all libraries share
    if (!v->adopted)
        KEEL_TRY(CUDA_CALL(v->symbols, cuDevicePrimaryCtxRetain, &v->context, v->device));
    limits->natives = natives_of(v);
    cuda_api()->enter(v, &before);
    keel_status_t status = CUDA_CALL(v->symbols, cuCtxGetDevice, &its);
    if (!status && its != v->device)
        status = KEEL_ERROR(KEEL_INVALID_ARGUMENT, "option context is a context of device %d", its);
    for (int i = 0; !status && i < STREAM_ADOPTED && options->adopted[i]; i++) {
        v->implicit |= options->adopted[i] == CU_STREAM_LEGACY;
        status = stream_check(v, options->adopted[i]);
    }
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
    KEEL_TRY(gpus_find(&gpus, symbols, uri->which, &ordinal));
    stream_vendor_t *v = mem_zalloc(sizeof *v);
    if (!v) return status_no_memory();
    v->symbols = symbols;
    stream_limits_t limits = {0};
    keel_status_t status = vendor_init(v, &options, ordinal, &limits);
    if (status) {
        cuda_api()->close_device(v);
        // What is the caller's and not alive is no device lost.
        bool lost = keel_status_code(status) == KEEL_DEVICE_LOST;
        return lost && (options.context || options.adopted[0])
                   ? status_as(status, KEEL_INVALID_ARGUMENT)
                   : status;
    }
    KEEL_TRY(stream_device_create(cuda_api(), v, &limits, &options, device));
    const keel_device_info_t *info = &limits.info;
    log_say(KEEL_LOG_INFO, "cuda://%d: %s, %s, driver for %s", ordinal, info->hardware,
            info->target, info->api);
    return NULL;
}

const keel_driver_t cuda_driver = {KEEL_DRIVER_HEAD, .name = "cuda", .list = cuda_list,
                                   .open = cuda_open};
