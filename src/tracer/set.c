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

static bool ends_in_trace(const char *name)
{
    static const char end[] = ".trace";
    size_t length = strlen(name);
    return length > sizeof end - 1 && strcmp(name + length - (sizeof end - 1), end) == 0;
}

static keel_status_t folder_add(set_t *set, const char *folder, DIR *open)
{
    const struct dirent *entry;
    while ((entry = readdir(open))) {
        char path[4096];
        if (!ends_in_trace(entry->d_name)) continue;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        if (is_unfinished(path))
            set->unfinished++;
        else
            KEEL_TRY(set_add(set, path));
    }
    return NULL;
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
    *set = (set_t){0};
}
