// SPDX-License-Identifier: Apache-2.0
// Durations collected by name, and printed as a table.
#ifndef KEEL_SRC_TRACER_TABLE_H_
#define KEEL_SRC_TRACER_TABLE_H_

#include <keel/status.h>
#include <stdio.h>

#include "tracer/map.h"

typedef struct table_row_t {
    char *name; // owned
    uint64_t calls, total_ns;
    uint64_t bytes;      // that were moved; 0: none
    uint64_t *durations; // owned, in ns
    uint32_t count, capacity;
} table_row_t;

// Zeroed, it is empty.
typedef struct table_t {
    table_row_t *rows; // owned
    uint32_t count, capacity;
    map_t places; // rows by their keys
} table_t;

// What a duration belongs to: `key`, not 0, is the same for the same name.
typedef struct table_item_t {
    uint64_t key;
    const char *name;
    uint64_t calls; // 0 if it is a further part of a call that was added
    uint64_t ns, bytes;
} table_item_t;
keel_status_t table_add(table_t *table, table_item_t item) KEEL_MUST_USE;

// The row of a key; NULL: there is none.
const table_row_t *table_find(const table_t *table, uint64_t key);

// What a row comes to.
typedef struct table_stats_t {
    uint64_t mean, median, least, most, deviation; // of durations, in ns
} table_stats_t;
table_stats_t table_stats(table_row_t *row);

// Puts the row with the largest total first, of the same total that with most calls. Rows are not
// found by their keys any more.
void table_sort(table_t *table);

// Sorts the rows and prints the first `limit` of them: calls, total, mean, median, least, most and
// standard deviation of a duration, share of the total; for rows that moved bytes, how many in a
// second. Nothing for an empty table.
void table_print(table_t *table, const char *title, uint32_t limit, FILE *out);

// Says how many rows there are beyond the first `limit`, if there are.
void table_rest(const table_t *table, uint32_t limit, FILE *out);

// Prints a duration with its unit, in 9 columns.
void table_time(uint64_t ns, FILE *out);

void table_finish(table_t *table);

#endif
