// SPDX-License-Identifier: Apache-2.0
// Which slots of the vendor's table are required, and which belong to a feature.
#include <stddef.h>
#include <string.h>

#include "base/status.h"
#include "drivers/stream/api.h"

typedef struct slot_t {
    const char *name;
    size_t offset;
    uint32_t feature; // stream_feature_t
} slot_t;

#define SLOT(name, feature) {#name, offsetof(stream_api_t, name), feature}

static const slot_t slots[] = {
    SLOT(driver, STREAM_REQUIRED),
    SLOT(enter, STREAM_REQUIRED),
    SLOT(leave, STREAM_REQUIRED),
    SLOT(close, STREAM_REQUIRED),
    SLOT(memory, STREAM_REQUIRED),
    SLOT(stream_create, STREAM_REQUIRED),
    SLOT(stream_destroy, STREAM_REQUIRED),
    SLOT(stream_drain, STREAM_REQUIRED),
    SLOT(event_create, STREAM_REQUIRED),
    SLOT(event_destroy, STREAM_REQUIRED),
    SLOT(event_record, STREAM_REQUIRED),
    SLOT(event_query, STREAM_REQUIRED),
    SLOT(event_sync, STREAM_REQUIRED),
    SLOT(stream_wait, STREAM_REQUIRED),
    SLOT(alloc, STREAM_REQUIRED),
    SLOT(free, STREAM_REQUIRED),
    SLOT(alloc_host, STREAM_REQUIRED),
    SLOT(free_host, STREAM_REQUIRED),
    SLOT(allocation, STREAM_REQUIRED),
    SLOT(host_address, STREAM_REQUIRED),
    SLOT(host_register, STREAM_REQUIRED),
    SLOT(host_unregister, STREAM_REQUIRED),
    SLOT(fill, STREAM_REQUIRED),
    SLOT(copy, STREAM_REQUIRED),
    SLOT(launch, STREAM_REQUIRED),
    SLOT(image_rank, STREAM_REQUIRED),
    SLOT(module_load, STREAM_REQUIRED),
    SLOT(module_unload, STREAM_REQUIRED),
    SLOT(module_function, STREAM_REQUIRED),
    SLOT(module_global, STREAM_REQUIRED),
    SLOT(function_allow, STREAM_REQUIRED),
    SLOT(builtin_image, STREAM_REQUIRED),
    SLOT(builtin_names, STREAM_REQUIRED),
    SLOT(function_arguments, STREAM_ARGUMENTS),
    SLOT(peers, STREAM_PEERS),
    SLOT(copy_peer, STREAM_PEERS),
    SLOT(alloc_managed, STREAM_MANAGED),
    SLOT(beside, STREAM_OUTSIDE),
    SLOT(stream_call, STREAM_OUTSIDE),
    SLOT(outside_import, STREAM_OUTSIDE),
    SLOT(outside_destroy, STREAM_OUTSIDE),
    SLOT(outside_signal, STREAM_OUTSIDE),
    SLOT(outside_wait, STREAM_OUTSIDE),
    SLOT(shared_create, STREAM_SHARED),
    SLOT(shared_export, STREAM_SHARED),
    SLOT(shared_import, STREAM_SHARED),
    SLOT(shared_destroy, STREAM_SHARED),
    SLOT(pool_create, STREAM_POOLS),
    SLOT(pool_destroy, STREAM_POOLS),
    SLOT(pool_alloc, STREAM_POOLS),
    SLOT(pool_free, STREAM_POOLS),
    SLOT(pool_reserved, STREAM_POOLS),
    SLOT(pool_trim, STREAM_POOLS),
    SLOT(graph_create, STREAM_GRAPHS),
    SLOT(graph_destroy, STREAM_GRAPHS),
    SLOT(graph_launch, STREAM_GRAPHS),
    SLOT(graph_copy, STREAM_GRAPHS),
    SLOT(graph_fill, STREAM_GRAPHS),
    SLOT(graph_join, STREAM_GRAPHS),
    SLOT(graph_order, STREAM_GRAPHS),
    SLOT(graph_instantiate, STREAM_GRAPHS),
    SLOT(exec_destroy, STREAM_GRAPHS),
    SLOT(exec_run, STREAM_GRAPHS),
    SLOT(exec_set_launch, STREAM_GRAPHS),
    SLOT(exec_set_copy, STREAM_GRAPHS),
    SLOT(exec_set_fill, STREAM_GRAPHS),
    SLOT(graph_condition, STREAM_CONDITIONS),
    SLOT(graph_branch, STREAM_CONDITIONS),
    SLOT(graph_updatable, STREAM_UPDATABLE),
    SLOT(exec_upload, STREAM_UPLOAD),
};

_Static_assert(sizeof slots / sizeof *slots == sizeof(stream_api_t) / sizeof(void *),
               "every slot of the table has its row");

// What a feature is of no use without.
static uint32_t feature_needs(uint32_t features)
{
    uint32_t needs = 0;
    if (features & (STREAM_CONDITIONS | STREAM_UPDATABLE | STREAM_UPLOAD)) needs |= STREAM_GRAPHS;
    if (features & STREAM_UPDATABLE) needs |= STREAM_UPLOAD;
    return needs;
}

keel_status_t stream_api_check(const stream_api_t *api, uint32_t features)
{
    for (size_t i = 0; i < sizeof slots / sizeof *slots; i++) {
        void *slot;
        memcpy(&slot, (const char *)api + slots[i].offset, sizeof slot);
        if (!slot && (!slots[i].feature || slots[i].feature & features))
            return KEEL_ERROR(KEEL_INTERNAL, "the %s driver leaves out %s, which is %s",
                              api->driver ? api->driver : "stream", slots[i].name,
                              slots[i].feature ? "of a feature that the device has" : "required");
    }
    uint32_t missing = feature_needs(features) & ~features;
    if (!missing) return NULL;
    return KEEL_ERROR(KEEL_INTERNAL, "the %s driver has features 0x%x, which need 0x%x as well",
                      api->driver, features, missing);
}
