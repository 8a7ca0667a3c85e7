// SPDX-License-Identifier: Apache-2.0
// Finding and opening devices.
#include <keel/driver/driver.h>

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/status.h"
#include "drivers/hip/hip.h"
#include "drivers/hip/releases.h"
#include "drivers/stream/stream.h"
#include "kit/gfx.h"
#include "kit/gpus.h"

static keel_status_t gpu_count(const void *library, int *count)
{
    const hip_symbols_t *symbols = library;
    return hip_status_entered(symbols, symbols->hipGetDeviceCount(count), "hipGetDeviceCount");
}

static keel_status_t gpu_describe(const void *library, int ordinal, char name[GPU_TEXT],
                                  uint64_t *memory)
{
    const hip_symbols_t *symbols = library;
    size_t bytes = 0;
    KEEL_TRY(HIP_CALL(symbols, hipDeviceGetName, name, GPU_TEXT, ordinal));
    keel_status_t status = HIP_CALL(symbols, hipDeviceTotalMem, &bytes, ordinal);
    *memory = bytes;
    return status;
}

static keel_status_t gpu_names(const void *library, int ordinal, gpu_names_t *names)
{
    const hip_symbols_t *symbols = library;
    hipUUID uuid;
    KEEL_TRY(HIP_CALL(symbols, hipDeviceGetUuid, &uuid, ordinal));
    gpu_uuid_print(uuid.bytes, names->uuid);
    return HIP_CALL(symbols, hipDeviceGetPCIBusId, names->address, GPU_TEXT, ordinal);
}

static const gpus_t gpus = {"hip", gpu_count, gpu_describe, gpu_names};

static keel_status_t hip_list(keel_device_listing_t *devices, size_t capacity, size_t *count)
{
    const hip_symbols_t *symbols = NULL;
    keel_status_t opened = hip_symbols_open(NULL, &symbols);
    return gpus_list(&gpus, opened, symbols, devices, capacity, count);
}

static keel_status_t target_read(stream_vendor_t *v)
{
    const hip_properties_t *properties = &v->symbols->release->properties;
    char *read = mem_zalloc(properties->size);
    if (!read) return status_no_memory();
    keel_status_t status =
        hip_status(v->symbols, v->symbols->properties(read, v->device), properties->function);
    if (!status) memcpy(v->target, read + properties->target, sizeof v->target - 1);
    mem_free(read);
    return status;
}

static keel_status_t info_read(const stream_vendor_t *v, keel_device_info_t *info)
{
    const hip_symbols_t *symbols = v->symbols;
    hipUUID uuid;
    KEEL_TRY(HIP_CALL(symbols, hipDeviceGetName, info->hardware, sizeof info->hardware, v->device));
    KEEL_TRY(HIP_CALL(symbols, hipDeviceGetPCIBusId, info->pci, sizeof info->pci, v->device));
    KEEL_TRY(HIP_CALL(symbols, hipDeviceGetUuid, &uuid, v->device));
    memcpy(info->uuid, uuid.bytes, sizeof info->uuid);
    info->has_uuid = memcmp(uuid.bytes, "XX", 3) != 0; // of a card that has no number
    for (char *c = info->pci; *c; c++) *c = (char)tolower((unsigned char)*c);
    snprintf(info->vendor, sizeof info->vendor, "AMD");
    snprintf(info->target, sizeof info->target, "%s", v->target);
    snprintf(info->api, sizeof info->api, "HIP %d.%d", symbols->version / 10000000,
             symbols->version / 100000 % 100);
    device_info_add_pci(info, PCI_AMD);
    return NULL;
}

// An attribute of the device, and where it goes.
typedef struct asked_t {
    hipDeviceAttribute_t attribute;
    uint32_t *value;
} asked_t;

