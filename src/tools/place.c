// SPDX-License-Identifier: Apache-2.0
#include "tools/place.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool place_own(char *folder, size_t size)
{
    ssize_t length = readlink("/proc/self/exe", folder, size - 1);
    if (length < 0) return false;
    folder[length] = 0;
    char *slash = strrchr(folder, '/');
    if (!slash) return false;
    *slash = 0;
    return true;
}

bool place_find(char *folder, size_t size, const char *file, const char *built,
                const char *installed)
{
    const char *const places[] = {built, installed};
    char program[3072];
    if (!place_own(program, sizeof program)) return false;
    for (size_t k = 0; k < sizeof places / sizeof *places; k++) {
        char path[4096 + 64];
        snprintf(folder, size, "%s/%s", program, places[k]);
        snprintf(path, sizeof path, "%s/%s", folder, file);
        if (access(path, R_OK) == 0) return true;
    }
    return false;
}

bool place_prepend(const char *name, const char *separator, const char *folder, const char *rest)
{
    const char *old = getenv(name);
    size_t size = strlen(folder) + strlen(rest) + (old ? strlen(old) : 0) + 2;
    char *value = malloc(size);
    if (!value) return false;
    snprintf(value, size, "%s%s%s%s", folder, rest, old ? separator : "", old ? old : "");
    bool set = setenv(name, value, 1) == 0;
    free(value);
    return set;
}
