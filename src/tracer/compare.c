// SPDX-License-Identifier: Apache-2.0
#include "tracer/compare.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "tracer/table.h"

// What both traces have of one name.
typedef struct pair_t {
    const char *name; // borrowed
    uint64_t calls[2], total_ns[2];
} pair_t;

typedef struct pairs_t {
    pair_t *pairs; // owned
    uint32_t count, capacity;
    strings_t names; // pair i has the name i + 1
} pairs_t;

static keel_status_t pair_find(pairs_t *pairs, const char *name, pair_t **pair)
{
    uint32_t number;
    KEEL_TRY(strings_add(&pairs->names, *name ? name : "(no name)", &number));
    if (number > pairs->count) {
        pair_t *grown =
            mem_reserve(pairs->pairs, &pairs->capacity, pairs->count, sizeof *pairs->pairs);
        if (!grown) return status_no_memory();
        pairs->pairs = grown;
        grown[pairs->count++] = (pair_t){.name = strings_text(&pairs->names, number)};
    }
    *pair = &pairs->pairs[number - 1];
    return NULL;
}

static keel_status_t trace_add(pairs_t *pairs, const model_t *model, event_kind_t kind, int which)
{
    for (uint32_t i = 0; i < model->event_count; i++) {
        const event_t *event = &model->events[i];
        pair_t *pair = NULL;
        if (event->kind != kind) continue;
        KEEL_TRY(pair_find(pairs, model_name(model, event), &pair));
        pair->calls[which] += kind == EVENT_LAUNCHES ? event->value : !event->later;
        pair->total_ns[which] += event->end_ns - event->start_ns;
    }
    return NULL;
}

// What is compared: times, or how often, where there are none.
static uint64_t weight(const pair_t *pair, int which)
{
    return pair->total_ns[0] | pair->total_ns[1] ? pair->total_ns[which] : pair->calls[which];
}

static uint64_t difference(const pair_t *pair)
{
    uint64_t a = weight(pair, 0), b = weight(pair, 1);
    return a > b ? a - b : b - a;
}

static int pair_compare(const void *a, const void *b)
{
    uint64_t x = difference(a), y = difference(b);
    if (x != y) return x < y ? 1 : -1;
    return strcmp(((const pair_t *)a)->name, ((const pair_t *)b)->name);
}

static void change_print(const pair_t *pair, FILE *out)
{
    if (!weight(pair, 0))
        fprintf(out, "  %9s  %s\n", "new", pair->name);
    else if (!pair->calls[1])
        fprintf(out, "  %9s  %s\n", "gone", pair->name);
    else
        fprintf(out, "  %+7.1f %%  %s\n",
                100 * ((double)weight(pair, 1) / (double)weight(pair, 0) - 1), pair->name);
}

static void pair_print(const pair_t *pair, bool timed, FILE *out)
{
    for (int i = 0; i < 2; i++) {
        fprintf(out, "  %9llu", (unsigned long long)pair->calls[i]);
        if (!timed) continue;
        fputs("  ", out);
        table_time(pair->total_ns[i], out);
        fputs("  ", out);
        table_time(pair->calls[i] ? pair->total_ns[i] / pair->calls[i] : pair->total_ns[i], out);
    }
    change_print(pair, out);
}

static void title_print(const char *title, bool timed, FILE *out)
{
    if (!timed) {
        fprintf(out, "%s\n  %9s  %9s  %9s  name\n", title, "before", "after", "change");
        return;
    }
    fprintf(out, "%s\n  %31s  %31s  %9s\n", title, "before", "after", "change");
    fprintf(out, "  %9s  %9s  %9s  %9s  %9s  %9s  %9s  name\n", "calls", "total", "mean", "calls",
            "total", "mean", "of total");
}

static void pairs_print(pairs_t *pairs, event_kind_t kind, uint32_t limit, FILE *out)
{
    static const char *const titles[EVENT_KINDS] = {
        [EVENT_CALL] = "calls of the host",
        [EVENT_OP] = "operations",
        [EVENT_LAUNCHES] = "launches of kernels, counted",
    };
    bool timed = kind != EVENT_LAUNCHES;
    if (!pairs->count) return;
    qsort(pairs->pairs, pairs->count, sizeof *pairs->pairs, pair_compare);
    title_print(titles[kind], timed, out);
    for (uint32_t i = 0; i < pairs->count && i < limit; i++)
        pair_print(&pairs->pairs[i], timed, out);
    if (pairs->count > limit)
        fprintf(out, "  and %u more names; -n N shows N\n", pairs->count - limit);
    fputc('\n', out);
}

static keel_status_t kind_print(const model_t *const models[2], event_kind_t kind, uint32_t limit,
                                FILE *out)
{
    pairs_t pairs = {0};
    keel_status_t status = NULL;
    for (int i = 0; !status && i < 2; i++) status = trace_add(&pairs, models[i], kind, i);
    if (!status) pairs_print(&pairs, kind, limit, out);
    strings_finish(&pairs.names);
    mem_free(pairs.pairs);
    return status;
}

keel_status_t compare_print(const model_t *before, const model_t *after, uint32_t limit, FILE *out)
{
    const model_t *const models[2] = {before, after};
    KEEL_TRY(kind_print(models, EVENT_OP, limit, out));
    KEEL_TRY(kind_print(models, EVENT_LAUNCHES, limit, out));
    return kind_print(models, EVENT_CALL, limit, out);
}
