// SPDX-License-Identifier: Apache-2.0
#include "core/registry.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "core/check.h"
#include "kit/drivers.h"

enum { NAME_MAX_LENGTH = 31 };

// Those that were registered, from the first on. A place is written once, so there is no lock: the
// child of a fork can always register.
static const keel_driver_t *_Atomic registered[KEEL_MAX_DRIVERS];

static size_t built_in_count(void)
{
    size_t count = 0;
    while (drivers_built_in[count]) count++;
    return count;
}

const keel_driver_t *registry_at(size_t index)
{
    size_t own = built_in_count();
    if (index < own) return drivers_built_in[index];
    if (index - own >= KEEL_MAX_DRIVERS) return NULL;
    // acquire: pairs with keel_driver_register.
    return atomic_load_explicit(&registered[index - own], memory_order_acquire);
}

keel_status_t registry_find(const char *name, const keel_driver_t **driver)
{
    char names[256] = "";
    const keel_driver_t *d;
    for (size_t i = 0; (d = registry_at(i)); i++) {
        if (strcmp(d->name, name) == 0) {
            *driver = d;
            return NULL;
        }
        size_t length = strlen(names);
        snprintf(names + length, sizeof names - length, "%s%s", length ? ", " : "", d->name);
    }
    return KEEL_ERROR(KEEL_NOT_FOUND, "no driver is called '%s'; there are: %s", name, names);
}

static bool name_is_scheme(const char *name)
{
    size_t length = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789+.-");
    return islower((unsigned char)name[0]) && !name[length] && length <= NAME_MAX_LENGTH;
}

// Of a driver of another version, `version` is all that is known.
keel_status_t registry_check_driver(const keel_driver_t *driver)
{
    CHECK_NOT_NULL(driver);
    CHECK(driver->version == KEEL_DRIVER_VERSION, KEEL_UNSUPPORTED,
          "the driver was built for version %u of Keel's driver interface; this library has "
          "version %d: build the driver again with the headers of Keel %s",
          driver->version, KEEL_DRIVER_VERSION, keel_version());
    CHECK(driver->layout == KEEL_DRIVER_LAYOUT, KEEL_UNSUPPORTED,
          "the driver was built with other headers than this library (%#x, not %#x; both are "
          "version %d), or without KEEL_DRIVER_HEAD: build it again with the headers of this Keel "
          "%s",
          driver->layout, KEEL_DRIVER_LAYOUT, KEEL_DRIVER_VERSION, keel_version());
    CHECK(driver->name && name_is_scheme(driver->name), KEEL_INVALID_ARGUMENT,
          "the driver's name is '%s'; it must be a lower-case letter and at most %d more "
          "lower-case letters, digits, '+', '.' or '-'",
          TEXT_OF(driver->name), NAME_MAX_LENGTH - 1);
    CHECK(driver->list, KEEL_INVALID_ARGUMENT,
          "driver '%s' has no `list`; one that finds no device sets *count to 0", driver->name);
    CHECK(driver->open, KEEL_INVALID_ARGUMENT, "driver '%s' has no `open`, which makes its devices",
          driver->name);
    return NULL;
}

keel_status_t keel_driver_register(const keel_driver_t *driver)
{
    KEEL_TRY(registry_check_driver(driver));
    size_t own = built_in_count();
    for (size_t i = 0; i < own + KEEL_MAX_DRIVERS; i++) {
        const keel_driver_t *there = i < own ? drivers_built_in[i] : NULL;
        // release: pairs with registry_at. The loser of the exchange looks at the winner's name,
        // so two drivers of one name cannot both get in.
        if (i >= own && atomic_compare_exchange_strong(&registered[i - own], &there, driver))
            return NULL;
        if (there == driver) return NULL;
        CHECK(strcmp(there->name, driver->name) != 0, KEEL_FAILED_PRECONDITION,
              "there is a driver called '%s' already; this one must have another name",
              driver->name);
    }
    return KEEL_ERROR(KEEL_RESOURCE_EXHAUSTED,
                      "driver '%s' is one too many: %d can be registered besides Keel's own",
                      driver->name, KEEL_MAX_DRIVERS);
}

// A slot of the ops table: required, or there if and only if the bit is set.
typedef struct slot_t {
    const char *name;
    size_t offset;
    uint32_t bit; // 0: required
    const char *bit_name;
} slot_t;

