// SPDX-License-Identifier: Apache-2.0
#include "tools/trace/parts.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/trace/trace.h"
#include "tracer/merge.h"
#include "tracer/rocpd.h"

bool parts_are_written(const char *folder)
{
    set_t set;
    keel_status_t status = set_open(&set, folder);
    bool written = !status && set.alive;
    keel_status_release(status);
    set_close(&set);
    return written;
}

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

// Nothing is in the folder but its control.
static bool folder_is_bare(const char *folder)
{
    static const char *const known[] = {".", "..", "control"};
    DIR *open = opendir(folder);
    const struct dirent *entry;
    bool bare = open;
    while (bare && (entry = readdir(open))) {
        bare = false;
        for (size_t i = 0; i < sizeof known / sizeof *known; i++)
            bare = bare || strcmp(entry->d_name, known[i]) == 0;
    }
    if (open) closedir(open);
    return bare;
}

void parts_remove_read(const char *folder, const set_t *set)
{
    for (size_t i = 0; i < set->count; i++) unlink(set->readers[i].path);
    for (size_t i = 0; i < set->empty_count; i++) unlink(set->empty[i]);
    if (!folder_is_bare(folder)) return;
    char control[4096];
    snprintf(control, sizeof control, "%s/control", folder);
    unlink(control);
    rmdir(folder); // refused if a process has begun its file just then
}

// Adds the parts to the trace, if there is one, and removes them.
static keel_status_t parts_add(const char *file, const char *parts, const set_t *set)
{
    model_t model = {0};
    int64_t moved_ns;
    if (set->alive)
        return KEEL_ERROR(KEEL_FAILED_PRECONDITION, "processes run still that write into %s",
                          parts);
    if (!set->count) return KEEL_ERROR(KEEL_NOT_FOUND, "%s has no records", parts);
    keel_status_t status = access(file, F_OK) == 0 ? merge_add(&model, file, &moved_ns) : NULL;
    if (!status) status = merge_add_set(&model, set);
    if (!status) status = rocpd_write(&model, file);
    model_finish(&model);
    if (!status) parts_remove_read(parts, set);
    return status;
}

static keel_status_t parts_finish(const char *file, const char *parts)
{
    set_t set;
    keel_status_t status = set_open(&set, parts);
    if (!status) status = parts_add(file, parts, &set);
    if (!status && set.left_out)
        fprintf(stderr, "keel trace finish: INCOMPLETE: %zu files are left out; the first: %s\n",
                set.left_out, keel_status_message(set.why));
    set_close(&set);
    return status;
}

// Opens a folder and locks it: of several processes whose last act it is to finish it, one does,
// and it may be gone, or made anew, when the next has the lock. -1 with errno if it is not there.
static int folder_lock(const char *folder)
{
    for (;;) {
        struct stat locked, now;
        int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0) return -1;
        int error = flock(fd, LOCK_EX) != 0 || fstat(fd, &locked) != 0 ? errno : 0;
        if (!error && stat(folder, &now) == 0 && locked.st_dev == now.st_dev &&
            locked.st_ino == now.st_ino)
            return fd;
        close(fd);
        if (error) return errno = error, -1;
    }
}

int trace_finish_parts(int argc, char **argv)
{
    char parts[4096];
    if (argc != 2 || (size_t)snprintf(parts, sizeof parts, "%s.parts", argv[1]) >= sizeof parts) {
        fprintf(stderr, "keel trace finish: one trace is wanted, whose name with .parts behind it "
                        "a folder has\n");
        return 2;
    }
    bool was_there = access(parts, F_OK) == 0;
    int fd = folder_lock(parts);
    if (fd < 0) {
        if (was_there && errno == ENOENT) return 0; // another one has done it
        fprintf(stderr, "keel trace finish: %s: %s\n", parts, strerror(errno));
        return 1;
    }
    keel_status_t status = parts_finish(argv[1], parts);
    close(fd);
    return status ? trace_complain(status) : 0;
}
