// SPDX-License-Identifier: Apache-2.0
#include "core/check.h"

#include "base/memory.h"

keel_status_t device_refusal(const keel_device_t *device)
{
    CHECK(object_is_ours(&device->object), KEEL_DEVICE_LOST,
          "device '%s' was opened before fork and stayed with the parent process", device->name);
    return KEEL_ERROR(KEEL_FAILED_PRECONDITION, "device '%s' is closed", device->name);
}

keel_status_t copy_name(const char *name, char **copy)
{
    *copy = mem_copy_text(name);
    return name && !*copy ? status_no_memory() : NULL;
}
