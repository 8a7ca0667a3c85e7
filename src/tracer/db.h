// SPDX-License-Identifier: Apache-2.0
// A database that is written once, or read.
#ifndef KEEL_SRC_TRACER_DB_H_
#define KEEL_SRC_TRACER_DB_H_

#include <keel/status.h>
#include <stdbool.h>

#include "tracer/sqlite.h"
#include "tracer/tree.h"

typedef struct db_t {
    const sqlite_t *sqlite;
    sqlite3 *handle; // owned; NULL: not open
    char path[4096];
} db_t;

// Makes a database in a file that must not exist, to be filled in one go: if the tool is killed,
// the file is of no use. To be closed, also after a failure.
keel_status_t db_create(db_t *db, const char *path) KEEL_MUST_USE;

// Opens one to read it. To be closed, also after a failure.
keel_status_t db_open(db_t *db, const char *path) KEEL_MUST_USE;
void db_close(db_t *db);

// Runs statements that give no rows.
keel_status_t db_run(db_t *db, const char *sql) KEEL_MUST_USE;

// Adds rows to a table, many with each statement: a row is as many values as there are columns, in
// their order. Texts are borrowed until the end.
// SQLite before 3.32 takes 999 values.
enum { DB_COLUMNS = TREE_COLUMNS, DB_ROWS = 999 / DB_COLUMNS }; // of one statement

typedef struct db_rows_t {
    db_t *db;
    const char *into;   // "INTO rocpd_op"
    sqlite3_stmt *many; // owned: adds DB_ROWS
    int columns;
    int count;    // values that wait
    tree_t *tree; // borrowed: what writes the rows; NULL: SQLite
    db_value_t values[DB_ROWS * DB_COLUMNS];
    keel_status_t status; // owned: the first failure
} db_rows_t;

keel_status_t db_rows_begin(db_rows_t *rows, db_t *db, const char *into, int columns) KEEL_MUST_USE;

// The same by a tree: for many rows, in the order of their numbers. tree_end ends it.
void db_rows_by_tree(db_rows_t *rows, tree_t *tree, uint32_t root, int columns);
void db_int(db_rows_t *rows, int64_t value);
void db_real(db_rows_t *rows, double value);
void db_text(db_rows_t *rows, const char *text);

// Adds what is left, and tells of the first failure. To be called in any case.
keel_status_t db_rows_end(db_rows_t *rows) KEEL_MUST_USE;

// Calls `fn` with each row of a query until it fails.
typedef struct db_row_t {
    const sqlite_t *sqlite;
    sqlite3_stmt *statement;
} db_row_t;
typedef keel_status_t (*db_row_fn)(void *user, db_row_t row);
keel_status_t db_query(db_t *db, const char *sql, db_row_fn fn, void *user) KEEL_MUST_USE;

// Rows of a query one by one, for queries that are read side by side. To be closed, also after a
// failure.
typedef struct db_cursor_t {
    db_t *db;
    db_row_t row;
    bool more; // there is a row
} db_cursor_t;
keel_status_t db_cursor_open(db_cursor_t *cursor, db_t *db, const char *sql) KEEL_MUST_USE;
keel_status_t db_cursor_next(db_cursor_t *cursor) KEEL_MUST_USE; // the first one, at first
void db_cursor_close(db_cursor_t *cursor);

// True if there is such a table or view.
bool db_has(db_t *db, const char *table);
bool db_has_column(db_t *db, const char *table, const char *column);

static inline int64_t row_int(db_row_t row, int column)
{
    return row.sqlite->column_int64(row.statement, column);
}

static inline double row_real(db_row_t row, int column)
{
    return row.sqlite->column_double(row.statement, column);
}

// "" for NULL. Valid until the next row.
static inline const char *row_text(db_row_t row, int column)
{
    const unsigned char *text = row.sqlite->column_text(row.statement, column);
    return text ? (const char *)text : "";
}

#endif