#define REQUIRED(slot)  {#slot, offsetof(keel_device_ops_t, slot), 0, ""}
#define WITH(bit, slot) {#slot, offsetof(keel_device_ops_t, slot), bit, #bit}

static const slot_t slots[] = {
    REQUIRED(device_close),
    REQUIRED(device_destroy),
    REQUIRED(device_memory),
    REQUIRED(queue_create),
    REQUIRED(queue_destroy),
    REQUIRED(queue_submit),
    REQUIRED(buffer_alloc),
    REQUIRED(buffer_free),
    REQUIRED(executable_rank),
    REQUIRED(executable_load),
    REQUIRED(executable_unload),
    WITH(KEEL_CAP_QUEUE_ALLOCA, pool_create),
    WITH(KEEL_CAP_QUEUE_ALLOCA, pool_destroy),
    WITH(KEEL_CAP_QUEUE_ALLOCA, pool_stats),
    WITH(KEEL_CAP_QUEUE_ALLOCA, pool_trim),
    WITH(KEEL_CAP_IMPORT_HOST, buffer_import),
    WITH(KEEL_CAP_IMPORT_HOST, buffer_forget),
    WITH(KEEL_CAP_EXPORT_FD, buffer_export),
    WITH(KEEL_CAP_IMPORT_SEMAPHORE, semaphore_import),
    WITH(KEEL_CAP_NATIVE, device_native),
};

static bool slot_is_filled(const keel_device_ops_t *ops, const slot_t *slot)
{
    void (*function)(void);
    memcpy(&function, (const char *)ops + slot->offset, sizeof function);
    return function;
}

static keel_status_t slots_check(const char *name, const keel_device_t *device)
{
    for (size_t i = 0; i < sizeof slots / sizeof *slots; i++) {
        bool filled = slot_is_filled(device->ops, &slots[i]);
        bool set = device->caps.bits & slots[i].bit;
        CHECK(filled || slots[i].bit, KEEL_INTERNAL,
              "driver '%s': the slot %s of the ops table is empty; it is required", name,
              slots[i].name);
        CHECK(filled || !set, KEEL_INTERNAL,
              "driver '%s': the slot %s of the ops table is empty, but %s is set: fill the slot, "
              "or clear the bit",
              name, slots[i].name, slots[i].bit_name);
        CHECK(!filled || set || !slots[i].bit, KEEL_INTERNAL,
              "driver '%s': the slot %s of the ops table is filled, but %s is not set: set the "
              "bit, or leave the slot empty",
              name, slots[i].name, slots[i].bit_name);
    }
    return NULL;
}

keel_status_t registry_check_device(const keel_driver_t *driver, const keel_device_t *device)
{
    const char *name = driver->name;
    CHECK(device && device->ops, KEEL_INTERNAL,
          "driver '%s' has opened %s; its `open` must make a device and set `ops`", name,
          device ? "a device without an ops table" : "nothing");
    const keel_caps_t *caps = &device->caps;
    KEEL_TRY(slots_check(name, device));
    CHECK(!device->ops->semaphore_create || device->ops->queue_cancel, KEEL_INTERNAL,
          "driver '%s': the slot semaphore_create of the ops table is filled, but queue_cancel is "
          "empty: what waits on the device would not end when the device does; fill it too",
          name);
    CHECK(!device->ops->recording_prepare == !device->ops->recording_discard, KEEL_INTERNAL,
          "driver '%s': of the slots recording_prepare and recording_discard one is empty: fill "
          "both, or none",
          name);
    CHECK(!caps->dlpack == !(caps->bits & KEEL_CAP_DLPACK), KEEL_INTERNAL,
          "driver '%s': caps.dlpack and KEEL_CAP_DLPACK go together: set both, or none", name);
    CHECK(!(caps->native & ~caps->bits), KEEL_INTERNAL,
          "driver '%s': caps.native has bits 0x%x that caps.bits has not", name,
          caps->native & ~caps->bits);
    CHECK(caps->nodes > 0, KEEL_INTERNAL, "driver '%s': caps.nodes is 0; it is at least 1", name);
    CHECK(caps->memory_types[0], KEEL_INTERNAL,
          "driver '%s': caps.memory_types is empty; it has at least one kind of memory", name);
    CHECK(caps->buffer_alignment && !(caps->buffer_alignment & (caps->buffer_alignment - 1)),
          KEEL_INTERNAL, "driver '%s': caps.buffer_alignment is %llu; it is a power of two", name,
          (unsigned long long)caps->buffer_alignment);
    return NULL;
}