static keel_status_t attributes_read(const stream_vendor_t *v, stream_limits_t *limits)
{
    const asked_t asked[] = {
        {hipDeviceAttributeMultiprocessorCount, &limits->processors},
        {hipDeviceAttributeMaxThreadsPerBlock, &limits->max_group_size},
        {hipDeviceAttributeMaxBlockDimX, &limits->max_group_sizes[0]},
        {hipDeviceAttributeMaxBlockDimY, &limits->max_group_sizes[1]},
        {hipDeviceAttributeMaxBlockDimZ, &limits->max_group_sizes[2]},
        {hipDeviceAttributeMaxGridDimX, &limits->max_group_counts[0]},
        {hipDeviceAttributeMaxGridDimY, &limits->max_group_counts[1]},
        {hipDeviceAttributeMaxGridDimZ, &limits->max_group_counts[2]},
        {hipDeviceAttributeWarpSize, &limits->subgroup_size},
        {hipDeviceAttributeMaxSharedMemoryPerBlock, &limits->max_local_memory},
    };
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++)
        KEEL_TRY(HIP_CALL(v->symbols, hipDeviceGetAttribute, (int *)asked[i].value,
                          asked[i].attribute, v->device));
    // A packet counts items in 32 bits, so that the largest group says how many groups there may
    // be.
    for (int i = 0; i < 3; i++) {
        if (!limits->max_group_sizes[i])
            return KEEL_ERROR(KEEL_UNSUPPORTED,
                              "HIP says that groups have at most 0 items in dimension %d", i);
        uint32_t most = UINT32_MAX / limits->max_group_sizes[i];
        if (limits->max_group_counts[i] > most) limits->max_group_counts[i] = most;
    }
    return NULL;
}

// The rate of the clock that kernels read. Old releases do not know the attribute.
static uint32_t clock_khz(const stream_vendor_t *v)
{
    int khz = 0;
    keel_status_release(HIP_CALL(v->symbols, hipDeviceGetAttribute, &khz,
                                 hipDeviceAttributeWallClockRate, v->device));
    return khz > 0 ? (uint32_t)khz : gfx_usual_khz(v->target);
}

static keel_status_t features_read(const stream_vendor_t *v, uint32_t *features)
{
    static const struct {
        hipDeviceAttribute_t attribute;
        uint32_t feature;
    } asked[] = {
        {hipDeviceAttributeConcurrentManagedAccess, STREAM_MANAGED},
        {hipDeviceAttributeVirtualMemoryManagementSupported, STREAM_SHARED},
    };
    *features = STREAM_GRAPHS | STREAM_UPLOAD | STREAM_PEERS;
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
        int has = 0;
        keel_status_t status =
            HIP_CALL(v->symbols, hipDeviceGetAttribute, &has, asked[i].attribute, v->device);
        bool unknown = keel_status_code(status) == KEEL_INVALID_ARGUMENT; // to this release
        if (status && !unknown) return status;
        keel_status_release(status);
        if (has) *features |= asked[i].feature;
    }
    *features &= ~(v->symbols->missing | v->symbols->release->broken);
    // Such memory is freed once for each GPU, and after the first time others may have the
    // addresses.
    if (v->devices > 1) *features &= ~STREAM_MANAGED;
    // These see memory only milliseconds after it was mapped, and lose what they store before.
    if (!strncmp(v->target, "gfx12", strlen("gfx12"))) *features &= ~STREAM_SHARED;
    return NULL;
}

static keel_status_t peers_read(stream_vendor_t *v)
{
    for (int i = 0; i < v->devices && i < HIP_PEERS; i++) {
        int there = 0, back = 0;
        if (i == v->device) continue;
        KEEL_TRY(HIP_CALL(v->symbols, hipDeviceCanAccessPeer, &there, v->device, i));
        KEEL_TRY(HIP_CALL(v->symbols, hipDeviceCanAccessPeer, &back, i, v->device));
        if (there && back) v->peers |= UINT64_C(1) << i;
    }
    return NULL;
}

