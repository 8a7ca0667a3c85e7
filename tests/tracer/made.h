// SPDX-License-Identifier: Apache-2.0
// A trace file that a test makes by hand: 1 tick is 2 ns, and tick 0 is at 5000 ns.
#ifndef TESTS_TRACER_MADE_H_
#define TESTS_TRACER_MADE_H_

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "trace/format.h"

typedef struct made_t {
    _Alignas(64) unsigned char bytes[TRACE_HEADER_SIZE + TRACE_CHUNK];
    trace_header_t *header;
    trace_record_t *next;
    char path[32];
} made_t;

static inline trace_record_t *made_add(made_t *made, trace_kind_t kind, uint64_t start,
                                       uint64_t end)
{
    trace_record_t *record = made->next++;
    record->kind = (uint16_t)kind;
    record->start = start;
    record->end = end;
    return record;
}

static inline void made_name(made_t *made, uint32_t name, const char *text)
{
    trace_name_part_t *part = (trace_name_part_t *)(void *)made_add(made, TRACE_NAME, 0, 0);
    part->name = name;
    snprintf(part->text, sizeof part->text, "%s", text);
}

static inline void made_clocks(made_t *made, uint64_t ticks, uint64_t ns)
{
    trace_record_t *record = made_add(made, TRACE_CLOCKS, ticks, 1);
    record->id = 500000000;
    record->a[0] = ns;
}

static inline void made_begin(made_t *made)
{
    memset(made, 0, sizeof *made);
    made->header = (trace_header_t *)(void *)made->bytes;
    made->next = (trace_record_t *)(void *)(made->bytes + TRACE_HEADER_SIZE);
    memcpy(made->header->magic, TRACE_MAGIC, sizeof TRACE_MAGIC);
    made->header->version = TRACE_VERSION;
    made->header->slots = TRACE_SLOTS;
    made->header->pid = 7;
    made->header->chunks = 1;
    made->header->ended = 1;
    made_add(made, TRACE_THREAD, 0, 0)->id = 77;
    made_clocks(made, 0, 5000);
}

// Writes it to a file of its own; 0, or 1 if that fails.
static inline int made_write(made_t *made)
{
    strcpy(made->path, "/tmp/keel-made-XXXXXX");
    int fd = mkstemp(made->path);
    if (fd < 0) return 1;
    ssize_t written = write(fd, made->bytes, sizeof made->bytes);
    close(fd);
    return written != (ssize_t)sizeof made->bytes;
}

#endif
