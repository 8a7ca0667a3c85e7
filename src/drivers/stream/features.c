// SPDX-License-Identifier: Apache-2.0
// The vendor's table: filling it in, and which slots are required or belong to a feature.
#include <stddef.h>
#include <string.h>

#include "base/lock.h"
#include "base/status.h"
#include "drivers/stream/adaptor.h"

typedef struct slot_t {
    const char *name;
    size_t offset;
    uint32_t feature; // stream_feature_t
} slot_t;

#define SLOT(name, feature) {#name, offsetof(stream_api_t, name), feature},

static const slot_t slots[] = {SLOT(driver, STREAM_REQUIRED) STREAM_SLOTS(SLOT)};

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

const stream_api_t *stream_api_once(stream_api_t *api, stream_fill_t *const fills[])
{
    static lock_t lock;
    lock_enter(&lock);
    for (size_t i = 0; !api->driver && fills[i]; i++) fills[i](api);
    lock_leave(&lock);
    return api;
}
