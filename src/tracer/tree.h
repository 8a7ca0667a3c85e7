// SPDX-License-Identifier: Apache-2.0
// Rows of a database's tables, written as the pages of its file: a row by SQLite takes about 450
// ns, and a trace has millions. The format is SQLite's, as its documentation has it: a table is a
// tree of pages in the order of row numbers, whose root SQLite has made with the empty table.
#ifndef KEEL_SRC_TRACER_TREE_H_
#define KEEL_SRC_TRACER_TREE_H_

#include <keel/status.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct db_value_t {
    enum { DB_INT, DB_REAL, DB_TEXT } type;
    union {
        int64_t integer;
        double real;
        const char *text;
    };
} db_value_t;

enum {
    TREE_LEVELS = 8,
    TREE_COLUMNS = 20,
    TREE_TEXT = 1000, // bytes that a text has at most: what is more is cut off
};

// A page that is being filled. One above others has them as cells, all but the last one.
typedef struct tree_page_t {
    uint8_t *bytes;      // owned
    uint32_t cells, end; // how many; where the last one begins
    uint32_t child;      // the last one; 0: none
    int64_t key;         // the greatest row number in it or below it
    struct {
        uint32_t child, size;
        int64_t key;
    } before; // what the last cell has
} tree_page_t;

// The trees of one file, written one after the other. No connection may have the file open.
typedef struct tree_t {
    int fd;
    char path[4096];
    uint32_t page_size, page_count;
    uint32_t root;
    tree_page_t levels[TREE_LEVELS]; // 0: rows
    int error;                       // the first one, as errno has it; 0: none
} tree_t;

// Both return what went wrong, if anything; the second one closes in any case.
keel_status_t tree_open(tree_t *tree, const char *path) KEEL_MUST_USE;
keel_status_t tree_close(tree_t *tree) KEEL_MUST_USE;

// Begins an empty table, by its root. Rows follow in the order of their numbers, which are their
// first columns and integers; then tree_end. Texts and integers. Failures are told by tree_close.
void tree_begin(tree_t *tree, uint32_t root);
void tree_row(tree_t *tree, const db_value_t *values, int count);
void tree_end(tree_t *tree);

#endif
