// SPDX-License-Identifier: Apache-2.0
// A trace file that is being written: its chunks, dealt out without locks.
#ifndef KEEL_SRC_TRACE_FILE_H_
#define KEEL_SRC_TRACE_FILE_H_

#include <stdbool.h>

#include "trace/format.h"

// Zeroed, it is no file.
typedef struct trace_file_t {
    trace_header_t *header; // NULL: no file; mapped, shared with the file
    uint64_t mapped;        // bytes
    int fd; // as long as it is of this file: a program may close what it does not know
    uint64_t device, inode;
    char path[4096];
    uint32_t capacity; // chunks that fit in the mapping
    _Atomic bool full; // for good: asking the disk for each record would take too long
    // Chunks that threads left when they ended, to be filled up by others: a stack. The upper half
    // counts changes, the lower is a chunk's number and 1; 0: empty.
    _Atomic uint64_t spare;
    struct trace_spare_t *spares; // for each chunk; mapped
} trace_file_t;

// The rest of a chunk.
typedef struct trace_room_t {
    trace_record_t *next, *end;
} trace_room_t;

// Makes FOLDER/PID-NUMBER.trace with the first number that is free and fills in the header, but
// for `names_`. Returns 0 or an errno.
int trace_file_create(trace_file_t *file, const char *folder, trace_clock_t clock);

// Lets others see it, once the header is whole.
void trace_file_publish(const trace_file_t *file);

// Room for more records, written by the caller alone. False: there is none, or the disk is full,
// and stays so.
// Calls the system; any thread.
bool trace_file_take(trace_file_t *file, trace_room_t *room);

// Takes back the rest of a chunk, for other threads. Any thread.
void trace_file_return(trace_file_t *file, trace_room_t room);

// Closes the descriptor alone; in the child of a fork.
void trace_file_leave(trace_file_t *file);

// Gives up the mappings and the descriptor; the file stays.
void trace_file_close(trace_file_t *file);

#endif
