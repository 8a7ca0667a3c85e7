// SPDX-License-Identifier: Apache-2.0
#include "tracer/tree.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/status.h"

enum {
    LEAF = 0x0d,
    INNER = 0x05,
    LEAF_HEAD = 8, // bytes before the places of cells
    INNER_HEAD = 12,
    VARINT = 9, // bytes, at most
    // Places in the first page.
    HEAD = 100,
    AT_PAGE_SIZE = 16,
    AT_CHANGES = 24,
    AT_PAGE_COUNT = 28,
    AT_CHANGES_OF_COUNT = 92, // the count is valid if both are the same
    ROW_SPARE = 35,           // bytes of a page that no row may take
    LOCKS = 1 << 30,          // SQLite's locks lie there: a page that has that place is not used
    CELL = TREE_COLUMNS * (TREE_TEXT + 2) + 2 * VARINT + 2,
};

// The lowest bytes of a value, the highest of them first. Writes 8 bytes in any case.
static inline void put(uint8_t *at, uint64_t value, int bytes)
{
    uint64_t big = bytes ? htobe64(value << (64 - 8 * bytes)) : 0;
    memcpy(at, &big, sizeof big);
}

static void put16(uint8_t *at, uint32_t value)
{
    at[0] = (uint8_t)(value >> 8);
    at[1] = (uint8_t)value;
}

static void put32(uint8_t *at, uint32_t value)
{
    value = htobe32(value);
    memcpy(at, &value, sizeof value);
}

static uint32_t get32(const uint8_t *at)
{
    uint32_t value;
    memcpy(&value, at, sizeof value);
    return be32toh(value);
}

// Groups of 7 bits, the highest first; of 9 bytes the last has 8. Returns how many bytes.
static int varint(uint8_t *at, uint64_t value)
{
    int bytes = 1;
    if (value < 0x80) {
        *at = (uint8_t)value;
        return 1;
    }
    if (value >> 56) {
        at[8] = (uint8_t)value;
        value >>= 8;
        for (int i = 7; i >= 0; i--, value >>= 7) at[i] = (uint8_t)(value & 0x7f) | 0x80;
        return VARINT;
    }
    while (value >> 7 * bytes) bytes++;
    for (int i = bytes - 1; i >= 0; i--, value >>= 7)
        at[i] = (uint8_t)(value & 0x7f) | (i + 1 < bytes ? 0x80 : 0);
    return bytes;
}

static void fail(tree_t *tree, int error)
{
    if (!tree->error) tree->error = error;
}

static void store(tree_t *tree, const uint8_t *bytes, uint32_t number)
{
    size_t size = tree->page_size;
    ssize_t wrote = pwrite(tree->fd, bytes, size, (off_t)(number - 1) * (off_t)size);
    if (wrote != (ssize_t)size) fail(tree, wrote < 0 ? errno : ENOSPC);
}

static void page_clear(const tree_t *tree, tree_page_t *page)
{
    memset(page->bytes, 0, tree->page_size);
    page->cells = page->child = 0;
    page->end = tree->page_size;
}

static void page_finish(const tree_page_t *page, uint8_t kind)
{
    page->bytes[0] = kind;
    put16(page->bytes + 3, page->cells);
    put16(page->bytes + 5, page->end); // 65536 is 0
    if (kind == INNER) put32(page->bytes + 8, page->child);
}

static inline bool has_room(const tree_page_t *page, uint32_t head, uint32_t size)
{
    return page->end >= head + 2 * (page->cells + 1) + size;
}

static inline void cell_add(tree_page_t *page, uint32_t head, const uint8_t *cell, uint32_t size)
{
    page->end -= size;
    memcpy(page->bytes + page->end, cell, size);
    put16(page->bytes + head + 2 * page->cells++, page->end);
}

static uint32_t number_take(tree_t *tree)
{
    if (++tree->page_count == LOCKS / tree->page_size + 1) tree->page_count++;
    return tree->page_count;
}

static void child_add(tree_t *tree, int level, uint32_t number, int64_t key);

// Writes a page that is full, and tells the one above.
static void page_push(tree_t *tree, int level)
{
    tree_page_t *page = &tree->levels[level];
    page_finish(page, level ? INNER : LEAF);
    uint32_t number = number_take(tree);
    store(tree, page->bytes, number);
    int64_t key = page->key;
    page_clear(tree, page);
    child_add(tree, level + 1, number, key);
}

// Makes a cell of what was the last child.
static void child_cell(tree_page_t *page)
{
    uint8_t cell[4 + VARINT];
    put32(cell, page->child);
    page->before.size = 4 + (uint32_t)varint(cell + 4, (uint64_t)page->key);
    page->before.child = page->child;
    page->before.key = page->key;
    cell_add(page, INNER_HEAD, cell, page->before.size);
}

// A page is full. Its last child begins the next one, so that none is alone there.
static void children_split(tree_t *tree, int level)
{
    tree_page_t *page = &tree->levels[level];
    uint32_t child = page->child;
    int64_t key = page->key;
    page->cells--;
    page->end += page->before.size;
    page->child = page->before.child;
    page->key = page->before.key;
    page_push(tree, level);
    page->child = child;
    page->key = key;
}

static void child_add(tree_t *tree, int level, uint32_t number, int64_t key)
{
    if (level + 1 >= TREE_LEVELS) {
        fail(tree, EFBIG);
        return;
    }
    tree_page_t *page = &tree->levels[level];
    if (page->child && !has_room(page, INNER_HEAD, 4 + VARINT)) children_split(tree, level);
    if (page->child) child_cell(page);
    page->child = number;
    page->key = key;
}

