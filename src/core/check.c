// SPDX-License-Identifier: Apache-2.0
#include "core/check.h"

#include "base/memory.h"

keel_status_t device_refusal(const keel_device_t *device)
{
    CHECK(object_is_ours(&device->object), KEEL_DEVICE_LOST,
          "device '%s' was opened before fork and stayed with the parent process", device->name);
    return KEEL_ERROR(KEEL_FAILED_PRECONDITION, "device '%s' is closed", device->name);
}

keel_status_t point_refusal(const keel_point_t *point, const char *list, size_t index)
{
    unsigned long long value = point->value;
    CHECK(point->semaphore, KEEL_INVALID_ARGUMENT, "%s[%zu].semaphore is NULL", list, index);
    CHECK(object_is_ours(&point->semaphore->object), KEEL_DEVICE_LOST,
          "%s[%zu]: the semaphore was made before fork and stayed with the parent process", list,
          index);
    CHECK(value < SEMAPHORE_FAILED, KEEL_INVALID_ARGUMENT,
          "%s[%zu].value is %llu; it must be below 2^63, which no semaphore comes to", list, index,
          value);
    CHECK(!(point->until & ~UNTIL_ALL), KEEL_INVALID_ARGUMENT,
          "%s[%zu].until has unknown bits 0x%x; use keel_ended and keel_up_to", list, index,
          point->until & ~UNTIL_ALL);
    return KEEL_ERROR(KEEL_INVALID_ARGUMENT, "%s[%zu]: the queue has no submission %llu yet", list,
                      index, value);
}

keel_status_t copy_name(const char *name, char **copy)
{
    *copy = mem_copy_text(name);
    return name && !*copy ? status_no_memory() : NULL;
}
