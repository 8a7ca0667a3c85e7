// SPDX-License-Identifier: Apache-2.0
// Libraries of vendors, opened when they are first asked for. They keep threads and state of the
// process, so they stay, and each is opened once.
#ifndef KEEL_SRC_KIT_LIBRARY_H_
#define KEEL_SRC_KIT_LIBRARY_H_

#include <keel/status.h>
#include <stddef.h>

#include "base/lock.h"

typedef struct library_t library_t;

// All libraries of one kind; a static variable of the driver's.
typedef struct library_kind_t {
    const char *name;     // for people
    const char *files[4]; // where the system keeps it, best first: one per major release
    size_t size;          // of the table of its symbols
    // Looks them up and starts the library, which may take seconds. The table is zero.
    keel_status_t (*fill)(void *handle, void *table);
    lock_t lock;
    library_t *first;
} library_kind_t;

// The table of the library at `path`, or where the system keeps it (NULL); it stays. Of several
// releases that the system has, the one that the process has open already is taken. KEEL_NOT_FOUND
// if there is none, KEEL_UNSUPPORTED in a child of a process that has opened it, or what `fill`
// returned, which is tried again the next time. Any thread; who asks for another one does not wait.
keel_status_t library_open(library_kind_t *kind, const char *path, const void **table);

// What `fill` returns when the library is there and has ended its start with `status`, which is
// taken over: KEEL_NOT_FOUND if it has no GPU, else KEEL_UNSUPPORTED, with the reason. `name` is
// what people install, for the message.
keel_status_t library_started(const char *name, keel_status_t status);

#endif
