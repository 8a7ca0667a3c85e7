// SPDX-License-Identifier: Apache-2.0
#include "kit/library.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/fork.h"
#include "base/status.h"

// Memory of the C library's: it stays, so it does not count as this library's.
struct library_t {
    library_t *next;
    void *handle, *table;
    char *path;          // NULL: where the system keeps it
    uint32_t generation; // of fork
};

static void library_discard(library_t *library)
{
    if (library->handle) dlclose(library->handle);
    free(library->table);
    free(library->path);
    free(library);
}

static keel_status_t not_opened(const library_kind_t *kind, const char *why)
{
    return KEEL_ERROR(KEEL_NOT_FOUND, "no %s can be opened here: %s", kind->name, why);
}

// The system's: one that another library has opened already, else the best. If none can be opened,
// what one lacks that is there says more than that another is not.
static keel_status_t system_open(const library_kind_t *kind, void **handle)
{
    enum { COUNT = sizeof kind->files / sizeof *kind->files };
    keel_status_t status = NULL;
    bool there = false; // the status speaks of one that is there
    for (int i = 0; !*handle && i < COUNT && kind->files[i]; i++)
        *handle = dlopen(kind->files[i], RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
    for (int i = 0; !*handle && i < COUNT && kind->files[i]; i++) {
        *handle = dlopen(kind->files[i], RTLD_NOW | RTLD_LOCAL);
        if (*handle || there) continue;
        const char *why = dlerror();
        there = strncmp(why, kind->files[i], strlen(kind->files[i])) != 0;
        if (status && !there) continue;
        keel_status_release(status);
        status = not_opened(kind, why);
    }
    if (!*handle) return status;
    keel_status_release(status);
    return NULL;
}

static keel_status_t library_start(const library_kind_t *kind, const char *path, library_t *library)
{
    library->generation = fork_generation();
    library->table = calloc(1, kind->size);
    library->path = path ? strdup(path) : NULL;
    if (!library->table || (path && !library->path)) return status_no_memory();
    if (!path) KEEL_TRY(system_open(kind, &library->handle));
    if (path && !(library->handle = dlopen(path, RTLD_NOW | RTLD_LOCAL)))
        return not_opened(kind, dlerror());
    return kind->fill(library->handle, library->table);
}

static bool is_at(const library_t *library, const char *path)
{
    return path && library->path ? strcmp(path, library->path) == 0 : !path && !library->path;
}

// The one of that path; if there is none, `made` from now on.
static library_t *library_find(library_kind_t *kind, const char *path, library_t *made)
{
    lock_enter(&kind->lock);
    library_t *library = kind->first;
    while (library && !is_at(library, path)) library = library->next;
    if (!library && made) {
        made->next = kind->first;
        kind->first = library = made;
    }
    lock_leave(&kind->lock);
    return library;
}

static keel_status_t library_make(library_kind_t *kind, const char *path, library_t **library)
{
    library_t *made = calloc(1, sizeof *made);
    if (!made) return status_no_memory();
    keel_status_t status = library_start(kind, path, made);
    if (!status) *library = library_find(kind, path, made);
    if (*library != made) library_discard(made); // it failed, or another thread was faster
    return status;
}

keel_status_t library_open(library_kind_t *kind, const char *path, const void **table)
{
    library_t *library = library_find(kind, path, NULL);
    if (!library) KEEL_TRY(library_make(kind, path, &library));
    if (!fork_is_ours(library->generation))
        return KEEL_ERROR(KEEL_UNSUPPORTED,
                          "this process was forked from one that used the %s, which then works in "
                          "that one alone; fork before, or exec",
                          kind->name);
    *table = library->table;
    return NULL;
}

keel_status_t library_started(const char *name, keel_status_t status)
{
    if (keel_status_code(status) == KEEL_NOT_FOUND)
        return keel_status_wrap(status, "%s is here, but no GPU is that it can use", name);
    return keel_status_wrap(status_as(status, KEEL_UNSUPPORTED), "%s is here, but does not start",
                            name);
}
