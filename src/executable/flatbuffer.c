// SPDX-License-Identifier: Apache-2.0
// The format, as far as it is used. All numbers are little-endian and aligned to their size.
//
//     buffer   u32 offset of the root table, four bytes of identifier ...
//     table    i32 back to its shape, then fields; what does not fit in place is a u32 offset from
//              that field forward
//     shape    u16 its own size, u16 size of the table, u16 per field: where in the table, 0: not
//     text     u32 length, bytes, a zero
//     vector   u32 length, elements; of tables: u32 offsets from the element
#include "executable/flatbuffer.h"

#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "numbers are read as they lie");

enum { ROOT = 4 + 4, SHAPE_FIELDS = 4 };

static uint16_t load_u16(const unsigned char *at)
{
    uint16_t value;
    memcpy(&value, at, sizeof value);
    return value;
}

static uint32_t load_u32(const unsigned char *at)
{
    uint32_t value;
    memcpy(&value, at, sizeof value);
    return value;
}

// How many bytes the character at `text` has, 0 if it is none that a text may have: no UTF-8, or a
// control character.
static size_t character_size(const unsigned char *text)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    unsigned char first = text[0];
    if (first < 0x80) return first >= 0x20 && first != 0x7f;
    size_t size = first < 0xc0 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf8 ? 4 : 0;
    uint32_t code = first & (0x7fu >> size);
    for (size_t i = 1; i < size; i++) {
        if ((text[i] & 0xc0) != 0x80) return 0; // also at the zero that ends every text
        code = code << 6 | (text[i] & 0x3f);
    }
    bool good = size && code >= least[size] && code <= 0x10ffff && code >= 0xa0 &&
                (code < 0xd800 || code > 0xdfff);
    return good ? size : 0;
}

bool flat_text_is_good(const char *text)
{
    const unsigned char *start = (const unsigned char *)text, *at = start;
    while (*at) {
        size_t size = character_size(at);
        at += size;
        if (!size || at - start > FLAT_MAX_TEXT) return false;
    }
    return true;
}

// Verifying.

typedef struct verify_t {
    const unsigned char *data;
    size_t size;
    size_t left; // what further parts may add up to
} verify_t;

static bool fits(const verify_t *v, size_t at, size_t size)
{
    return at <= v->size && size <= v->size - at;
}

// Tables and texts are paid for by their size, so that all the work is linear in the size of the
// buffer.
static bool pay(verify_t *v, size_t size)
{
    if (size > v->left) return false;
    v->left -= size;
    return true;
}

static keel_status_t bad(const flat_table_t *table, const flat_field_t *field, const char *why)
{
    return KEEL_ERROR(KEEL_CORRUPT, "its table of contents is damaged: %s%s%s %s", table->name,
                      field ? "." : "", field ? field->name : "", why);
}

// Finds what a field of 4 bytes at `at` refers to, which begins with 4 bytes.
static bool follow(const verify_t *v, size_t at, size_t *target)
{
    uint32_t offset = load_u32(v->data + at);
    if (!offset || offset > v->size - at) return false;
    *target = at + offset;
    return *target % 4 == 0 && fits(v, *target, 4);
}

static const char *text_verify(verify_t *v, size_t at)
{
    size_t text;
    if (!follow(v, at, &text)) return "lies outside";
    size_t length = load_u32(v->data + text);
    if (length > FLAT_MAX_TEXT) return "is too long";
    if (!fits(v, text + 4, length + 1)) return "ends outside";
    if (!pay(v, 4 + length + 1)) return "makes it refer to more than it holds";
    const char *start = (const char *)v->data + text + 4;
    if (start[length] || strlen(start) != length) return "is not ended by a zero";
    return flat_text_is_good(start) ? NULL : "is no printable UTF-8";
}

static keel_status_t table_verify(verify_t *v, size_t at, const flat_table_t *table);

static keel_status_t tables_verify(verify_t *v, size_t at, const flat_table_t *table,
                                   const flat_field_t *field)
{
    size_t vector;
    if (!follow(v, at, &vector)) return bad(table, field, "lies outside");
    size_t count = load_u32(v->data + vector), first = vector + 4;
    if (!fits(v, first, count * 4)) return bad(table, field, "ends outside");
    for (size_t i = 0; i < count; i++) {
        size_t item;
        if (!follow(v, first + i * 4, &item))
            return bad(table, field, "has a part that lies outside");
        KEEL_TRY(table_verify(v, item, field->table));
    }
    return NULL;
}

