// SPDX-License-Identifier: Apache-2.0
#include "raw.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "raw_vendor.h"

extern const unsigned char keel_embed_raw_bundle[]; // for AMD's GPUs: kernels/raw.c
extern const uint64_t keel_embed_raw_bundle_size;

static const char ptx[] = ".version 7.0\n"
                          ".target sm_70\n"
                          ".address_size 64\n"
                          ".visible .entry raw_empty(.param .align 8 .b8 block[64])\n"
                          "{\n"
                          "    ret;\n"
                          "}\n"
                          ".visible .entry raw_nap(.param .align 8 .b8 block[64])\n"
                          "{\n"
                          "    .reg .u64 %now, %end, %nap;\n"
                          "    .reg .pred %early;\n"
                          "    ld.param.u64 %nap, [block];\n"
                          "    mov.u64 %now, %globaltimer;\n"
                          "    add.u64 %end, %now, %nap;\n"
                          "again:\n"
                          "    mov.u64 %now, %globaltimer;\n"
                          "    setp.lt.u64 %early, %now, %end;\n"
                          "    @%early bra again;\n"
                          "    ret;\n"
                          "}\n";

struct raw_t {
    const raw_vendor_t *vendor; // borrowed: it stays
    object_t module, function, nap;
    object_t streams[RAW_STREAMS], events[RAW_EVENTS];
    object_t graph, instance, *nodes;
    uint32_t node_count, rebound;
    uint64_t block[RAW_BLOCK / 8];
    uint64_t first, second; // device memory
    void *host;
};

