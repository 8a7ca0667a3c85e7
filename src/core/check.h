// SPDX-License-Identifier: Apache-2.0
// The front door's checks. What passes them, drivers may rely on.
#ifndef KEEL_SRC_CORE_CHECK_H_
#define KEEL_SRC_CORE_CHECK_H_

#include <keel/driver/driver.h>

#include "base/status.h"
#include "kit/device.h"
#include "kit/label.h"
#include "kit/object.h"
#include "kit/semaphore.h"

#define CHECK(condition, code, ...)                                                                \
    do {                                                                                           \
        if (__builtin_expect(!(condition), 0)) return KEEL_ERROR(code, __VA_ARGS__);               \
    } while (0)

#define CHECK_NOT_NULL(argument)                                                                   \
    CHECK((argument) != NULL, KEEL_INVALID_ARGUMENT, "%s is NULL", #argument)

#define TEXT_OF(name) ((name) ? (name) : "")

#define USAGE_DEFAULT                                                                              \
    (KEEL_USAGE_TRANSFER | KEEL_USAGE_DISPATCH | KEEL_USAGE_COUNTS | KEEL_USAGE_MAP)
#define USAGE_ALL  (USAGE_DEFAULT | KEEL_USAGE_EXPORT)
#define MEMORY_ALL UINT32_C(0x1f)
#define UNTIL_ALL  ((uint32_t)(KEEL_ENDED | KEEL_UP_TO))

// That the device takes work: it is this process's and open.
__attribute__((returns_nonnull)) keel_status_t
device_refusal(const keel_device_t *device); // says why not
static inline keel_status_t device_check(const keel_device_t *device)
{
    bool closed = atomic_load_explicit(&device->closed, memory_order_relaxed);
    if (__builtin_expect(closed || !object_is_ours(&device->object), 0))
        return device_refusal(device);
    return NULL;
}

// That the point can be waited for; `list` and `index` say in a message where it stands.
keel_status_t point_refusal(const keel_point_t *point, const char *list, size_t index) KEEL_COLD;
static inline keel_status_t point_check(const keel_point_t *point, const char *list, size_t index)
{
    const keel_semaphore_t *semaphore = point->semaphore;
    if (__builtin_expect(!semaphore || !object_is_ours(&semaphore->object) ||
                             !point_exists(point) || (point->until & ~UNTIL_ALL),
                         0))
        return point_refusal(point, list, index);
    return NULL;
}

// Whether the device has workgroups of that size.
static inline bool group_size_fits(const keel_caps_t *caps, keel_groups_t size)
{
    uint64_t square = (uint64_t)size.x * size.y;
    return square && size.z && square <= caps->max_group_size / size.z &&
           size.x <= caps->max_group_sizes[0] && size.y <= caps->max_group_sizes[1] &&
           size.z <= caps->max_group_sizes[2];
}

static inline keel_status_t check_flags(const char *what, uint32_t flags, uint32_t known)
{
    CHECK(!(flags & ~known), KEEL_INVALID_ARGUMENT, "%s has unknown bits 0x%x", what,
          flags & ~known);
    return NULL;
}

// What a wait takes: points of this process that exist, and a mode.
keel_status_t wait_check(keel_points_t points, keel_wait_mode_t mode);

// A copy of options->name into *copy.
keel_status_t copy_name(const char *name, char **copy);

#endif
