// SPDX-License-Identifier: Apache-2.0
// SQLite, opened when it is needed: keel runs on machines without it, and a build needs no header
// of it. Only what is used is declared; the numbers are of its documented interface, which does not
// change.
#ifndef KEEL_SRC_TRACER_SQLITE_H_
#define KEEL_SRC_TRACER_SQLITE_H_

#include <keel/status.h>
#include <stdint.h>

typedef struct sqlite3 sqlite3;
typedef struct sqlite3_stmt sqlite3_stmt;

enum {
    SQLITE_OK = 0,
    SQLITE_ROW = 100,
    SQLITE_DONE = 101,
    SQLITE_OPEN_READONLY = 1,
    SQLITE_OPEN_READWRITE = 2,
    SQLITE_OPEN_CREATE = 4,
    SQLITE_OPEN_NOMUTEX = 0x8000,
};

typedef struct sqlite_t {
    int (*open_v2)(const char *path, sqlite3 **db, int flags, const char *vfs);
    int (*close)(sqlite3 *db);
    int (*exec)(sqlite3 *db, const char *sql, void *callback, void *user, char **message);
    int (*prepare_v2)(sqlite3 *db, const char *sql, int size, sqlite3_stmt **statement,
                      const char **tail);
    int (*finalize)(sqlite3_stmt *statement);
    int (*step)(sqlite3_stmt *statement);
    int (*reset)(sqlite3_stmt *statement);
    int (*bind_int64)(sqlite3_stmt *statement, int index, int64_t value);
    int (*bind_double)(sqlite3_stmt *statement, int index, double value);
    int (*bind_text)(sqlite3_stmt *statement, int index, const char *text, int size,
                     void (*free)(void *));
    int64_t (*column_int64)(sqlite3_stmt *statement, int column);
    double (*column_double)(sqlite3_stmt *statement, int column);
    const unsigned char *(*column_text)(sqlite3_stmt *statement, int column);
    const char *(*errmsg)(sqlite3 *db);
} sqlite_t;

// Opens the library; it stays open. KEEL_UNSUPPORTED, with what to install, if there is none.
keel_status_t sqlite_open(const sqlite_t **sqlite) KEEL_MUST_USE;

#endif