static keel_status_t tree_error(const tree_t *tree, int error)
{
    return status_from_errno(status_errno_code(error), error, tree->path);
}

keel_status_t tree_open(tree_t *tree, const char *path)
{
    uint8_t head[HEAD];
    *tree = (tree_t){.fd = open(path, O_RDWR | O_CLOEXEC)};
    snprintf(tree->path, sizeof tree->path, "%s", path);
    if (tree->fd < 0) return tree_error(tree, errno);
    ssize_t got = pread(tree->fd, head, sizeof head, 0);
    if (got != (ssize_t)sizeof head) return tree_error(tree, got < 0 ? errno : EIO);
    tree->page_size = get32(head + AT_PAGE_SIZE) >> 16;
    if (tree->page_size == 1) tree->page_size = 65536;
    tree->page_count = get32(head + AT_PAGE_COUNT);
    for (int i = 0; i < TREE_LEVELS; i++) {
        tree->levels[i].bytes = mem_zalloc(tree->page_size + sizeof(uint64_t)); // for `put`
        if (!tree->levels[i].bytes) return status_no_memory();
    }
    return NULL;
}

// The head says how many pages there are.
static void head_write(tree_t *tree)
{
    uint8_t head[HEAD];
    ssize_t size = sizeof head;
    if (pread(tree->fd, head, sizeof head, 0) != size) return fail(tree, EIO);
    uint32_t changes = get32(head + AT_CHANGES) + 1;
    put32(head + AT_CHANGES, changes);
    put32(head + AT_CHANGES_OF_COUNT, changes);
    put32(head + AT_PAGE_COUNT, tree->page_count);
    if (pwrite(tree->fd, head, sizeof head, 0) != size) fail(tree, EIO);
}

keel_status_t tree_close(tree_t *tree)
{
    if (tree->fd >= 0) {
        head_write(tree);
        if (close(tree->fd) != 0) fail(tree, errno);
    }
    for (int i = 0; i < TREE_LEVELS; i++) mem_free(tree->levels[i].bytes);
    return tree->error ? tree_error(tree, tree->error) : NULL;
}

void tree_begin(tree_t *tree, uint32_t root)
{
    tree->root = root;
    for (int i = 0; i < TREE_LEVELS; i++) page_clear(tree, &tree->levels[i]);
}

// The kind of an integer, and its bytes, as a row has them. Returns how many bytes.
static inline int integer_put(int64_t value, uint8_t *kind, uint8_t *at)
{
    static const uint8_t kinds[] = {1, 1, 2, 3, 4, 5, 5, 6, 6}, sizes[] = {0, 1, 2, 3, 4, 6, 8};
    uint64_t positive = (uint64_t)(value < 0 ? ~value : value);
    if (positive <= 1 && value >= 0) return *kind = (uint8_t)(8 + value), 0;
    int bits = positive ? 65 - __builtin_clzll(positive) : 1; // and one for the sign
    *kind = kinds[(bits + 7) / 8];
    put(at, (uint64_t)value, sizes[*kind]);
    return sizes[*kind];
}

// Returns the bytes of the value; those of its kind are added to `kinds`.
static inline int value_put(const db_value_t *value, uint8_t *kinds, int *count, uint8_t *at)
{
    if (value->type == DB_INT) return integer_put(value->integer, &kinds[(*count)++], at);
    size_t length = strnlen(value->text, TREE_TEXT);
    *count += varint(kinds + *count, 13 + 2 * length);
    memcpy(at, value->text, length);
    return (int)length;
}

void tree_row(tree_t *tree, const db_value_t *values, int count)
{
    uint8_t cell[CELL], body[CELL], kinds[2 * TREE_COLUMNS + 8];
    tree_page_t *page = &tree->levels[0];
    int length = 0, kind_bytes = 1;
    kinds[0] = 0; // the first column is the row's number, and none here
    for (int i = 1; i < count; i++)
        length += value_put(&values[i], kinds, &kind_bytes, body + length);
    int at = varint(cell, (uint64_t)(1 + kind_bytes + length));
    at += varint(cell + at, (uint64_t)values[0].integer);
    cell[at++] = (uint8_t)(kind_bytes + 1); // itself included; below 128
    memcpy(cell + at, kinds, (size_t)kind_bytes);
    memcpy(cell + at + kind_bytes, body, (size_t)length);
    uint32_t size = (uint32_t)(at + kind_bytes + length);
    // SQLite would have what is longer go on in other pages.
    if (size + ROW_SPARE > tree->page_size) return fail(tree, EMSGSIZE);
    if (!has_room(page, LEAF_HEAD, size)) page_push(tree, 0);
    cell_add(page, LEAF_HEAD, cell, size);
    page->key = values[0].integer;
}

static bool is_top(const tree_t *tree, int level)
{
    while (++level < TREE_LEVELS)
        if (tree->levels[level].child) return false;
    return true;
}

// Pages that are not full are pushed, until one stands above all others: that is the root.
void tree_end(tree_t *tree)
{
    int level = 0;
    for (; !is_top(tree, level); level++) page_push(tree, level);
    page_finish(&tree->levels[level], level ? INNER : LEAF);
    store(tree, tree->levels[level].bytes, tree->root);
}