static keel_status_t field_verify(verify_t *v, size_t at, const flat_table_t *table,
                                  const flat_field_t *field)
{
    if (at % flat_field_align(field)) return bad(table, field, "is not aligned");
    if (field->kind == FLAT_TABLES) return tables_verify(v, at, table, field);
    const char *why = field->kind == FLAT_TEXT ? text_verify(v, at) : NULL;
    return why ? bad(table, field, why) : NULL;
}

// That a table and its shape lie within; recursion is as deep as the schema.
static keel_status_t table_verify(verify_t *v, size_t at, const flat_table_t *table)
{
    int64_t shape = (int64_t)at - (int32_t)load_u32(v->data + at);
    if (shape < 0 || shape % 2 || !fits(v, (size_t)shape, SHAPE_FIELDS))
        return bad(table, NULL, "has no shape");
    const unsigned char *s = v->data + shape;
    size_t shape_size = load_u16(s), size = load_u16(s + 2);
    if (shape_size < SHAPE_FIELDS || shape_size % 2 || !fits(v, (size_t)shape, shape_size))
        return bad(table, NULL, "has a shape that ends outside");
    if (size < 4 || !fits(v, at, size)) return bad(table, NULL, "ends outside");
    if (!pay(v, size)) return bad(table, NULL, "makes it refer to more than it holds");
    for (size_t i = 0; i < table->field_count; i++) {
        const flat_field_t *field = &table->fields[i];
        size_t slot = SHAPE_FIELDS + 2 * i;
        size_t offset = slot + 2 <= shape_size ? load_u16(s + slot) : 0;
        if (!offset && !field->required) continue;
        if (!offset) return bad(table, field, "is missing");
        if (offset < 4 || offset > size || flat_field_size(field) > size - offset)
            return bad(table, field, "lies outside of its table");
        KEEL_TRY(field_verify(v, at + offset, table, field));
    }
    return NULL;
}

keel_status_t flat_verify(const void *data, size_t size, const char identifier[4],
                          const flat_table_t *root)
{
    verify_t v = {data, size, size};
    size_t table;
    if (size < ROOT + 4 || size > INT32_MAX) return bad(root, NULL, "has an impossible size");
    if (memcmp(v.data + 4, identifier, 4) != 0)
        return bad(root, NULL, "has another identifier than its schema");
    if (!follow(&v, 0, &table)) return bad(root, NULL, "lies outside");
    return table_verify(&v, table, root);
}

// Reading.

flat_t flat_root(const void *data)
{
    return (flat_t){data, load_u32(data)};
}

static const unsigned char *field_at(flat_t table, uint32_t field)
{
    const unsigned char *at = table.data + table.at;
    const unsigned char *shape = at - (int32_t)load_u32(at);
    size_t slot = SHAPE_FIELDS + 2 * (size_t)field;
    size_t offset = slot + 2 <= load_u16(shape) ? load_u16(shape + slot) : 0;
    return offset ? at + offset : NULL;
}

static const unsigned char *target_of(const unsigned char *field)
{
    return field + load_u32(field);
}

uint64_t flat_number(flat_t table, uint32_t field, flat_kind_t kind)
{
    const unsigned char *at = field_at(table, field);
    uint64_t value = 0;
    if (at) memcpy(&value, at, kind == FLAT_U8 ? 1 : kind == FLAT_U32 ? 4 : 8);
    return value;
}

const void *flat_struct(flat_t table, uint32_t field)
{
    return field_at(table, field);
}

const char *flat_text(flat_t table, uint32_t field)
{
    const unsigned char *at = field_at(table, field);
    return at ? (const char *)target_of(at) + 4 : "";
}

uint32_t flat_count(flat_t table, uint32_t field)
{
    const unsigned char *at = field_at(table, field);
    return at ? load_u32(target_of(at)) : 0;
}

flat_t flat_item(flat_t table, uint32_t field, uint32_t index)
{
    const unsigned char *element = target_of(field_at(table, field)) + 4 + 4 * (size_t)index;
    return (flat_t){table.data, (size_t)(target_of(element) - table.data)};
}