#define RAW_TRY(call)                                                                              \
    do {                                                                                           \
        int error_ = (call);                                                                       \
        if (error_) return KEEL_ERROR(KEEL_ABORTED, "%s fails with %d", #call, error_);            \
    } while (0)

const char *raw_symbols_find(void *library, const raw_symbol_t *symbols)
{
    for (; symbols->name; symbols++) {
        void *found = dlsym(library, symbols->name);
        if (!found) return symbols->name;
        memcpy(symbols->place, &found, sizeof found);
    }
    return NULL;
}

keel_executable_options_t raw_image(const keel_device_t *device)
{
    keel_executable_options_t image = {.data = ptx, .size = sizeof ptx, .name = "raw kernels"};
    if (strncmp(keel_device_info(device)->target, "gfx", 3) != 0) return image;
    image.data = keel_embed_raw_bundle;
    image.size = keel_embed_raw_bundle_size;
    return image;
}

static keel_status_t objects_make(raw_t *raw)
{
    const raw_vendor_t *v = raw->vendor;
    RAW_TRY(v->enter());
    if (v->module_load(&raw->module, ptx)) // an AMD GPU
        RAW_TRY(v->module_load(&raw->module, keel_embed_raw_bundle));
    RAW_TRY(v->module_function(&raw->function, raw->module, "raw_empty"));
    RAW_TRY(v->module_function(&raw->nap, raw->module, "raw_nap"));
    for (int i = 0; i < RAW_STREAMS; i++)
        RAW_TRY(v->stream_create(&raw->streams[i], RAW_STREAM_NON_BLOCKING, 0));
    for (int i = 0; i < RAW_EVENTS; i++)
        RAW_TRY(v->event_create(&raw->events[i],
                                RAW_EVENT_NO_TIMING | (i == RAW_BELL ? RAW_EVENT_BLOCKING : 0)));
    return NULL;
}

// The number of the GPU in a URI, so that both sides are measured on the same one.
static keel_status_t ordinal_of(const char *uri, int *ordinal)
{
    const char *which = strstr(uri, "://");
    char *end = NULL;
    which = which ? which + 3 : "";
    unsigned long number = strtoul(which, &end, 10);
    if (end == which || (*end && *end != '?') || number > INT_MAX)
        return KEEL_ERROR(KEEL_UNSUPPORTED, "the vendor's calls take GPUs by number, not '%s'",
                          uri);
    *ordinal = (int)number;
    return NULL;
}

keel_status_t raw_open(const setting_t *setting, raw_t **made)
{
    const raw_vendor_t *vendor;
    int ordinal = 0;
    bool hip = strncmp(setting->device, "hip:", 4) == 0;
    KEEL_TRY(ordinal_of(setting->device, &ordinal));
    KEEL_TRY(hip ? raw_hip(ordinal, &vendor) : raw_cuda(ordinal, &vendor));
    raw_t *raw = calloc(1, sizeof *raw);
    if (!raw) return KEEL_ERROR(KEEL_OUT_OF_MEMORY, "no memory");
    *made = raw;
    raw->vendor = vendor;
    return objects_make(raw);
}

static void graph_drop(raw_t *raw)
{
    if (raw->instance) raw->vendor->exec_destroy(raw->instance);
    if (raw->graph) raw->vendor->graph_destroy(raw->graph);
    free(raw->nodes);
}

void raw_close(raw_t *raw)
{
    if (!raw) return;
    const raw_vendor_t *v = raw->vendor;
    v->enter();
    graph_drop(raw);
    for (int i = 0; i < RAW_STREAMS; i++)
        if (raw->streams[i]) v->stream_destroy(raw->streams[i]);
    for (int i = 0; i < RAW_EVENTS; i++)
        if (raw->events[i]) v->event_destroy(raw->events[i]);
    if (raw->first) v->free(raw->first);
    if (raw->second) v->free(raw->second);
    if (raw->host) v->host_free(raw->host);
    if (raw->module) v->module_unload(raw->module);
    free(raw);
}

keel_status_t raw_launch(raw_t *raw, int stream)
{
    void *parameters[] = {raw->block};
    RAW_TRY(raw->vendor->launch(raw->function, 1, 1, 1, 1, 1, 1, 0, raw->streams[stream],
                                parameters, NULL));
    return NULL;
}

keel_status_t raw_nap(raw_t *raw, int stream, uint64_t ns)
{
    uint64_t block[RAW_BLOCK / 8] = {ns};
    void *parameters[] = {block};
    RAW_TRY(
        raw->vendor->launch(raw->nap, 1, 1, 1, 1, 1, 1, 0, raw->streams[stream], parameters, NULL));
    return NULL;
}

keel_status_t raw_record(raw_t *raw, int event, int stream)
{
    RAW_TRY(raw->vendor->event_record(raw->events[event], raw->streams[stream]));
    return NULL;
}

keel_status_t raw_wait(raw_t *raw, int stream, int event)
{
    RAW_TRY(raw->vendor->stream_wait(raw->streams[stream], raw->events[event], 0));
    return NULL;
}

keel_status_t raw_spin(raw_t *raw, int event)
{
    int error;
    while ((error = raw->vendor->event_query(raw->events[event])) == RAW_NOT_READY) {
    }
    RAW_TRY(error);
    return NULL;
}

keel_status_t raw_sleep(raw_t *raw, int event)
{
    RAW_TRY(raw->vendor->enter()); // any thread
    RAW_TRY(raw->vendor->event_sync(raw->events[event]));
    return NULL;
}

keel_status_t raw_sync(raw_t *raw)
{
    for (int i = 0; i < RAW_STREAMS; i++) RAW_TRY(raw->vendor->stream_sync(raw->streams[i]));
    return NULL;
}

keel_status_t raw_graph(raw_t *raw, uint32_t count)
{
    const raw_vendor_t *v = raw->vendor;
    raw->nodes = calloc(count, sizeof *raw->nodes);
    if (!raw->nodes) return KEEL_ERROR(KEEL_OUT_OF_MEMORY, "no memory");
    raw->node_count = count;
    RAW_TRY(v->graph_create(&raw->graph, 0));
    for (uint32_t i = 0; i < count; i++)
        RAW_TRY(v->node_add(&raw->nodes[i], raw->graph, i ? &raw->nodes[i - 1] : NULL,
                            raw->function, raw->block));
    RAW_TRY(v->graph_instantiate(&raw->instance, raw->graph, 0));
    return NULL;
}

keel_status_t raw_replay(raw_t *raw)
{
    RAW_TRY(raw->vendor->graph_launch(raw->instance, raw->streams[0]));
    return NULL;
}

keel_status_t raw_rebind(raw_t *raw)
{
    uint64_t buffer = UINT64_C(1) << 40 | (uint64_t)(++raw->rebound % 2) << 21; // never looked at
    for (uint32_t i = 0; i < raw->node_count; i++) {
        for (uint32_t k = 0; k < 3; k++) raw->block[k] = buffer + (i * 3 + k) % 48 * 64;
        RAW_TRY(raw->vendor->node_set(raw->instance, raw->nodes[i], raw->function, raw->block));
    }
    return NULL;
}

keel_status_t raw_pairs(raw_t *raw)
{
    uint64_t keep = UINT64_MAX;
    object_t pool;
    if (!raw->vendor->pools) return KEEL_ERROR(KEEL_UNSUPPORTED, "it has no pools");
    RAW_TRY(raw->vendor->default_pool(&pool, raw->vendor->ordinal));
    RAW_TRY(raw->vendor->pool_set(pool, RAW_POOL_THRESHOLD, &keep));
    return NULL;
}

bool raw_updates(const raw_t *raw)
{
    return raw->vendor->updates;
}

keel_status_t raw_pair(raw_t *raw, uint64_t size)
{
    uint64_t address;
    RAW_TRY(raw->vendor->pool_alloc(&address, size, raw->streams[0]));
    RAW_TRY(raw->vendor->pool_free(address, raw->streams[0]));
    return NULL;
}

keel_status_t raw_spans(raw_t *raw, uint64_t size, bool host)
{
    if (host)
        RAW_TRY(raw->vendor->host_alloc(&raw->host, size, RAW_HOST_PORTABLE));
    else
        RAW_TRY(raw->vendor->alloc(&raw->first, size));
    RAW_TRY(raw->vendor->alloc(&raw->second, size));
    return NULL;
}

keel_status_t raw_copy(raw_t *raw, uint64_t size)
{
    if (raw->host)
        RAW_TRY(raw->vendor->copy(RAW_TO_DEVICE, raw->second, (uintptr_t)raw->host, size,
                                  raw->streams[0]));
    else
        RAW_TRY(raw->vendor->copy(RAW_WITHIN, raw->second, raw->first, size, raw->streams[0]));
    return NULL;
}

keel_status_t raw_copy_back(raw_t *raw, uint64_t size)
{
    RAW_TRY(
        raw->vendor->copy(RAW_TO_HOST, (uintptr_t)raw->host, raw->second, size, raw->streams[0]));
    return NULL;
}

keel_status_t raw_fill(raw_t *raw, uint64_t size)
{
    RAW_TRY(raw->vendor->fill(raw->second, 7, size / 4, raw->streams[0]));
    return NULL;
}
