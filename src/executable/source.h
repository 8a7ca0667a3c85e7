// SPDX-License-Identifier: Apache-2.0
// Untrusted bytes, in a file or in memory, read by offset. A file may change or
// shrink under the reader: it is read, never mapped, so what was checked stays what it was, and a
// file that ends too early is an error and no signal. A source may be read from any thread.
#ifndef KEEL_SRC_EXECUTABLE_SOURCE_H_
#define KEEL_SRC_EXECUTABLE_SOURCE_H_

#include <keel/status.h>

typedef struct source_t {
    const unsigned char *data; // borrowed; NULL: a file
    int fd;                    // owned; -1: memory
    uint64_t size;
} source_t;

static inline source_t source_of_memory(const void *data, size_t size)
{
    return (source_t){data, -1, size};
}

// Opens a regular file. KEEL_NOT_FOUND, KEEL_IO, KEEL_INVALID_ARGUMENT if it is no regular file.
keel_status_t source_open(const char *path, source_t *source) KEEL_MUST_USE;
void source_finish(source_t *source);

// All of the bytes, or KEEL_CORRUPT if the source ends before, or KEEL_IO.
keel_status_t source_read(const source_t *source, void *to, uint64_t size,
                          uint64_t offset) KEEL_MUST_USE;

#endif
