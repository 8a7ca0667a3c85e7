// SPDX-License-Identifier: Apache-2.0
#include "tracer/maps.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

maps_found_t maps_find(long pid, maps_fn is, const void *user, char *path, size_t size)
{
    char name[64], line[8192];
    snprintf(name, sizeof name, "/proc/%ld/maps", pid);
    *path = 0;
    FILE *file = fopen(name, "re");
    if (!file) return kill((pid_t)pid, 0) == 0 || errno == EPERM ? MAPS_HIDDEN : MAPS_OVER;
    maps_found_t found = MAPS_OVER; // nothing is mapped by what has ended
    while (found != MAPS_FOUND && fgets(line, sizeof line, file)) {
        char *from = strchr(line, '/');
        found = MAPS_NONE;
        line[strcspn(line, "\n")] = 0;
        if (from && is(user, from) && (size_t)snprintf(path, size, "%s", from) < size)
            found = MAPS_FOUND;
    }
    fclose(file);
    if (found != MAPS_FOUND) *path = 0;
    return found;
}
