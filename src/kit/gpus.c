// SPDX-License-Identifier: Apache-2.0
#include "kit/gpus.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/log.h"
#include "base/status.h"

void gpu_uuid_print(const void *bytes, char text[GPU_TEXT])
{
    const unsigned char *byte = bytes;
    size_t at = 0, digits = 0;
    while (digits < 16 && isxdigit(byte[digits])) digits++;
    if (digits == 16) {
        snprintf(text, GPU_TEXT, "%.16s", (const char *)byte);
        return;
    }
    for (int i = 0; i < 16; i++) {
        bool dash = i == 4 || i == 6 || i == 8 || i == 10;
        at += (size_t)snprintf(text + at, GPU_TEXT - at, "%s%02x", dash ? "-" : "", byte[i]);
    }
}

static keel_status_t describe(const gpus_t *gpus, const void *library, int ordinal,
                              keel_device_listing_t *info)
{
    uint64_t memory = 0;
    char name[GPU_TEXT] = "";
    KEEL_TRY(gpus->describe(library, ordinal, name, &memory));
    snprintf(info->uri, sizeof info->uri, "%s://%d", gpus->scheme, ordinal);
    snprintf(info->name, sizeof info->name, "%s, %llu GiB", name,
             (unsigned long long)(memory >> 30));
    return NULL;
}

static keel_status_t list_fill(const gpus_t *gpus, const void *library,
                               keel_device_listing_t *devices, size_t capacity, size_t *count)
{
    int found = 0;
    KEEL_TRY(gpus->count(library, &found));
    for (int i = 0; i < found && (size_t)i < capacity; i++)
        KEEL_TRY(describe(gpus, library, i, &devices[i]));
    *count = (size_t)found;
    return NULL;
}

keel_status_t gpus_list(const gpus_t *gpus, keel_status_t opened, const void *library,
                        keel_device_listing_t *devices, size_t capacity, size_t *count)
{
    *count = 0;
    keel_status_t status = opened;
    if (!status) status = list_fill(gpus, library, devices, capacity, count);
    if (status)
        log_say(KEEL_LOG_INFO, "there are no %s:// devices: %s", gpus->scheme,
                keel_status_message(status));
    keel_status_release(status);
    return NULL;
}

// An address has more zeros before it in some tools than in others.
static bool is_named(const gpu_names_t *names, const char *which)
{
    bool uuid = strncasecmp(which, "GPU-", 4) == 0 || strncasecmp(which, "MIG-", 4) == 0;
    if (uuid && strcasecmp(names->uuid, which + 4) == 0) return true;
    const char *address = names->address;
    return strcasecmp(address + strspn(address, "0"), which + strspn(which, "0")) == 0;
}

keel_status_t gpus_find(const gpus_t *gpus, const void *library, const char *which, int *ordinal)
{
    int count = 0;
    KEEL_TRY(gpus->count(library, &count));
    bool is_number = !which[strspn(which, "0123456789")]; // nothing at all is 0
    long number = is_number ? strtol(which, NULL, 10) : -1;
    if (number >= 0 && number < count) {
        *ordinal = (int)number;
        return NULL;
    }
    for (int i = 0; number < 0 && i < count; i++) {
        gpu_names_t names = {0};
        KEEL_TRY(gpus->names(library, i, &names));
        if (!is_named(&names, which)) continue;
        *ordinal = i;
        return NULL;
    }
    return KEEL_ERROR(KEEL_NOT_FOUND,
                      "there is no %s://%s; there are 0 to %d, by number, UUID (GPU-...) or PCI "
                      "address (0000:01:00.0)",
                      gpus->scheme, which, count - 1);
}