static keel_status_t limits_read(stream_vendor_t *v, stream_limits_t *limits)
{
    size_t memory = 0;
    KEEL_TRY(HIP_CALL(v->symbols, hipGetDeviceCount, &v->devices));
    KEEL_TRY(peers_read(v));
    KEEL_TRY(HIP_CALL(v->symbols, hipDeviceTotalMem, &memory, v->device));
    KEEL_TRY(attributes_read(v, limits));
    KEEL_TRY(target_read(v));
    KEEL_TRY(features_read(v, &limits->features));
    KEEL_TRY(info_read(v, &limits->info));
    KEEL_TRY(
        HIP_CALL(v->symbols, hipDeviceGetStreamPriorityRange, &limits->least, &limits->greatest));
    limits->clock_khz = clock_khz(v);
    limits->quirks = *hip_quirks_find(v->symbols->release, v->target);
    limits->max_arguments = 4096;
    limits->memory = memory;
    limits->natives = (stream_natives_t){
        .device = KEEL_NATIVE_HIP_DEVICE,
        .stream = KEEL_NATIVE_HIP_STREAM,
        .event = KEEL_NATIVE_HIP_EVENT,
        .device_handle = (uint64_t)v->device,
    };
    limits->dlpack = (device_dlpack_t){v->device, 10, 11, 0}; // kDLROCM, kDLROCMHost
    return NULL;
}

static const stream_api_t *hip_api(void)
{
    static stream_api_t api;
    static stream_fill_t *const fills[] = {hip_fill_memory, hip_fill_graph, hip_fill_device, NULL};
    return stream_api_once(&api, fills);
}

// HIP tells by an event of the device whether a stream is the device's: not all releases have
// another way.
static keel_status_t stream_check(const stream_vendor_t *v, hipStream_t stream)
{
    hipEvent_t event = NULL;
    if ((uintptr_t)stream <= 2)
        return KEEL_ERROR(
            KEEL_INVALID_ARGUMENT,
            "option stream is %p, one of HIP's default streams; give one that you made",
            (void *)stream);
    KEEL_TRY(HIP_CALL(v->symbols, hipEventCreateWithFlags, &event, hipEventDisableTiming));
    hipError_t result = v->symbols->hipEventRecord(event, stream);
    keel_status_t status = hip_status(v->symbols, result, "hipEventRecord");
    keel_status_release(HIP_CALL(v->symbols, hipEventDestroy, event));
    if (result != hipErrorInvalidHandle) return status;
    return keel_status_wrap(status_as(status, KEEL_INVALID_ARGUMENT),
                            "option stream is %p, which is a stream of another device than %d",
                            (void *)stream, v->device);
}

static keel_status_t vendor_init(stream_vendor_t *v, const stream_options_t *options, int ordinal,
                                 stream_limits_t *limits)
{
    stream_before_t before;
    v->device = ordinal;
    hip_api()->enter(v, &before);
    keel_status_t status = limits_read(v, limits);
    for (int i = 0; !status && i < STREAM_ADOPTED && options->adopted[i]; i++)
        status = stream_check(v, options->adopted[i]);
    hip_api()->leave(&before);
    return status;
}

static keel_status_t hip_open(const keel_uri_t *uri, keel_device_t **device)
{
    stream_options_t options;
    const hip_symbols_t *symbols;
    int ordinal = 0;
    KEEL_TRY(stream_options_parse(uri, &options));
    if (options.context)
        return KEEL_ERROR(KEEL_INVALID_ARGUMENT,
                          "option context is of no use: a HIP device has one context");
    KEEL_TRY(hip_symbols_open(options.library, &symbols));
    KEEL_TRY(gpus_find(&gpus, symbols, uri->which, &ordinal));
    stream_vendor_t *v = mem_zalloc(sizeof *v);
    if (!v) return status_no_memory();
    v->symbols = symbols;
    stream_limits_t limits = {0};
    keel_status_t status = vendor_init(v, &options, ordinal, &limits);
    if (status) {
        hip_api()->close_device(v);
        return status;
    }
    KEEL_TRY(stream_device_create(hip_api(), v, &limits, &options, device));
    const keel_device_info_t *info = &limits.info;
    log_say(KEEL_LOG_INFO, "hip://%d: %s, %s, %s", ordinal, info->hardware, info->target,
            info->api);
    return NULL;
}

const keel_driver_t hip_driver = {KEEL_DRIVER_HEAD, .name = "hip", .list = hip_list,
                                  .open = hip_open};
