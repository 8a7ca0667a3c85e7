// SPDX-License-Identifier: Apache-2.0
// keel trace start, stop and status: of a program that is traced and runs.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/trace/trace.h"
#include "tracer/control.h"
#include "tracer/maps.h"

// The file into which the process records.
static bool is_own_trace(const void *pid, const char *path)
{
    char own[64];
    const char *last = strrchr(path, '/');
    snprintf(own, sizeof own, "/%ld-", *(const long *)pid);
    return last && strncmp(last, own, strlen(own)) == 0 && strstr(last, ".trace");
}

// Finds the folder of a process's trace: by its file, or, if it has recorded nothing so far, by the
// control, which it has mapped from its start.
static maps_found_t folder_find(long pid, char *folder, size_t size)
{
    maps_found_t found = maps_find(pid, is_own_trace, &pid, folder, size);
    if (found == MAPS_NONE) found = maps_find(pid, control_is, NULL, folder, size);
    if (found == MAPS_FOUND) *strrchr(folder, '/') = 0;
    return found;
}

static int control_do(const char *verb, long pid, trace_control_t *control)
{
    if (strcmp(verb, "start") == 0) control_set(control, true);
    if (strcmp(verb, "stop") == 0) control_set(control, false);
    printf("process %ld: %s\n", pid, control_records(control) ? "recording" : "stopped");
    return 0;
}

int trace_control(int argc, char **argv)
{
    char folder[4096], *end = NULL;
    long pid = argc == 2 ? strtol(argv[1], &end, 10) : 0;
    if (pid <= 0 || *end) {
        fprintf(stderr, "keel trace %s: the number of a process is wanted\n", argv[0]);
        return 2;
    }
    maps_found_t found = folder_find(pid, folder, sizeof folder);
    if (found == MAPS_OVER || found == MAPS_HIDDEN) {
        fprintf(stderr, "keel trace: there is no process %ld that may be looked at\n", pid);
        return 1;
    }
    if (found != MAPS_FOUND) {
        fprintf(stderr,
                "keel trace: process %ld is not traced; start it by keel trace -- PROGRAM\n", pid);
        return 1;
    }
    trace_control_t *control;
    keel_status_t status = control_open(folder, &control);
    return status ? trace_complain(status) : control_do(argv[0], pid, control);
}
