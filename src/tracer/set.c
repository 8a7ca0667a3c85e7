// SPDX-License-Identifier: Apache-2.0
#include "tracer/set.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/memory.h"
#include "base/status.h"
#include "base/system.h"
#include "tracer/maps.h"

static keel_status_t set_add(set_t *set, const char *path)
{
    reader_t *readers = mem_resize(set->readers, (set->count + 1) * sizeof *readers);
    if (!readers) return status_no_memory();
    set->readers = readers;
    keel_status_t status = reader_open(&readers[set->count], path);
    if (status)
        reader_close(&readers[set->count]);
    else
        set->count++;
    return status;
}

// A file that was never begun: empty, or without the mark that is written last.
static bool is_unfinished(const char *path)
{
    char magic[8] = {0};
    FILE *file = fopen(path, "re");
    if (!file) return false;
    size_t got = fread(magic, 1, sizeof magic, file);
    fclose(file);
    for (size_t i = 0; i < got; i++)
        if (magic[i]) return false;
    return true;
}

static bool ends_in(const char *text, const char *end)
{
    size_t length = strlen(text), of_end = strlen(end);
    return length > of_end && strcmp(text + length - of_end, end) == 0;
}

static bool path_is(const void *name, const char *path)
{
    return ends_in(path, name);
}

// Whether the process that has this file, PID-NUMBER.trace, runs and has it mapped.
static maps_found_t writer_find(const char *path)
{
    char mapped[4096];
    const char *name = strrchr(path, '/'); // with its slash
    long pid = name ? strtol(name + 1, NULL, 10) : 0;
    return pid > 0 ? maps_find(pid, path_is, name, mapped, sizeof mapped) : MAPS_OVER;
}

// Of a machine that was started anew since, or of another one.
static bool is_of_other_boot(const trace_header_t *header)
{
    char boot[sizeof header->boot] = "";
    system_boot_name(boot, sizeof boot);
    return *boot && *header->boot && strncmp(boot, header->boot, sizeof boot) != 0;
}

static void set_leave_out(set_t *set, keel_status_t why)
{
    set->left_out++;
    if (set->why)
        keel_status_release(why);
    else
        set->why = why;
}

static keel_status_t empty_add(set_t *set, const char *path)
{
    char **empty = mem_resize(set->empty, (set->empty_count + 1) * sizeof *empty);
    if (!empty) return status_no_memory();
    set->empty = empty;
    empty[set->empty_count] = mem_copy_text(path);
    if (!empty[set->empty_count]) return status_no_memory();
    set->empty_count++;
    set_leave_out(set,
                  KEEL_ERROR(KEEL_CORRUPT,
                             "%s was never begun: its process was killed, or had no room", path));
    return NULL;
}

static keel_status_t file_add(set_t *set, const char *path)
{
    // Asked before anything is read: of a process that is over, all is read. One that has its file
    // not mapped yet may begin it meanwhile; later, its number was given to another process.
    bool begun = !is_unfinished(path);
    maps_found_t writer = writer_find(path);
    bool runs = writer == MAPS_FOUND || writer == MAPS_HIDDEN || (writer == MAPS_NONE && !begun);
    if (!begun && is_unfinished(path)) {
        set->alive |= runs;
        return runs ? NULL : empty_add(set, path);
    }
    keel_status_t status = set_add(set, path);
    if (!status) {
        const reader_t *reader = &set->readers[set->count - 1];
        set->alive |= runs && !reader->ended && !is_of_other_boot(reader->header);
    }
    if (keel_status_code(status) != KEEL_INVALID_ARGUMENT) return status;
    set_leave_out(set, status);
    return NULL;
}

static keel_status_t folder_add(set_t *set, const char *folder, DIR *open)
{
    const struct dirent *entry;
    while ((entry = readdir(open))) {
        char path[4096];
        if (!ends_in(entry->d_name, ".trace")) continue;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        KEEL_TRY(file_add(set, path));
    }
    // Nothing but files that are no traces is a mistake, and not a trace.
    if (set->count || set->alive || set->left_out == set->empty_count) return NULL;
    keel_status_t why = set->why;
    set->why = NULL;
    return why;
}

static int header_compare(const void *a, const void *b)
{
    const trace_header_t *x = ((const reader_t *)a)->header, *y = ((const reader_t *)b)->header;
    if (x->pid != y->pid) return x->pid < y->pid ? -1 : 1;
    return (x->number > y->number) - (x->number < y->number);
}

// A file with names of an older one is never its own, nor that of its own child: pids alone cannot
// tell, since the system gives them again, so a circle is cut.
static void names_link(set_t *set)
{
    for (size_t i = 0; i < set->count; i++) {
        reader_t *reader = &set->readers[i];
        for (size_t k = 0; k < set->count && reader->header->names_pid; k++) {
            const reader_t *other = &set->readers[k];
            if (other->header->pid != reader->header->names_pid ||
                other->header->number != reader->header->names_number)
                continue;
            const reader_t *up = other;
            while (up && up != reader) up = up->names_of;
            if (!up) reader->names_of = other;
        }
    }
}

keel_status_t set_open(set_t *set, const char *path)
{
    struct stat about;
    *set = (set_t){0};
    if (stat(path, &about) == 0 && S_ISDIR(about.st_mode)) {
        DIR *folder = opendir(path);
        if (!folder) return status_from_errno(status_errno_code(errno), errno, path);
        keel_status_t status = folder_add(set, path, folder);
        closedir(folder);
        if (status) return status;
    } else {
        KEEL_TRY(set_add(set, path));
    }
    if (set->count) qsort(set->readers, set->count, sizeof *set->readers, header_compare);
    names_link(set);
    return NULL;
}

void set_close(set_t *set)
{
    for (size_t i = 0; i < set->count; i++) reader_close(&set->readers[i]);
    mem_free(set->readers);
    for (size_t i = 0; i < set->empty_count; i++) mem_free(set->empty[i]);
    mem_free(set->empty);
    keel_status_release(set->why);
    *set = (set_t){0};
}
