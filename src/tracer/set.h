// SPDX-License-Identifier: Apache-2.0
// The files of one trace.
#ifndef KEEL_SRC_TRACER_SET_H_
#define KEEL_SRC_TRACER_SET_H_

#include "tracer/reader.h"

// Zeroed, it is empty.
typedef struct set_t {
    reader_t *readers; // owned
    size_t count;
    bool alive; // a process may have written on since its file was opened
    // Files without anything to read: damaged, or of processes that were killed, or found no room,
    // before they wrote the header.
    size_t left_out;
    keel_status_t why; // owned: of the first of these
    char **empty;      // owned, with the paths: those of them that were never begun
    size_t empty_count;
} set_t;

// Opens a file, or all files of a folder whose names end in .trace, and lets those that were
// written by children of a fork find the names of their parents. Files of a folder that are no
// traces are left out, unless there is no other. To be closed, also after a failure.
keel_status_t set_open(set_t *set, const char *path) KEEL_MUST_USE;
void set_close(set_t *set);

#endif
