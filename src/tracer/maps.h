// SPDX-License-Identifier: Apache-2.0
// What another process has mapped, by which its trace is known.
#ifndef KEEL_SRC_TRACER_MAPS_H_
#define KEEL_SRC_TRACER_MAPS_H_

#include <stdbool.h>
#include <stddef.h>

typedef enum maps_found_t {
    MAPS_OVER,   // there is no such process, or its parent has yet to ask how it ended
    MAPS_HIDDEN, // it runs, and what it has mapped cannot be seen
    MAPS_NONE,   // it runs, and has no such file mapped
    MAPS_FOUND,
} maps_found_t;

// Looks for a file that a process has mapped and for which `is` holds, and puts its path into
// `path`; "" if there is none.
typedef bool (*maps_fn)(const void *user, const char *path);
maps_found_t maps_find(long pid, maps_fn is, const void *user, char *path, size_t size);

#endif
