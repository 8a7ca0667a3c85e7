// SPDX-License-Identifier: Apache-2.0
#include "tools/trace/parts.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "tools/trace/trace.h"
#include "tracer/merge.h"
#include "tracer/rocpd.h"

void parts_remove(const char *folder)
{
    DIR *open = opendir(folder);
    const struct dirent *entry;
    while (open && (entry = readdir(open))) {
        char path[4096];
        size_t length = strlen(entry->d_name);
        if (strcmp(entry->d_name, "control") != 0 &&
            (length < 6 || strcmp(entry->d_name + length - 6, ".trace") != 0))
            continue;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        unlink(path);
    }
    if (open) closedir(open);
    rmdir(folder);
}

bool parts_are_alive(const set_t *set)
{
    for (size_t i = 0; i < set->count; i++) {
        const trace_header_t *header = set->readers[i].header;
        if (!header->ended && kill((pid_t)header->pid, 0) == 0) return true;
    }
    return false;
}

// Adds the parts to the trace, if there is one, and removes them.
static keel_status_t parts_add(const char *file, const char *parts)
{
    model_t model = {0};
    int64_t moved_ns;
    keel_status_t status = access(file, F_OK) == 0 ? merge_add(&model, file, &moved_ns) : NULL;
    if (!status) status = merge_add(&model, parts, &moved_ns);
    if (!status) status = rocpd_write(&model, file);
    model_finish(&model);
    if (!status) parts_remove(parts);
    return status;
}

// Under a lock of the folder: of several processes whose last act this is, one does it.
static keel_status_t parts_finish(const char *file, const char *parts)
{
    set_t set;
    keel_status_t status = set_open(&set, parts);
    bool alive = !status && parts_are_alive(&set);
    set_close(&set);
    if (alive)
        return KEEL_ERROR(KEEL_FAILED_PRECONDITION, "processes run still that write into %s",
                          parts);
    return status ? status : parts_add(file, parts);
}

int trace_finish_parts(int argc, char **argv)
{
    char parts[4096];
    if (argc != 2 || (size_t)snprintf(parts, sizeof parts, "%s.parts", argv[1]) >= sizeof parts) {
        fprintf(stderr, "keel trace finish: one trace is wanted, whose name with .parts behind it "
                        "a folder has\n");
        return 2;
    }
    int fd = open(parts, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || flock(fd, LOCK_EX) != 0) {
        fprintf(stderr, "keel trace finish: %s: %s\n", parts, strerror(errno));
        return 1;
    }
    keel_status_t status = access(parts, F_OK) == 0 ? parts_finish(argv[1], parts) : NULL;
    close(fd);
    return status ? trace_complain(status) : 0;
}
