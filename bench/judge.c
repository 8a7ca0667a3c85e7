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

static double rounds_excess(const side_result_t *over, const side_result_t *under, uint32_t rounds)
{
    double excess[MAX_ROUNDS];
    for (uint32_t i = 0; i < rounds; i++) excess[i] = over->rounds[i] - under->rounds[i];
    return median_of(excess, rounds);
}

// Times of all sizes in three digits.
static void format_ns(char *text, size_t size, double ns)
{
    const char *units[] = {"ns", "us", "ms", "s"};
    size_t unit = 0;
    while (ns >= 999.5 && unit < 3) ns /= 1000, unit++;
    snprintf(text, size, "%.*f %s", ns < 9.995 ? 2 : ns < 99.95 ? 1 : 0, ns, units[unit]);
}

static double p99_ratio(const side_result_t *side)
{
    return side->p99 / side->median;
}

// Says what was asked for and what was got. Returns whether the peer itself would miss the bar.
static bool bar_measure(const bar_t *bar, const row_result_t *row, const side_result_t *peer,
                        bar_result_t *out)
{
    const side_result_t *keel = &row->sides[0];
    size_t text = sizeof out->text, got = sizeof out->got;
    bool present = !peer->absent[0];
    char limit[32];
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
        out->value = present ? rounds_ratio(keel, peer, row->rounds) : 0;
        snprintf(out->got, got, "%.2fx", out->value);
        break;
    case BAR_ADDED:
        format_ns(limit, sizeof limit, bar->limit);
        snprintf(out->text, text, "<= %s + %s", peer->name, limit);
        out->value = present ? rounds_excess(keel, peer, row->rounds) : 0;
        snprintf(out->got, got, "%+.0f ns", out->value);
        break;
    case BAR_FASTER:
        snprintf(out->text, text, ">= %gx the speed of %s", bar->limit, peer->name);
        out->value = present ? rounds_ratio(peer, keel, row->rounds) : 0;
        snprintf(out->got, got, "%.2fx", out->value);
        break;
    case BAR_P99:
        snprintf(out->text, text, "p99 <= %gx median", bar->limit);
        out->value = p99_ratio(keel);
        snprintf(out->got, got, "%.1fx (%s %.1fx)", out->value, peer->name, p99_ratio(peer));
        return p99_ratio(peer) > bar->limit;
    case BAR_TAIL:
        snprintf(out->text, text, "none beyond 1 ms");
        out->value = (double)keel->tail;
        snprintf(out->got, got, "%zu (%s %zu)", keel->tail, peer->name, peer->tail);
        return peer->tail > 0;
    case BAR_VALUE:
    case BAR_LEAST:
        snprintf(out->text, text, "%s %s %g", bar->what,
                 bar->kind == BAR_LEAST ? ">=" : "<=", bar->limit);
        out->value = keel->tally.values[bar->peer];
        snprintf(out->got, got, "%.3g", out->value);
        break;
    }
    return false;
}

static void bar_judge(const bar_t *bar, const row_result_t *row, bar_result_t *out)
{
    bool of_value = bar->kind == BAR_VALUE || bar->kind == BAR_LEAST;
    bool at_least = bar->kind == BAR_FASTER || bar->kind == BAR_LEAST;
    const side_result_t *peer = &row->sides[of_value ? 0 : bar->peer];
    out->limit = bar->limit;
    bool noisy = bar_measure(bar, row, peer, out);
    if (row->sides[0].absent[0] || peer->absent[0]) {
        snprintf(out->got, sizeof out->got, "-");
        return;
    }
    bool met = at_least ? out->value >= out->limit : out->value <= out->limit;
    out->verdict = met ? VERDICT_MET : noisy ? VERDICT_NOISE : VERDICT_MISSED;
}

void row_judge(row_result_t *result, uint32_t workers)
{
    for (size_t i = 0; i < MAX_BARS && result->row->bars[i].kind; i++) {
        const bar_t *bar = &result->row->bars[i];
        if (bar->most_workers && workers > bar->most_workers) continue;
        bar_judge(bar, result, &result->bars[result->bar_count++]);
    }
}
