// SPDX-License-Identifier: Apache-2.0
// keel trace start, stop and status: of a program that is traced and runs.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/trace/trace.h"
#include "tracer/control.h"

// Finds the folder into which a process records: it has its file there mapped. False: it has none.
static bool folder_find(const char *maps, long pid, char *folder, size_t size)
{
    char line[8192], own[64];
    FILE *file = fopen(maps, "re");
    snprintf(own, sizeof own, "/%ld-", pid);
    bool found = false;
    while (file && !found && fgets(line, sizeof line, file)) {
        char *path = strchr(line, '/'), *last = path ? strrchr(path, '/') : NULL;
        if (!last || strncmp(last, own, strlen(own)) != 0 || !strstr(last, ".trace")) continue;
        *last = 0;
        found = (size_t)snprintf(folder, size, "%s", path) < size;
    }
    if (file) fclose(file);
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
    char maps[64], folder[4096], *end = NULL;
    long pid = argc == 2 ? strtol(argv[1], &end, 10) : 0;
    if (pid <= 0 || *end) {
        fprintf(stderr, "keel trace %s: the number of a process is wanted\n", argv[0]);
        return 2;
    }
    snprintf(maps, sizeof maps, "/proc/%ld/maps", pid);
    FILE *file = fopen(maps, "re");
    if (!file) {
        fprintf(stderr, "keel trace: there is no process %ld that may be looked at: %s\n", pid,
                strerror(errno));
        return 1;
    }
    fclose(file);
    if (!folder_find(maps, pid, folder, sizeof folder)) {
        fprintf(stderr,
                "keel trace: process %ld is not traced, or has recorded nothing so far; start it "
                "by keel trace -- PROGRAM\n",
                pid);
        return 1;
    }
    trace_control_t *control;
    keel_status_t status = control_open(folder, &control);
    return status ? trace_complain(status) : control_do(argv[0], pid, control);
}
