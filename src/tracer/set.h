// SPDX-License-Identifier: Apache-2.0
// The files of one trace.
#ifndef KEEL_SRC_TRACER_SET_H_
#define KEEL_SRC_TRACER_SET_H_

#include "tracer/reader.h"

// Zeroed, it is empty.
typedef struct set_t {
    reader_t *readers; // owned
    size_t count;
    size_t unfinished; // files that a process made and was killed before it wrote the header
} set_t;

// Opens a file, or all files of a folder whose names end in .trace, and lets those that were
// written by children of a fork find the names of their parents. To be closed, also after a
// failure.
keel_status_t set_open(set_t *set, const char *path) KEEL_MUST_USE;
void set_close(set_t *set);

#endif
