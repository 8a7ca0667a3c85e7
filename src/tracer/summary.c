// SPDX-License-Identifier: Apache-2.0
#include "tracer/summary.h"

#include <stdlib.h>
#include <string.h>

#include "tracer/blame.h"
#include "tracer/gaps.h"
#include "tracer/table.h"

enum { LATENCIES = 55 }; // below 1 us, 2 us, 4 us ...: as far as 64 bits of ns reach

typedef struct summary_t {
    const model_t *model;
    table_t operations, copies, calls, spans, launches, waiting;
    uint64_t latencies[LATENCIES];
    uint64_t open; // submissions that have not ended
} summary_t;

// One name is one row, whatever kind the operation is; those without a name differ by their kind.
static uint64_t name_key(const event_t *event)
{
    return event->name ? event->name : 1ull << 32 | (uint64_t)event->op << 8 | event->copy;
}

static void latency_add(summary_t *summary, const event_t *event)
{
    if (!event->link || event->later) return;
    uint64_t called = summary->model->events[event->link - 1].start_ns;
    uint64_t us = event->start_ns > called ? (event->start_ns - called) / 1000 : 0;
    uint32_t at = 0;
    while (us >> at && at + 1 < LATENCIES) at++;
    summary->latencies[at]++;
}

static keel_status_t state_add(summary_t *summary, uint64_t key, uint64_t from_ns, uint64_t to_ns)
{
    static const char *const names[] = {
        "", "submitted, until its waits were over", "ready, until a processor took it",
        "begun, until it had ended", "begun, of that: waited for memory"};
    if (!from_ns || !to_ns) return NULL;
    return table_add(&summary->waiting,
                     (table_item_t){key, names[key], 1, to_ns > from_ns ? to_ns - from_ns : 0, 0});
}

static keel_status_t event_add(summary_t *summary, const event_t *event)
{
    table_item_t item = {name_key(event), model_name(summary->model, event), !event->later,
                         event->end_ns - event->start_ns, 0};
    switch ((event_kind_t)event->kind) {
    case EVENT_CALL: return table_add(&summary->calls, item);
    case EVENT_SPAN: return table_add(&summary->spans, item);
    case EVENT_LAUNCHES: item.calls = event->value; return table_add(&summary->launches, item);
    case EVENT_OP:
        latency_add(summary, event);
        if (event->op == TRACE_OP_WAIT)
            return state_add(summary, 4, event->start_ns, event->end_ns);
        if (event->op != TRACE_OP_COPY) return table_add(&summary->operations, item);
        item.bytes = event->value;
        return table_add(&summary->copies, item);
    default: return NULL;
    }
}

// How long a submission was in each of its states.
static keel_status_t work_add(summary_t *summary, const work_t *work)
{
    summary->open += !work->end_ns;
    KEEL_TRY(state_add(summary, 1, work->submit_ns, work->ready_ns));
    KEEL_TRY(state_add(summary, 2, work->ready_ns, work->begin_ns));
    return state_add(summary, 3, work->begin_ns, work->end_ns);
}

static keel_status_t summary_collect(summary_t *summary)
{
    const model_t *model = summary->model;
    for (uint32_t i = 0; i < model->event_count; i++)
        KEEL_TRY(event_add(summary, &model->events[i]));
    for (uint32_t i = 0; i < model->work_count; i++) KEEL_TRY(work_add(summary, &model->works[i]));
    return NULL;
}

void summary_processes(const model_t *model, FILE *out)
{
    for (uint32_t i = 0; i < model->process_count; i++) {
        const process_t *process = &model->processes[i];
        fprintf(out, "process %u", process->pid);
        if (process->rank) fprintf(out, ", rank %s", model_string(model, process->rank));
        fprintf(out, ": %s\n", model_string(model, process->command));
        if (!process->ended)
            fprintf(out, "  INCOMPLETE: the process runs still, was killed, or ended by _exit\n");
        if (process->lost)
            fprintf(out,
                    "  INCOMPLETE: %llu records are lost, or names of them: there was no room\n",
                    (unsigned long long)process->lost);
        if (process->damaged)
            fprintf(out, "  DAMAGED: %llu records are of no kind that is known\n",
                    (unsigned long long)process->damaged);
    }
    if (model->left_out)
        fprintf(out, "INCOMPLETE: %llu files of the trace are left out; the first: %s\n",
                (unsigned long long)model->left_out, model_string(model, model->left_why));
}

static void gaps_print(const gaps_t *gaps, FILE *out)
{
    for (int cause = 0; cause < GAP_CAUSES; cause++) {
        if (!gaps->total_ns[cause]) continue;
        fputs("    ", out);
        table_time(gaps->total_ns[cause], out);
        fprintf(out, "  %-10s", gaps_cause((gap_cause_t)cause));
        for (int size = 0; size < GAP_SIZES; size++)
            fprintf(out, "  %9llu", (unsigned long long)gaps->count[cause][size]);
        fputc('\n', out);
    }
}

// What gaps waited for, of one device.
typedef struct causes_t {
    const blame_t *blame;
    table_t table;
} causes_t;

