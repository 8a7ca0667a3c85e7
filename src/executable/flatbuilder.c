// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "base/memory.h"
#include "executable/flatbuffer.h"

enum { SHAPE_FIELDS = 4, MAX_FIELDS = 16 };

// Zeroed room at the end, aligned so that `phase` bytes further on is a multiple of 8 or, for
// phase 0, of 4.
static size_t grow(flat_builder_t *b, size_t size, size_t phase)
{
    size_t at = b->size;
    while (phase ? (at + phase) % 8 : at % 4) at++;
    size_t end = at + size;
    if (b->failed || end > INT32_MAX) {
        b->failed = true;
        return 0;
    }
    if (end > b->capacity) {
        size_t capacity = end * 2;
        unsigned char *data = mem_resize(b->data, capacity);
        if (!data) {
            b->failed = true;
            return 0;
        }
        b->data = data;
        b->capacity = capacity;
    }
    memset(b->data + b->size, 0, end - b->size);
    b->size = end;
    return at;
}

static void store_u32(flat_builder_t *b, size_t at, size_t value)
{
    uint32_t word = (uint32_t)value;
    if (!b->failed) memcpy(b->data + at, &word, sizeof word);
}

// The larger the alignment the earlier, so that nothing lies between fields.
static int inline_class(const flat_field_t *field)
{
    size_t align = flat_field_align(field);
    return align == 8 ? 0 : align == 4 ? 1 : 2;
}

// Where each field lies in a table that has them all; the last element is the size of the table.
static void lay_out(const flat_table_t *table, uint16_t offsets[MAX_FIELDS + 1])
{
    size_t at = 4;
    for (int class = 0; class < 3; class ++) {
        for (uint32_t i = 0; i < table->field_count; i++) {
            if (inline_class(&table->fields[i]) != class) continue;
            offsets[i] = (uint16_t)at;
            at += flat_field_size(&table->fields[i]);
        }
    }
    offsets[table->field_count] = (uint16_t)at;
}

// The table's shape, written when it is first needed.
static size_t shape_make(flat_builder_t *b, const flat_table_t *table)
{
    size_t i = 0;
    for (; b->shapes[i].table; i++)
        if (b->shapes[i].table == table) return b->shapes[i].at;
    uint16_t offsets[MAX_FIELDS + 1];
    lay_out(table, offsets);
    uint16_t head[] = {(uint16_t)(SHAPE_FIELDS + 2 * table->field_count),
                       offsets[table->field_count]};
    size_t at = grow(b, head[0], 0);
    if (b->failed) return 0;
    memcpy(b->data + at, head, sizeof head);
    memcpy(b->data + at + SHAPE_FIELDS, offsets, 2 * table->field_count);
    b->shapes[i].table = table;
    b->shapes[i].at = at;
    return at;
}

static size_t table_make(flat_builder_t *b, const flat_table_t *table)
{
    uint16_t offsets[MAX_FIELDS + 1];
    lay_out(table, offsets);
    size_t shape = shape_make(b, table);
    size_t at = grow(b, offsets[table->field_count], 4);
    store_u32(b, at, at - shape);
    return at;
}

static const flat_field_t *field_of(const flat_builder_t *b, size_t table, uint32_t field)
{
    uint32_t back;
    memcpy(&back, b->data + table, sizeof back);
    size_t i = 0;
    while (b->shapes[i].at != table - back) i++;
    return &b->shapes[i].table->fields[field];
}

static size_t field_place(const flat_builder_t *b, size_t table, uint32_t field)
{
    uint32_t back;
    uint16_t offset;
    memcpy(&back, b->data + table, sizeof back);
    memcpy(&offset, b->data + (table - back) + SHAPE_FIELDS + 2 * (size_t)field, sizeof offset);
    return table + offset;
}

size_t flat_build(flat_builder_t *builder, const char identifier[4], const flat_table_t *root)
{
    *builder = (flat_builder_t){0};
    grow(builder, 8, 0);
    size_t table = table_make(builder, root);
    store_u32(builder, 0, table);
    if (!builder->failed) memcpy(builder->data + 4, identifier, 4);
    return table;
}

void flat_set_number(flat_builder_t *builder, size_t table, uint32_t field, uint64_t value)
{
    if (builder->failed) return;
    size_t size = flat_field_size(field_of(builder, table, field));
    memcpy(builder->data + field_place(builder, table, field), &value, size);
}

void flat_set_struct(flat_builder_t *builder, size_t table, uint32_t field, const void *bytes)
{
    if (builder->failed) return;
    size_t size = flat_field_size(field_of(builder, table, field));
    memcpy(builder->data + field_place(builder, table, field), bytes, size);
}

// Makes a field refer to new room.
static size_t refer(flat_builder_t *b, size_t place, size_t size)
{
    size_t at = grow(b, size, 0);
    store_u32(b, place, at - place);
    return at;
}

void flat_set_text(flat_builder_t *builder, size_t table, uint32_t field, const char *text)
{
    if (builder->failed) return;
    size_t length = strlen(text);
    size_t at = refer(builder, field_place(builder, table, field), 4 + length + 1);
    store_u32(builder, at, length);
    if (!builder->failed) memcpy(builder->data + at + 4, text, length);
}

void flat_set_tables(flat_builder_t *builder, size_t table, uint32_t field, uint32_t count)
{
    if (builder->failed) return;
    size_t at = refer(builder, field_place(builder, table, field), 4 + 4 * (size_t)count);
    store_u32(builder, at, count);
}

size_t flat_make_item(flat_builder_t *builder, size_t table, uint32_t field, uint32_t index)
{
    if (builder->failed) return 0;
    const flat_table_t *schema = field_of(builder, table, field)->table;
    size_t place = field_place(builder, table, field);
    uint32_t offset;
    memcpy(&offset, builder->data + place, sizeof offset);
    size_t element = place + offset + 4 + 4 * (size_t)index;
    size_t item = table_make(builder, schema);
    store_u32(builder, element, item - element);
    return item;
}
