// SPDX-License-Identifier: Apache-2.0
// Figures against bars.
#include "bench.h"

#include <string.h>

static double rounds_ratio(const side_result_t *over, const side_result_t *under, uint32_t rounds)
{
    double ratios[MAX_ROUNDS];
    for (uint32_t i = 0; i < rounds; i++) ratios[i] = over->rounds[i] / under->rounds[i];
    return median_of(ratios, rounds);
}

// Times of all sizes in three digits.
static void format_ns(char *text, size_t size, double ns)
{
    const char *units[] = {"ns", "us", "ms", "s"};
    size_t unit = 0;
    while (ns >= 999.5 && unit < 3) ns /= 1000, unit++;
    snprintf(text, size, "%.*f %s", ns < 9.995 ? 2 : ns < 99.95 ? 1 : 0, ns, units[unit]);
}

static void bar_judge(const bar_t *bar, const row_result_t *row, bar_result_t *out)
{
    const side_result_t *keel = &row->sides[0];
    const side_result_t *peer = (size_t)bar->peer < row->side_count ? &row->sides[bar->peer] : keel;
    size_t text = sizeof out->text, got = sizeof out->got;
    bool at_least = bar->kind == BAR_FASTER || bar->kind == BAR_LEAST;
    char limit[32];

    out->limit = bar->limit;
    switch (bar->kind) {
    case BAR_NONE: break;
    case BAR_NS:
        format_ns(limit, sizeof limit, bar->limit);
        snprintf(out->text, text, "<= %s", limit);
        out->value = keel->median;
        format_ns(out->got, got, out->value);
        break;
    case BAR_RATIO:
        snprintf(out->text, text, "<= %.2fx %s", bar->limit, peer->name);
        out->value = peer->absent[0] ? 0 : rounds_ratio(keel, peer, row->rounds);
        snprintf(out->got, got, "%.2fx", out->value);
        break;
    case BAR_FASTER:
        snprintf(out->text, text, ">= %gx the speed of %s", bar->limit, peer->name);
        out->value = peer->absent[0] ? 0 : rounds_ratio(peer, keel, row->rounds);
        snprintf(out->got, got, "%.2fx", out->value);
        break;
    case BAR_P99:
        snprintf(out->text, text, "p99 <= %gx median", bar->limit);
        out->value = keel->p99 / keel->median;
        snprintf(out->got, got, "%.2fx", out->value);
        break;
    case BAR_TAIL:
        snprintf(out->text, text, "no more > 1 ms than %s", peer->name);
        out->limit = (double)peer->tail;
        out->value = (double)keel->tail;
        snprintf(out->got, got, "%zu of %zu (%zu)", keel->tail, keel->tally.count, peer->tail);
        break;
    case BAR_VALUE:
    case BAR_LEAST:
        out->value = keel->tally.values[bar->peer];
        snprintf(out->text, text, "%s %s %g", bar->what, at_least ? ">=" : "<=", bar->limit);
        snprintf(out->got, got, "%.3g", out->value);
        peer = keel;
        break;
    }
    out->judged = !keel->absent[0] && !peer->absent[0];
    out->met = at_least ? out->value >= out->limit : out->value <= out->limit;
    if (!out->judged) snprintf(out->got, got, "-");
}

void row_judge(row_result_t *result)
{
    for (size_t i = 0; i < MAX_BARS && result->row->bars[i].kind; i++)
        bar_judge(&result->row->bars[i], result, &result->bars[result->bar_count++]);
}
