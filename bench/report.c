// SPDX-License-Identifier: Apache-2.0
// The results, for people and for machines.
#include "bench.h"

#include <inttypes.h>
#include <string.h>
#include <sys/utsname.h>

static void format_figure(char *text, size_t size, double ns)
{
    snprintf(text, size, "%.*f", ns < 9.995 ? 2 : 0, ns);
}

static const char *const verdict_names[VERDICTS] = {"-", "met", "MISSED", "noise"};

// Spread: from the lowest to the highest median of a round.
static void table_side(FILE *file, const side_result_t *side)
{
    char median[24], p95[24], p99[24], low[24], high[24], spread[52];
    if (side->absent[0]) {
        fprintf(file, "  %-9s %-60.60s", side->name, side->absent);
        return;
    }
    format_figure(median, sizeof median, side->median);
    format_figure(p95, sizeof p95, side->p95);
    format_figure(p99, sizeof p99, side->p99);
    format_figure(low, sizeof low, side->low);
    format_figure(high, sizeof high, side->high);
    snprintf(spread, sizeof spread, "%s - %s", low, high);
    fprintf(file, "  %-9s %11s %11s %11s %24s", side->name, median, p95, p99, spread);
}

static void table_iree(FILE *file, const row_result_t *result)
{
    const double *iree = result->row->iree;
    char range[52];
    if (!iree[0]) return;
    if (iree[1] > iree[0])
        snprintf(range, sizeof range, "%.0f - %.0f", iree[0], iree[1]);
    else
        snprintf(range, sizeof range, "%.0f", iree[0]);
    fprintf(file, "  %-9s %11s   recorded earlier: Keel takes 1/%.1f of it\n", "IREE", range,
            iree[0] / result->sides[0].median);
}

static void table_row(FILE *file, const row_result_t *result)
{
    size_t lines = result->side_count > result->bar_count ? result->side_count : result->bar_count;
    fprintf(file, "\n%s: %s\n", result->name, result->row->what);
    for (size_t i = 0; i < lines; i++) {
        if (i < result->side_count)
            table_side(file, &result->sides[i]);
        else
            fprintf(file, "%72s", "");
        if (i < result->bar_count) {
            const bar_result_t *bar = &result->bars[i];
            fprintf(file, "   %-32s %14s  %s", bar->text, bar->got, verdict_names[bar->verdict]);
        }
        fputc('\n', file);
    }
    table_iree(file, result);
    for (size_t i = 0; i < result->side_count; i++)
        if (result->sides[i].tally.note[0])
            fprintf(file, "  %-9s %s\n", result->sides[i].name, result->sides[i].tally.note);
    fflush(file);
}

static void json_text(FILE *file, const char *text)
{
    fputc('"', file);
    for (; *text; text++) {
        if (*text == '"' || *text == '\\') fputc('\\', file);
        if ((unsigned char)*text >= ' ') fputc(*text, file);
    }
    fputc('"', file);
}

static void json_side(FILE *file, const side_result_t *side, uint32_t rounds)
{
    fputs("{\"name\":", file);
    json_text(file, side->name);
    if (side->absent[0]) {
        fputs(",\"absent\":", file);
        json_text(file, side->absent);
        fputc('}', file);
        return;
    }
    fprintf(file,
            ",\"samples\":%zu,\"median_ns\":%.2f,\"p95_ns\":%.2f,\"p99_ns\":%.2f,\"max_ns\":%.2f,"
            "\"over_1ms\":%zu,\"rounds_ns\":[",
            side->tally.count, side->median, side->p95, side->p99, side->max, side->tail);
    for (uint32_t i = 0; i < rounds; i++) fprintf(file, "%s%.2f", i ? "," : "", side->rounds[i]);
    fputc(']', file);
    if (side->tally.note[0]) {
        fputs(",\"note\":", file);
        json_text(file, side->tally.note);
    }
    fputc('}', file);
}

static void json_row(report_t *report, const row_result_t *result)
{
    FILE *file = report->json;
    fputs(report->rows ? ",\n {\"name\":" : "\n {\"name\":", file);
    json_text(file, result->name);
    fputs(",\"what\":", file);
    json_text(file, result->row->what);
    if (result->row->iree[0]) fprintf(file, ",\"iree_ns\":%.0f", result->row->iree[0]);
    fputs(",\"sides\":[", file);
    for (size_t i = 0; i < result->side_count; i++) {
        if (i) fputc(',', file);
        json_side(file, &result->sides[i], result->rounds);
    }
    fputs("],\"bars\":[", file);
    for (size_t i = 0; i < result->bar_count; i++) {
        const bar_result_t *bar = &result->bars[i];
        fputs(i ? ",{\"bar\":" : "{\"bar\":", file);
        json_text(file, bar->text);
        if (bar->verdict)
            fprintf(file, ",\"value\":%.4f,\"limit\":%.4f,\"verdict\":\"%s\"}", bar->value,
                    bar->limit, verdict_names[bar->verdict]);
        else
            fputs(",\"verdict\":null}", file);
    }
    fputs("]}", file);
    fflush(file);
}

static void json_begin(FILE *file, const struct utsname *system, const setting_t *setting,
                       const plan_t *plan)
{
    fprintf(file, "{\"keel\":\"%s\",\"system\":\"%s %s %s\",\"device\":", keel_version(),
            system->sysname, system->release, system->machine);
    json_text(file, setting->device);
    fprintf(file, ",\"workers\":%" PRIu32 ",\"rounds\":%" PRIu32 ",\"rows\":[", setting->workers,
            plan->rounds);
}

static void table_begin(FILE *file, const struct utsname *system, const setting_t *setting,
                        const plan_t *plan)
{
    fprintf(file,
            "Keel %s on %s %s %s, %s with %" PRIu32 " workers; %" PRIu32
            " rounds, sides in turns; nanoseconds\n",
            keel_version(), system->sysname, system->release, system->machine, setting->device,
            setting->workers, plan->rounds);
    fprintf(file, "  %-9s %11s %11s %11s %24s   %-32s %14s\n", "", "median", "p95", "p99",
            "rounds from - to", "bar", "got");
}

void report_begin(report_t *report, const setting_t *setting, const plan_t *plan)
{
    struct utsname system = {0};
    uname(&system);
    if (report->json) json_begin(report->json, &system, setting, plan);
    if (report->table) table_begin(report->table, &system, setting, plan);
}

void report_row(report_t *report, const row_result_t *result)
{
    if (report->json) json_row(report, result);
    if (report->table) table_row(report->table, result);
    report->rows++;
    for (size_t i = 0; i < result->bar_count; i++) report->verdicts[result->bars[i].verdict]++;
}

void report_end(report_t *report)
{
    size_t met = report->verdicts[VERDICT_MET], missed = report->verdicts[VERDICT_MISSED];
    size_t noise = report->verdicts[VERDICT_NOISE], unjudged = report->verdicts[VERDICT_NONE];
    if (report->json)
        fprintf(report->json, "\n],\"met\":%zu,\"missed\":%zu,\"noise\":%zu,\"unjudged\":%zu}\n",
                met, missed, noise, unjudged);
    if (report->table)
        fprintf(report->table,
                "\n%zu rows: %zu bars met, %zu missed, %zu lost in noise, %zu without their peer\n",
                report->rows, met, missed, noise, unjudged);
}
