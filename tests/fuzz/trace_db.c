// SPDX-License-Identifier: Apache-2.0
// The database of a trace. An input that has SQLite's mark is the file; another one is made into
// rows: a byte for the table, and one for each column.
#include <string.h>
#include <unistd.h>

#include "fuzz/fuzz.h"
#include "fuzz/traces.h"
#include "tracer/db.h"
#include "tracer/rocpd.h"

static const struct {
    const char *name;
    int columns;
} tables[] = {{"rocpd_metadata", 3}, {"rocpd_string", 2},     {"rocpd_ustring", 2},
              {"rocpd_api", 9},      {"rocpd_op", 8},         {"rocpd_api_ops", 3},
              {"rocpd_monitor", 7},  {"keel_process", 11},    {"keel_device", 3},
              {"keel_track", 6},     {"keel_shape", 8},       {"keel_op", 6},
              {"keel_wait", 5},      {"keel_submission", 12}, {"keel_launches", 5}};

// Small numbers, so that rows often find each other; some that are not small; and texts.
static const char *value_of(uint8_t byte, char *text, size_t size)
{
    static const char *const others[] = {
        "9223372036854775807",
        "-9223372036854775808",
        "4294967295",
        "4294967296",
        "1000000000000",
        "1e300",
        "-1e400",
        "'UserMarker'",
        "'keel_process'",
        "'KernelExecution'",
        "'CopyHostToDevice'",
        "'Wait'",
        "'keel_left_out'",
        "'keel_left_why'",
        "''",
        "'a \"name\" <with> \\ marks'",
        "CAST(x'e08080' AS TEXT)",
        "CAST(x'eda080f4908080' AS TEXT)",
    };
    enum { COUNT = sizeof others / sizeof *others };
    if (byte >= 256 - COUNT) return others[byte - (256 - COUNT)];
    snprintf(text, size, "%d", byte - 4);
    return text;
}

// Rows that the table refuses are left out.
static void row_add(db_t *db, const char *table, const uint8_t *values, int count)
{
    char sql[1024], number[8];
    int length = snprintf(sql, sizeof sql, "INSERT OR REPLACE INTO %s VALUES(", table);
    for (int i = 0; i < count; i++)
        length += snprintf(sql + length, sizeof sql - (size_t)length, "%s%s", i ? "," : "",
                           value_of(values[i], number, sizeof number));
    snprintf(sql + length, sizeof sql - (size_t)length, ")");
    keel_status_release(db_run(db, sql));
}

// The first byte says what a database lacks that another program wrote.
static void rows_add(db_t *db, const uint8_t *data, size_t size)
{
    enum { TABLES = sizeof tables / sizeof *tables };
    FUZZ_CHECK(!db_run(db, rocpd_tables));
    for (size_t at = 1; at < size;) {
        int table = data[at++] % TABLES, columns = tables[table].columns;
        if (size - at < (size_t)columns) break;
        row_add(db, tables[table].name, data + at, columns);
        at += (size_t)columns;
    }
    for (int i = 2; i < TABLES; i++) {
        char sql[64];
        bool dropped =
            i == 2 ? data[0] & 1 : strncmp(tables[i].name, "keel", 4) == 0 && data[0] & 2;
        snprintf(sql, sizeof sql, "DROP TABLE %s", tables[i].name);
        if (dropped) FUZZ_CHECK(!db_run(db, sql));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char magic[] = "SQLite format 3";
    char path[TRACES_PATH];
    if (!traces_has_sqlite()) return 0;
    bool whole = size < sizeof magic || memcmp(data, magic, sizeof magic) == 0;
    traces_file(data, whole ? size : 0, path);
    if (!whole) {
        db_t db;
        FUZZ_CHECK(!db_create(&db, path));
        rows_add(&db, data, size);
        FUZZ_CHECK(!db_run(&db, "COMMIT"));
        db_close(&db);
    }
    traces_use(path, NULL, size && data[size - 1] % 4 == 0);
    unlink(path);
    return 0;
}
