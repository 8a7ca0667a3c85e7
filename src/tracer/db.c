// SPDX-License-Identifier: Apache-2.0
#include "tracer/db.h"

#include <stdio.h>
#include <string.h>

#include "base/status.h"

static keel_status_t db_error(const db_t *db)
{
    return KEEL_ERROR(KEEL_IO, "%s: SQLite: %s", db->path, db->sqlite->errmsg(db->handle));
}

static keel_status_t db_start(db_t *db, const char *path, int flags)
{
    *db = (db_t){0};
    if ((size_t)snprintf(db->path, sizeof db->path, "%s", path) >= sizeof db->path)
        return KEEL_ERROR(KEEL_INVALID_ARGUMENT, "the name of the database is too long: %s", path);
    KEEL_TRY(sqlite_open(&db->sqlite));
    flags |= SQLITE_OPEN_NOMUTEX; // one thread has it; a lock for each value is much of the time
    if (db->sqlite->open_v2(path, &db->handle, flags, NULL) != SQLITE_OK) return db_error(db);
    return NULL;
}

keel_status_t db_create(db_t *db, const char *path)
{
    KEEL_TRY(db_start(db, path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE));
    return db_run(db, "PRAGMA page_size=32768; PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF;"
                      "PRAGMA locking_mode=EXCLUSIVE; PRAGMA cache_size=-65536; BEGIN");
}

keel_status_t db_open(db_t *db, const char *path)
{
    return db_start(db, path, SQLITE_OPEN_READONLY);
}

void db_close(db_t *db)
{
    if (db->handle) db->sqlite->close(db->handle);
    db->handle = NULL;
}

keel_status_t db_run(db_t *db, const char *sql)
{
    if (db->sqlite->exec(db->handle, sql, NULL, NULL, NULL) != SQLITE_OK) return db_error(db);
    return NULL;
}

static keel_status_t insert_prepare(const db_rows_t *rows, int count, sqlite3_stmt **statement)
{
    char sql[4096];
    int length = snprintf(sql, sizeof sql, "INSERT %s VALUES", rows->into);
    for (int row = 0; row < count; row++) {
        for (int column = 0; column < rows->columns; column++)
            length += snprintf(sql + length, sizeof sql - (size_t)length, "%s?",
                               column ? "," : (row ? ",(" : "("));
        length += snprintf(sql + length, sizeof sql - (size_t)length, ")");
    }
    if (rows->db->sqlite->prepare_v2(rows->db->handle, sql, -1, statement, NULL) != SQLITE_OK)
        return db_error(rows->db);
    return NULL;
}

keel_status_t db_rows_begin(db_rows_t *rows, db_t *db, const char *into, int columns)
{
    rows->db = db;
    rows->into = into;
    rows->many = NULL;
    rows->columns = columns;
    rows->count = 0;
    rows->status = NULL;
    rows->tree = NULL;
    return insert_prepare(rows, DB_ROWS, &rows->many);
}

void db_rows_by_tree(db_rows_t *rows, tree_t *tree, uint32_t root, int columns)
{
    rows->columns = columns;
    rows->count = 0;
    rows->status = NULL;
    rows->tree = tree;
    tree_begin(tree, root);
}

static int value_bind(const sqlite_t *sqlite, sqlite3_stmt *statement, int index,
                      const db_value_t *value)
{
    if (value->type == DB_INT) return sqlite->bind_int64(statement, index, value->integer);
    if (value->type == DB_REAL) return sqlite->bind_double(statement, index, value->real);
    return sqlite->bind_text(statement, index, value->text, -1, NULL);
}

// Adds the rows that wait, by a statement that takes as many.
static keel_status_t rows_add(db_rows_t *rows, sqlite3_stmt *statement)
{
    const sqlite_t *sqlite = rows->db->sqlite;
    for (int i = 0; i < rows->count; i++)
        if (value_bind(sqlite, statement, i + 1, &rows->values[i]) != SQLITE_OK)
            return db_error(rows->db);
    rows->count = 0;
    keel_status_t status = sqlite->step(statement) == SQLITE_DONE ? NULL : db_error(rows->db);
    sqlite->reset(statement);
    return status;
}

static void value_add(db_rows_t *rows, db_value_t value)
{
    if (rows->status) return;
    rows->values[rows->count++] = value;
    if (rows->tree) {
        if (rows->count < rows->columns) return;
        tree_row(rows->tree, rows->values, rows->count);
        rows->count = 0;
    } else if (rows->count == DB_ROWS * rows->columns)
        rows->status = rows_add(rows, rows->many);
}

void db_int(db_rows_t *rows, int64_t value)
{
    value_add(rows, (db_value_t){.type = DB_INT, .integer = value});
}

void db_real(db_rows_t *rows, double value)
{
    value_add(rows, (db_value_t){.type = DB_REAL, .real = value});
}

void db_text(db_rows_t *rows, const char *text)
{
    value_add(rows, (db_value_t){.type = DB_TEXT, .text = text});
}

keel_status_t db_rows_end(db_rows_t *rows)
{
    const sqlite_t *sqlite = rows->db->sqlite;
    if (!rows->status && rows->count) {
        sqlite3_stmt *rest = NULL;
        rows->status = insert_prepare(rows, rows->count / rows->columns, &rest);
        if (!rows->status) rows->status = rows_add(rows, rest);
        if (rest) sqlite->finalize(rest);
    }
    if (rows->many) sqlite->finalize(rows->many);
    return rows->status;
}

keel_status_t db_cursor_open(db_cursor_t *cursor, db_t *db, const char *sql)
{
    *cursor = (db_cursor_t){.db = db, .row.sqlite = db->sqlite};
    int result = db->sqlite->prepare_v2(db->handle, sql, -1, &cursor->row.statement, NULL);
    return result == SQLITE_OK ? NULL : db_error(db);
}

keel_status_t db_cursor_next(db_cursor_t *cursor)
{
    int result = cursor->db->sqlite->step(cursor->row.statement);
    cursor->more = result == SQLITE_ROW;
    return result == SQLITE_ROW || result == SQLITE_DONE ? NULL : db_error(cursor->db);
}

void db_cursor_close(db_cursor_t *cursor)
{
    if (cursor->row.statement) cursor->db->sqlite->finalize(cursor->row.statement);
    cursor->row.statement = NULL;
}

keel_status_t db_query(db_t *db, const char *sql, db_row_fn fn, void *user)
{
    db_cursor_t cursor;
    keel_status_t status = db_cursor_open(&cursor, db, sql);
    if (!status) status = db_cursor_next(&cursor);
    while (!status && cursor.more) {
        status = fn(user, cursor.row);
        if (!status) status = db_cursor_next(&cursor);
    }
    db_cursor_close(&cursor);
    return status;
}

static keel_status_t count_read(void *user, db_row_t row)
{
    *(bool *)user = row_int(row, 0) != 0;
    return NULL;
}

static bool is_found(db_t *db, const char *sql)
{
    bool found = false;
    keel_status_release(db_query(db, sql, count_read, &found));
    return found;
}

bool db_has(db_t *db, const char *table)
{
    char sql[256];
    snprintf(sql, sizeof sql, "SELECT count(*) FROM sqlite_master WHERE name='%s'", table);
    return is_found(db, sql);
}

bool db_has_column(db_t *db, const char *table, const char *column)
{
    char sql[256];
    snprintf(sql, sizeof sql, "SELECT count(*) FROM pragma_table_info('%s') WHERE name='%s'", table,
             column);
    return is_found(db, sql);
}
