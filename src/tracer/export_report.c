// SPDX-License-Identifier: Apache-2.0
// The page is page.html, the trace as JSON, and page_end.html.
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "tracer/export.h"
#include "tracer/lanes.h"
#include "tracer/summary.h"

extern const unsigned char keel_embed_trace_page[], keel_embed_trace_page_end[];
extern const uint64_t keel_embed_trace_page_size, keel_embed_trace_page_end_size;

enum { MOST = 400000 }; // events, with which browsers are still quick

typedef struct report_t {
    const model_t *model;
    FILE *out;
    lanes_t lanes;
    range_t range;
    uint64_t least_ns; // shorter events are left out
    uint32_t shown;
    strings_t names; // of what is shown
} report_t;

// How long an event has to be, so that at most MOST are left: a power of two.
static uint64_t least_find(const report_t *report)
{
    uint64_t counts[65] = {0}, left = report->lanes.order.count;
    for (uint32_t i = 0; i < report->lanes.order.count; i++) {
        const event_t *event = &report->model->events[report->lanes.order.indices[i]];
        int bits = 0;
        for (uint64_t ns = event->end_ns - event->start_ns; ns; ns >>= 1) bits++;
        counts[bits]++;
    }
    int bits = 0;
    while (left > MOST && bits < 64) left -= counts[bits++];
    return bits ? 1ull << (bits - 1) : 0;
}

static bool is_shown(const report_t *report, const event_t *event)
{
    return event->end_ns - event->start_ns >= report->least_ns;
}

// What an array of a track has for each event.
typedef enum column_t { START, TIME, NAME, LANE, COLUMNS } column_t;

static keel_status_t column_print(report_t *report, uint32_t track, column_t column)
{
    static const char *const names[COLUMNS] = {"start", "time", "name_of", "lane"};
    const model_t *model = report->model;
    const char *comma = "";
    fprintf(report->out, ",\"%s\":[", names[column]);
    for (uint32_t i = 0; i < report->lanes.order.count; i++) {
        uint32_t index = report->lanes.order.indices[i], name = 0;
        const event_t *event = &model->events[index];
        if (event->track != track || !is_shown(report, event)) continue;
        if (column == NAME) {
            const char *text = model_name(model, event);
            KEEL_TRY(strings_add(&report->names, *text ? text : "(no name)", &name));
        }
        const uint64_t values[COLUMNS] = {event->start_ns - report->range.first_ns,
                                          event->end_ns - event->start_ns, name - 1u,
                                          report->lanes.lane[index]};
        fprintf(report->out, "%s%llu", comma, (unsigned long long)values[column]);
        comma = ",";
    }
    fputc(']', report->out);
    return NULL;
}

static void track_name(const model_t *model, const track_t *track, char *text, size_t size)
{
    const char *name = model_string(model, track->name);
    const process_t *process = &model->processes[track->process];
    if (track->is_queue)
        snprintf(text, size, "%s, %s", model_string(model, model->devices[track->device].name),
                 *name ? name : "queue");
    else
        snprintf(text, size, "%s %llu of %u", *name ? name : "thread",
                 (unsigned long long)track->number, process->pid);
}

static keel_status_t tracks_print(report_t *report)
{
    const model_t *model = report->model;
    fputs(",\"tracks\":[", report->out);
    for (uint32_t i = 0; i < model->track_count; i++) {
        char name[512];
        track_name(model, &model->tracks[i], name, sizeof name);
        fputs(i ? ",\n{\"name\":" : "\n{\"name\":", report->out);
        json_text(name, report->out);
        fprintf(report->out, ",\"lanes\":%u", report->lanes.count[i]);
        for (int column = 0; column < COLUMNS; column++)
            KEEL_TRY(column_print(report, i, (column_t)column));
        fputc('}', report->out);
    }
    fputc(']', report->out);
    return NULL;
}

static keel_status_t summary_put(const report_t *report)
{
    char *text = NULL;
    size_t size = 0;
    FILE *memory = open_memstream(&text, &size);
    if (!memory) return status_no_memory();
    keel_status_t status = summary_print(report->model, 20, memory);
    fclose(memory);
    fputs(",\"summary\":", report->out);
    json_text(text ? text : "", report->out);
    free(text);
    return status;
}

static void warning_put(const report_t *report)
{
    char text[256] = "";
    uint32_t all = report->lanes.order.count;
    if (model_is_incomplete(report->model)) strcpy(text, "This trace is INCOMPLETE. ");
    if (report->shown < all)
        snprintf(text + strlen(text), sizeof text - strlen(text),
                 "%u of %u events are not in the timeline: they are shorter than %llu ns.",
                 all - report->shown, all, (unsigned long long)report->least_ns);
    fputs(",\"warning\":", report->out);
    json_text(text, report->out);
}

static keel_status_t report_print(report_t *report)
{
    const model_t *model = report->model;
    for (uint32_t i = 0; i < report->lanes.order.count; i++)
        report->shown += is_shown(report, &model->events[report->lanes.order.indices[i]]);
    fwrite(keel_embed_trace_page, 1, keel_embed_trace_page_size, report->out);
    fprintf(report->out, "{\"length\":%llu,\"events\":%u",
            (unsigned long long)(report->range.last_ns - report->range.first_ns), report->shown);
    warning_put(report);
    KEEL_TRY(summary_put(report));
    KEEL_TRY(tracks_print(report));
    fputs(",\"names\":[", report->out);
    for (uint32_t i = 1; i <= report->names.count; i++) {
        if (i > 1) fputc(',', report->out);
        json_text(strings_text(&report->names, i), report->out);
    }
    fputs("]}\n", report->out);
    fwrite(keel_embed_trace_page_end, 1, keel_embed_trace_page_end_size, report->out);
    return NULL;
}

keel_status_t export_report(const model_t *model, FILE *out)
{
    report_t report = {.model = model, .out = out, .range = model_range(model)};
    keel_status_t status = lanes_find(&report.lanes, model, false);
    if (!status) {
        report.least_ns = least_find(&report);
        status = report_print(&report);
    }
    lanes_finish(&report.lanes);
    strings_finish(&report.names);
    return status;
}
