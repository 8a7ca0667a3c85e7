// SPDX-License-Identifier: Apache-2.0
#include "tracer/control.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/status.h"

keel_status_t control_open(const char *folder, trace_control_t **control)
{
    *control = trace_control_open(folder);
    return *control ? NULL : status_from_errno(status_errno_code(errno), errno, folder);
}

bool control_is(const void *user, const char *path)
{
    (void)user;
    static const char zeros[TRACE_CONTROL_SIZE];
    char page[TRACE_CONTROL_SIZE + 1] = "";
    trace_control_t word;
    const char *name = strrchr(path, '/');
    if (!name || strcmp(name, "/control") != 0) return false;
    FILE *file = fopen(path, "re");
    size_t got = file ? fread(page, 1, sizeof page, file) : 0;
    if (file) fclose(file);
    memcpy(&word, page, sizeof word);
    return got == sizeof zeros && word.paused <= 1 &&
           memcmp(page + sizeof word, zeros, sizeof zeros - sizeof word) == 0;
}

void control_set(trace_control_t *control, bool records)
{
    atomic_store_explicit(&control->paused, !records, memory_order_relaxed);
}

bool control_records(const trace_control_t *control)
{
    return !atomic_load_explicit(&((trace_control_t *)(uintptr_t)control)->paused,
                                 memory_order_relaxed);
}
