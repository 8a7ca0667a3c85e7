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
    uint32_t *shown; // owned: events, those of one track after those of another, by time
    uint32_t *first; // owned: for each track, how many are before its own; and for the end
    strings_t names; // of what is shown
    uint64_t cut_ns; // shorter events are left out; 0: none
} report_t;

static uint64_t event_ns(const event_t *event)
{
    return event->end_ns - event->start_ns;
}

// Which events are left, if there are too many: all that are longer than `ns`, and of the `ties`
// that are as long, as many as there is room for, spread over all of them.
typedef struct cut_t {
    uint64_t ns, room, ties;
    uint64_t seen; // ties
} cut_t;

// Finds the duration digit by digit, from the highest byte.
static cut_t cut_find(const model_t *model, const order_t *order)
{
    cut_t cut = {.room = MOST};
    for (int shift = 56; shift >= 0; shift -= 8) {
        uint64_t counts[256] = {0};
        for (uint32_t i = 0; i < order->count; i++) {
            uint64_t ns = event_ns(&model->events[order->indices[i]]) >> shift;
            if (ns >> 8 == cut.ns) counts[ns & 255]++;
        }
        uint32_t digit = 255;
        while (counts[digit] < cut.room) cut.room -= counts[digit--];
        cut.ns = cut.ns << 8 | digit;
        cut.ties = counts[digit];
    }
    return cut;
}

static bool cut_leaves(cut_t *cut, const event_t *event)
{
    if (event_ns(event) != cut->ns) return event_ns(event) > cut->ns;
    uint64_t before = cut->seen++ * cut->room / cut->ties;
    return cut->seen * cut->room / cut->ties > before;
}

// Keeps the longest events in the order, in place.
static void order_cut(report_t *report)
{
    order_t *order = &report->lanes.order;
    uint32_t kept = 0;
    if (order->count <= MOST) return;
    cut_t cut = cut_find(report->model, order);
    for (uint32_t i = 0; i < order->count; i++)
        if (cut_leaves(&cut, &report->model->events[order->indices[i]]))
            order->indices[kept++] = order->indices[i];
    order->count = kept;
    report->cut_ns = cut.ns;
}

// Sorts what is shown by tracks.
static keel_status_t tracks_sort(report_t *report)
{
    const model_t *model = report->model;
    const order_t *order = &report->lanes.order;
    report->shown = mem_zalloc((order->count + 1) * sizeof *report->shown);
    report->first = mem_zalloc((model->track_count + 2) * sizeof *report->first);
    if (!report->shown || !report->first) return status_no_memory();
    uint32_t *next = report->first + 1; // where the next event of each track goes
    for (uint32_t i = 0; i < order->count; i++) next[model->events[order->indices[i]].track + 1]++;
    for (uint32_t i = 0; i < model->track_count; i++) next[i + 1] += next[i];
    for (uint32_t i = 0; i < order->count; i++)
        report->shown[next[model->events[order->indices[i]].track]++] = order->indices[i];
    return NULL;
}

// What an array of a track has for each event.
typedef enum column_t { START, TIME, NAME, LANE, COLUMNS } column_t;

static keel_status_t column_print(report_t *report, uint32_t track, column_t column)
{
    static const char *const names[COLUMNS] = {"start", "time", "name_of", "lane"};
    const model_t *model = report->model;
    const char *comma = "";
    fprintf(report->out, ",\"%s\":[", names[column]);
    for (uint32_t i = report->first[track]; i < report->first[track + 1]; i++) {
        uint32_t index = report->shown[i], name = 0;
        const event_t *event = &model->events[index];
        if (column == NAME) {
            const char *text = model_name(model, event);
            KEEL_TRY(strings_add(&report->names, *text ? text : "(no name)", &name));
        }
        const uint64_t values[COLUMNS] = {event->start_ns - report->range.first_ns, event_ns(event),
                                          name - 1u, report->lanes.lane[index]};
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

static void warning_put(const report_t *report, uint32_t all)
{
    char text[256] = "";
    uint32_t left_out = all - report->lanes.order.count;
    if (model_is_incomplete(report->model)) strcpy(text, "This trace is INCOMPLETE. ");
    if (left_out)
        snprintf(text + strlen(text), sizeof text - strlen(text),
                 "%u of %u events are not in the timeline, the shortest: none takes more than "
                 "%llu ns.",
                 left_out, all, (unsigned long long)report->cut_ns);
    fputs(",\"warning\":", report->out);
    json_text(text, report->out);
}

static keel_status_t report_print(report_t *report)
{
    uint32_t all = report->lanes.order.count;
    order_cut(report);
    KEEL_TRY(tracks_sort(report));
    fwrite(keel_embed_trace_page, 1, keel_embed_trace_page_size, report->out);
    fprintf(report->out, "{\"length\":%llu,\"events\":%u",
            (unsigned long long)(report->range.last_ns - report->range.first_ns),
            report->lanes.order.count);
    warning_put(report, all);
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
    if (!status) status = report_print(&report);
    lanes_finish(&report.lanes);
    mem_free(report.shown);
    mem_free(report.first);
    strings_finish(&report.names);
    return status;
}
