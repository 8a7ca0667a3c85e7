// SPDX-License-Identifier: Apache-2.0
#include "kit/mapping.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/status.h"

static const char *const maps_path = "/proc/self/maps";

typedef struct line_t {
    uintptr_t start, end;
    char rights[5]; // "rwxs", or "-" for each that it has not, and "p" for private
    unsigned long long inode;
} line_t;

// The next mapping, in the order of addresses; after the last, one behind all memory. Names are
// skipped, however long.
static keel_status_t line_read(FILE *maps, line_t *line)
{
    *line = (line_t){0};
    int found = fscanf(maps, "%" SCNxPTR "-%" SCNxPTR " %4s %*[^ ] %*[^ ] %llu%*[^\n]",
                       &line->start, &line->end, line->rights, &line->inode);
    if (found == 4) return NULL;
    int error = ferror(maps) ? errno : EBADMSG;
    *line = (line_t){.start = UINTPTR_MAX, .end = UINTPTR_MAX};
    if (found == EOF && !ferror(maps)) return NULL;
    return status_from_errno(KEEL_IO, error, maps_path);
}

keel_status_t mapping_of(const void *data, uint64_t size, mapping_t *mapping)
{
    uintptr_t at = (uintptr_t)data, end = at + size;
    FILE *maps = fopen(maps_path, "re");
    if (!maps) return status_from_errno(KEEL_IO, errno, maps_path);
    keel_status_t status = NULL;
    *mapping = MAPPING_PLAIN;
    while (!status && *mapping == MAPPING_PLAIN && at < end) {
        line_t line;
        status = line_read(maps, &line);
        if (status || line.end <= at) continue;
        if (line.start > at || line.rights[0] != 'r')
            *mapping = MAPPING_NONE;
        else if (line.rights[3] != 's' && line.inode)
            *mapping = MAPPING_PRIVATE_FILE;
        at = line.end;
    }
    fclose(maps);
    return status;
}

bool mapping_is_writable(const void *data, uint64_t size)
{
    uintptr_t at = (uintptr_t)data, end = at + size;
    FILE *maps = fopen(maps_path, "re");
    if (!maps) return true;
    keel_status_t status = NULL;
    bool writable = true;
    while (!status && writable && at < end) {
        line_t line;
        status = line_read(maps, &line);
        if (status || line.end <= at) continue;
        writable = line.start <= at && line.rights[1] == 'w';
        at = line.end;
    }
    fclose(maps);
    keel_status_release(status);
    return writable;
}
