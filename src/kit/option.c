// SPDX-License-Identifier: Apache-2.0
#include "kit/option.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"

keel_status_t option_choice(const char *key, const char *value, const char *words[2], int *choice)
{
    *choice = strcmp(value, words[1]) == 0;
    if (*choice || strcmp(value, words[0]) == 0) return NULL;
    return KEEL_ERROR(KEEL_INVALID_ARGUMENT, "option %s is '%s'; it must be %s or %s", key, value,
                      words[0], words[1]);
}

keel_status_t option_handles(const char *key, const char *value, void **handles, size_t most)
{
    const char *next = value;
    for (size_t i = 0; i < most && !strchr(value, '-'); i++) {
        char *end;
        errno = 0;
        unsigned long long number = strtoull(next, &end, 0);
        handles[i] = (void *)(uintptr_t)number;
        if (errno || end == next || !number) break;
        if (!*end) return NULL;
        if (*end != ',') break;
        next = end + 1;
    }
    if (most == 1)
        return KEEL_ERROR(KEEL_INVALID_ARGUMENT, "option %s is '%s'; it must be a handle, as 0x...",
                          key, value);
    return KEEL_ERROR(KEEL_INVALID_ARGUMENT,
                      "option %s is '%s'; it must be 1 to %zu handles, as 0x...,0x...", key, value,
                      most);
}
