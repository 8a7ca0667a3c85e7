// SPDX-License-Identifier: Apache-2.0
#include "tracer/table.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/status.h"

static keel_status_t row_find(table_t *table, const table_item_t *item, table_row_t **row)
{
    uint32_t index;
    if (!map_get(&table->places, item->key, &index)) {
        table_row_t *rows =
            mem_reserve(table->rows, &table->capacity, table->count, sizeof *table->rows);
        if (!rows) return status_no_memory();
        table->rows = rows;
        index = table->count;
        rows[index] = (table_row_t){.name = mem_copy_text(item->name)};
        if (!rows[index].name) return status_no_memory();
        table->count++;
        KEEL_TRY(map_put(&table->places, item->key, index));
    }
    *row = &table->rows[index];
    return NULL;
}

keel_status_t table_add(table_t *table, table_item_t item)
{
    table_row_t *row = NULL;
    KEEL_TRY(row_find(table, &item, &row));
    uint64_t *durations =
        mem_reserve(row->durations, &row->capacity, row->count, sizeof *durations);
    if (!durations) return status_no_memory();
    row->durations = durations;
    durations[row->count++] = item.ns;
    row->calls += item.calls;
    row->total_ns += item.ns;
    row->bytes += item.bytes;
    return NULL;
}

const table_row_t *table_find(const table_t *table, uint64_t key)
{
    uint32_t index;
    return map_get(&table->places, key, &index) ? &table->rows[index] : NULL;
}

static int row_compare(const void *a, const void *b)
{
    const table_row_t *x = a, *y = b;
    if (x->total_ns != y->total_ns) return x->total_ns < y->total_ns ? 1 : -1;
    if (x->calls != y->calls) return x->calls < y->calls ? 1 : -1;
    return strcmp(x->name, y->name);
}

void table_sort(table_t *table)
{
    map_finish(&table->places);
    if (table->count) qsort(table->rows, table->count, sizeof *table->rows, row_compare);
}

// Puts smaller values than that of `middle` before it and larger ones behind: Hoare's selection,
// which takes a time in proportion to the count.
static uint64_t select_nth(uint64_t *values, uint32_t count, uint32_t nth)
{
    uint32_t low = 0, high = count - 1;
    while (low < high) {
        uint64_t pivot = values[low + (high - low) / 2];
        int64_t i = low, k = high;
        while (i <= k) {
            while (values[i] < pivot) i++;
            while (values[k] > pivot) k--;
            if (i > k) break;
            uint64_t swap = values[i];
            values[i++] = values[k];
            values[k--] = swap;
        }
        if (nth <= k)
            high = (uint32_t)k;
        else if (nth >= i)
            low = (uint32_t)i;
        else
            break;
    }
    return values[nth];
}

// Of an even number, what is between the two in the middle.
static uint64_t median(uint64_t *values, uint32_t count)
{
    uint64_t upper = select_nth(values, count, count / 2), lower = values[0];
    if (count % 2) return upper;
    for (uint32_t i = 1; i < count / 2; i++)
        if (values[i] > lower) lower = values[i];
    return lower + (upper - lower) / 2;
}

table_stats_t table_stats(table_row_t *row)
{
    table_stats_t stats = {.least = UINT64_MAX};
    double mean = (double)row->total_ns / (double)row->count, sum = 0;
    for (uint32_t i = 0; i < row->count; i++) {
        uint64_t ns = row->durations[i];
        double off = (double)ns - mean;
        sum += off * off;
        if (ns < stats.least) stats.least = ns;
        if (ns > stats.most) stats.most = ns;
    }
    stats.mean = row->total_ns / row->count;
    stats.deviation = (uint64_t)fmin(sqrt(sum / (double)row->count), 9e18);
    stats.median = median(row->durations, row->count);
    return stats;
}

void table_time(uint64_t ns, FILE *out)
{
    if (ns < 10000)
        fprintf(out, "%6llu ns", (unsigned long long)ns);
    else if (ns < 10000000)
        fprintf(out, "%6.1f us", (double)ns / 1e3);
    else if (ns < 10000000000)
        fprintf(out, "%6.1f ms", (double)ns / 1e6);
    else
        fprintf(out, "%6.1f s ", (double)ns / 1e9);
}

static void row_print(table_row_t *row, uint64_t total_ns, FILE *out)
{
    table_stats_t stats = table_stats(row);
    const uint64_t shown[] = {row->total_ns, stats.mean, stats.median,
                              stats.least,   stats.most, stats.deviation};
    fprintf(out, "  %9llu", (unsigned long long)row->calls);
    for (size_t i = 0; i < sizeof shown / sizeof *shown; i++) {
        fputs("  ", out);
        table_time(shown[i], out);
    }
    double share = total_ns ? 100 * (double)row->total_ns / (double)total_ns : 0;
    fprintf(out, "  %5.1f %%  %s", share, row->name);
    if (row->bytes && row->total_ns)
        fprintf(out, " (%.2f GB/s)", (double)row->bytes / (double)row->total_ns);
    fputc('\n', out);
}

void table_rest(const table_t *table, uint32_t limit, FILE *out)
{
    if (table->count > limit)
        fprintf(out, "  and %u more names; -n N shows N\n", table->count - limit);
}

void table_print(table_t *table, const char *title, uint32_t limit, FILE *out)
{
    uint64_t total_ns = 0;
    if (!table->count) return;
    table_sort(table);
    for (uint32_t i = 0; i < table->count; i++) total_ns += table->rows[i].total_ns;
    fprintf(out, "\n%s\n  %9s  %9s  %9s  %9s  %9s  %9s  %9s  %7s  name\n", title, "calls", "total",
            "mean", "median", "least", "most", "stddev", "share");
    for (uint32_t i = 0; i < table->count && i < limit; i++)
        row_print(&table->rows[i], total_ns, out);
    table_rest(table, limit, out);
}

void table_finish(table_t *table)
{
    for (uint32_t i = 0; i < table->count; i++) {
        mem_free(table->rows[i].name);
        mem_free(table->rows[i].durations);
    }
    mem_free(table->rows);
    map_finish(&table->places);
    *table = (table_t){0};
}