static keel_status_t gap_seen(void *user, gap_cause_t cause, uint64_t from_ns, const event_t *next)
{
    causes_t *causes = user;
    char text[512];
    const need_t *need = cause == GAP_DEPENDENCY ? blame_find(causes->blame, next, from_ns) : NULL;
    if (!need) return NULL;
    blame_text(causes->blame, need, text, sizeof text);
    return table_add(&causes->table, (table_item_t){blame_key(causes->blame, need), text, 1,
                                                    next->start_ns - from_ns, 0});
}

static void causes_print(causes_t *causes, uint32_t limit, FILE *out)
{
    table_sort(&causes->table);
    for (uint32_t i = 0; i < causes->table.count && i < limit; i++) {
        const table_row_t *row = &causes->table.rows[i];
        fputs("      ", out);
        table_time(row->total_ns, out);
        fprintf(out, "  of dependency: for %s\n", row->name);
    }
}

static keel_status_t devices_print(const model_t *model, const blame_t *blame, uint32_t limit,
                                   FILE *out)
{
    range_t range = model_range(model);
    uint64_t wall_ns = range.last_ns - range.first_ns;
    bool first = true;
    for (uint32_t i = 0; i < model->device_count; i++) {
        gaps_t gaps;
        causes_t causes = {.blame = blame};
        keel_status_t status = gaps_find(model, i, &gaps, gap_seen, &causes);
        if (status || !gaps.ops) {
            table_finish(&causes.table);
            if (status) return status;
            continue;
        }
        if (first)
            fprintf(out,
                    "\nbusy: at least one operation ran; below it gaps between operations, in "
                    "which nothing but\ncopies ran, by cause and size\n    %9s  %-10s  %9s  %9s  "
                    "%9s  %9s  %9s  %9s\n",
                    "total", "cause", "< 1 us", "< 10 us", "< 100 us", "< 1 ms", "< 10 ms", "more");
        first = false;
        double share = wall_ns ? 100 * (double)gaps.busy_ns / (double)wall_ns : 0;
        fputs("  ", out);
        table_time(gaps.busy_ns, out);
        const char *name = model_string(model, model->devices[i].name);
        fprintf(out, "  %5.1f %%  process %u, %s\n", share,
                model->processes[model->devices[i].process].pid, *name ? name : "no device");
        gaps_print(&gaps, out);
        causes_print(&causes, limit, out);
        table_finish(&causes.table);
    }
    return NULL;
}

static void latency_print(const summary_t *summary, FILE *out)
{
    enum { WIDTH = 50 };
    uint64_t most = 0;
    int first = LATENCIES, last = 0;
    for (int i = 0; i < LATENCIES; i++) {
        uint64_t count = summary->latencies[i];
        if (!count) continue;
        if (first == LATENCIES) first = i;
        last = i;
        if (count > most) most = count;
    }
    if (!most) return;
    fprintf(out, "\nlaunch latency: from the start of the call to the start of the operation\n");
    for (int i = first; i <= last; i++) {
        uint64_t count = summary->latencies[i];
        fputs("  < ", out);
        table_time(1000ull << i, out);
        fprintf(out, "  %9llu  %.*s\n", (unsigned long long)count,
                (int)((count * WIDTH + most - 1) / most),
                "##################################################");
    }
}

// Launches that were counted, which have no times.
static void launches_print(table_t *launches, uint32_t limit, FILE *out)
{
    uint64_t total = 0;
    if (!launches->count) return;
    table_sort(launches);
    for (uint32_t i = 0; i < launches->count; i++) total += launches->rows[i].calls;
    fprintf(out,
            "\nlaunches of kernels, counted: how long these ran is not known\n  %9s  %7s  name\n",
            "launches", "share");
    for (uint32_t i = 0; i < launches->count && i < limit; i++) {
        const table_row_t *row = &launches->rows[i];
        fprintf(out, "  %9llu  %5.1f %%  %s\n", (unsigned long long)row->calls,
                total ? 100 * (double)row->calls / (double)total : 0, row->name);
    }
    table_rest(launches, limit, out);
}

static keel_status_t tables_print(summary_t *summary, uint32_t limit, FILE *out)
{
    if (summary->open)
        fprintf(out, "%llu submissions had not ended\n", (unsigned long long)summary->open);
    table_print(&summary->operations, "operations on processors", limit, out);
    launches_print(&summary->launches, limit, out);
    table_print(&summary->copies, "copies", limit, out);
    table_print(&summary->calls, "calls of the host", limit, out);
    table_print(&summary->spans, "spans of the application", limit, out);
    table_print(&summary->waiting, "submissions", limit, out);
    blame_t blame = {0};
    keel_status_t status = blame_init(&blame, summary->model);
    if (!status) status = devices_print(summary->model, &blame, limit, out);
    blame_finish(&blame);
    if (status) return status;
    latency_print(summary, out);
    return NULL;
}

keel_status_t summary_print(const model_t *model, uint32_t limit, FILE *out)
{
    summary_t summary = {.model = model};
    keel_status_t status = summary_collect(&summary);
    summary_processes(model, out);
    if (!status) status = tables_print(&summary, limit, out);
    table_finish(&summary.operations);
    table_finish(&summary.copies);
    table_finish(&summary.calls);
    table_finish(&summary.spans);
    table_finish(&summary.launches);
    table_finish(&summary.waiting);
    return status;
}
