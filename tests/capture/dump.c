// SPDX-License-Identifier: Apache-2.0
// dump FOLDER: the records of a trace as lines of text, for tests to read: fields with tabs between
// them.
//
//     process PID ended|killed LOST UNKNOWN
//     call NAME START END THREAD NUMBER RESULT STREAM KERNEL DOMAIN
//     kernel NAME START END DEVICE QUEUE CALL GRID GROUP TICKS CLOCK
//     copy KIND START END DEVICE QUEUE CALL BYTES TICKS CLOCK
//     span|mark NAME START END THREAD
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "tracer/set.h"

enum { NAME = 4096 };

static const char *name_of(const reader_t *reader, uint64_t number, char text[NAME])
{
    reader_name(reader, (uint32_t)number, text, NAME);
    return *text ? text : "-";
}

static void queue_print(const reader_t *reader, uint64_t number)
{
    char queue[NAME], device[NAME];
    const trace_record_t *record = reader_queue(reader, number);
    printf("\t%s\t%s", record ? name_of(reader, record->a[0], device) : "?",
           record ? name_of(reader, record->name, queue) : "?");
}

static void gpu_print(const reader_t *reader, const reader_record_t *record)
{
    static const char *const kinds[] = {"other",  "to-device", "to-host", "within",
                                        "across", "host",      "set"};
    const trace_record_t *raw = record->raw;
    char name[NAME];
    bool copy = (raw->flags & 0xff) == TRACE_OP_COPY;
    printf("%s\t%s\t%" PRIu64 "\t%" PRIu64, copy ? "copy" : "kernel",
           copy ? kinds[raw->a[1] % TRACE_COPIES] : name_of(reader, raw->name, name),
           record->start_ns, record->end_ns);
    queue_print(reader, raw->id);
    printf("\t%" PRIu64, raw->submission);
    if (copy)
        printf("\t%" PRIu64, raw->a[0]);
    else
        printf("\t%u,%u,%u\t%u,%u,%u", raw->shape.grid[0], raw->shape.grid[1], raw->shape.grid[2],
               raw->shape.group_x, raw->shape.group_y, raw->shape.group_z);
    printf("\t%" PRIu64 "\t%u\n", raw->end - raw->start, raw->flags >> 8);
}

static void record_print(void *user, const reader_record_t *record)
{
    const reader_t *reader = user;
    const trace_record_t *raw = record->raw;
    char name[NAME], kernel[NAME], domain[NAME];
    switch (raw->kind) {
    case TRACE_CALL:
        printf("call\t%s\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\t%" PRIx64
               "\t%s\t%s\n",
               name_of(reader, raw->name, name), record->start_ns, record->end_ns, record->thread,
               raw->id, trace_call_result(raw), raw->submission,
               name_of(reader, raw->flags ? 0 : raw->a[1], kernel),
               name_of(reader, trace_call_domain(raw), domain));
        break;
    case TRACE_GPU: gpu_print(reader, record); break;
    case TRACE_SPAN:
    case TRACE_MARK:
        printf("%s\t%s\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\n",
               raw->kind == TRACE_SPAN ? "span" : "mark", name_of(reader, raw->name, name),
               record->start_ns, record->end_ns, record->thread);
        break;
    default: break;
    }
}

int main(int argc, char **argv)
{
    set_t set;
    if (argc != 2) return 2;
    keel_status_t status = set_open(&set, argv[1]);
    for (size_t i = 0; !status && i < set.count; i++) {
        reader_t *reader = &set.readers[i];
        trace_header_t *header = (trace_header_t *)(uintptr_t)reader->header;
        printf("process\t%u\t%s\t%" PRIu64 "\t%" PRIu64 "\n", header->pid,
               header->ended ? "ended" : "killed", header->lost, reader->unknown);
        reader_each(reader, UINT32_MAX, record_print, reader);
    }
    if (status) keel_status_print(status, stderr);
    set_close(&set);
    return status ? 1 : 0;
}
