// SPDX-License-Identifier: Apache-2.0
// Reads what traced processes wrote (trace/format.h), also while they run or after they were
// killed. Files may be damaged: what makes no sense is counted and left out.
#ifndef KEEL_SRC_TRACER_READER_H_
#define KEEL_SRC_TRACER_READER_H_

#include <keel/status.h>
#include <stdbool.h>

#include "trace/format.h"

// A record as it is read: times in ns of CLOCK_MONOTONIC.
typedef struct reader_record_t {
    const trace_record_t *raw;
    uint64_t start_ns, end_ns;
    uint64_t thread;
} reader_record_t;

// A file that is open.
typedef struct reader_t {
    char *path;
    const trace_header_t *header; // mapped
    uint64_t size;
    uint32_t chunks;  // that the file has
    bool ended;       // the process had come to its end in good order before the size was taken
    uint64_t unknown; // records of no kind that is known
    const struct reader_t *names_of; // borrowed: the file with names from before a fork; NULL: none
    struct {
        const trace_name_part_t **parts; // owned; sorted by name and part
        size_t count, capacity;
    } names;
    struct {
        const trace_record_t **records; // owned; sorted by ticks
        size_t count, capacity;
        double ns_per_tick;
    } clocks;
    struct {
        const trace_record_t **records; // owned; sorted by number
        size_t count, capacity;
    } queues, threads, pairs; // the last by number and time
} reader_t;

// Opens a file and finds its names, queues and clocks. To be closed, also after a failure.
// KEEL_INVALID_ARGUMENT: it is no trace, or one of another version.
keel_status_t reader_open(reader_t *reader, const char *path) KEEL_MUST_USE;
void reader_close(reader_t *reader);

// Calls `fn` with each record of some kinds, a bit for each: in the order of time for a thread, not
// between threads.
typedef void (*reader_fn)(void *user, const reader_record_t *record);
void reader_each(const reader_t *reader, uint32_t kinds, reader_fn fn, void *user);

// What the times of a record count: trace_device_clock_t.
static inline uint32_t reader_clock(const trace_record_t *raw)
{
    static const uint32_t kinds =
        1u << TRACE_GPU | 1u << TRACE_OP | 1u << TRACE_COUNT | 1u << TRACE_MARK;
    return kinds >> raw->kind & 1 ? raw->flags >> 8 : TRACE_HOST;
}

// Puts a name by its number into `text` and returns it; "" for 0, "name 17" for one that the file
// does not tell.
const char *reader_name(const reader_t *reader, uint32_t name, char *text, size_t size);

// How many bytes a name has at most, with its end.
size_t reader_name_size(const reader_t *reader, uint32_t name);

// The record of a queue or a thread by its number; NULL: the file does not tell.
const trace_record_t *reader_queue(const reader_t *reader, uint64_t number);
const trace_record_t *reader_thread(const reader_t *reader, uint64_t number);

#endif
