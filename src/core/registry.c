// SPDX-License-Identifier: Apache-2.0
#include "core/registry.h"

#include <stdio.h>
#include <string.h>

#include "core/check.h"

keel_status_t registry_find(const char *name, const keel_driver_t **driver)
{
    char names[256] = "";
    for (const keel_driver_t *const *d = keel_drivers; *d; d++) {
        if (strcmp((*d)->name, name) == 0) {
            *driver = *d;
            return NULL;
        }
        size_t length = strlen(names);
        snprintf(names + length, sizeof names - length, "%s%s", length ? ", " : "", (*d)->name);
    }
    return KEEL_ERROR(KEEL_NOT_FOUND, "no driver is called '%s'; there are: %s", name, names);
}

keel_status_t registry_check_ops(const keel_device_t *device)
{
    const keel_device_ops_t *ops = device->ops;
    uint32_t bits = device->caps.bits;
    bool required = ops->device_close && ops->device_destroy && ops->device_memory &&
                    ops->queue_create && ops->queue_destroy && ops->queue_submit &&
                    ops->buffer_alloc && ops->buffer_free && ops->executable_rank &&
                    ops->executable_load && ops->executable_unload;
    bool pools = ops->pool_create && ops->pool_destroy && ops->pool_stats && ops->pool_trim;
    bool import = ops->buffer_import && ops->buffer_forget;
    CHECK(required, KEEL_INTERNAL, "the driver leaves a required slot of its ops table empty");
    CHECK(pools == !!(bits & KEEL_CAP_QUEUE_ALLOCA), KEEL_INTERNAL,
          "the driver's pool ops and KEEL_CAP_QUEUE_ALLOCA do not agree");
    CHECK(import == !!(bits & KEEL_CAP_IMPORT_HOST), KEEL_INTERNAL,
          "the driver's import ops and KEEL_CAP_IMPORT_HOST do not agree");
    CHECK(!ops->buffer_export == !(bits & KEEL_CAP_EXPORT_FD), KEEL_INTERNAL,
          "the driver's buffer_export and KEEL_CAP_EXPORT_FD do not agree");
    CHECK(ops->semaphore_import && ops->semaphore_forget ? (bits & KEEL_CAP_IMPORT_SEMAPHORE)
                                                         : !(bits & KEEL_CAP_IMPORT_SEMAPHORE),
          KEEL_INTERNAL, "the driver's semaphore ops and KEEL_CAP_IMPORT_SEMAPHORE do not agree");
    CHECK(!device->caps.dlpack == !(bits & KEEL_CAP_DLPACK), KEEL_INTERNAL,
          "the driver's keel_caps_t.dlpack and KEEL_CAP_DLPACK do not agree");
    CHECK(!ops->recording_prepare == !ops->recording_discard, KEEL_INTERNAL,
          "the driver can prepare recordings but not discard them, or the other way round");
    CHECK(!(device->caps.native & ~bits), KEEL_INTERNAL, "the driver calls native what it has not");
    CHECK(device->caps.nodes > 0, KEEL_INTERNAL, "the driver's device has no node");
    return NULL;
}
