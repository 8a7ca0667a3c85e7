// SPDX-License-Identifier: Apache-2.0
// FlatBuffers (https://flatbuffers.dev): the part of the format that the schemas here use. A schema
// is described by tables of fields, which the verifier, the reader and the builder go by.
//
// The verifier comes first: it takes bytes from anywhere, in time that grows with their number
// alone. What it has passed, the reader reads without looking again. No function keeps state; any
// thread.
#ifndef KEEL_SRC_EXECUTABLE_FLATBUFFER_H_
#define KEEL_SRC_EXECUTABLE_FLATBUFFER_H_

#include <keel/status.h>

enum { FLAT_MAX_TEXT = 4095 }; // bytes of a text

typedef enum flat_kind_t {
    FLAT_U8,
    FLAT_U32,
    FLAT_U64,
    FLAT_STRUCT, // bytes in place
    FLAT_TEXT,   // UTF-8 without control characters
    FLAT_TABLES, // a vector of tables
} flat_kind_t;

typedef struct flat_table_t flat_table_t;

typedef struct flat_field_t {
    const char *name; // for messages
    flat_kind_t kind;
    bool required;
    uint16_t size, align;      // of a FLAT_STRUCT
    const flat_table_t *table; // of FLAT_TABLES
} flat_field_t;

// Bytes of a field in its table, and what these are aligned to.
static inline size_t flat_field_size(const flat_field_t *field)
{
    switch (field->kind) {
    case FLAT_U8: return 1;
    case FLAT_U64: return 8;
    case FLAT_STRUCT: return field->size;
    default: return 4;
    }
}

static inline size_t flat_field_align(const flat_field_t *field)
{
    return field->kind == FLAT_STRUCT ? field->align : flat_field_size(field);
}

// Fields by number, in the order of the schema. Schemas are not recursive.
struct flat_table_t {
    const char *name; // for messages
    uint32_t field_count;
    const flat_field_t *fields;
};

// Checks everything that `root` knows of: bounds, alignment, required fields, texts. Fields that it
// does not know are left alone, as a later schema may have added them. Parts that are referred to
// so often that they add up to more than `size` are an error, too.
// The error is KEEL_CORRUPT and says at which field.
keel_status_t flat_verify(const void *data, size_t size, const char identifier[4],
                          const flat_table_t *root) KEEL_MUST_USE;

// A table in verified bytes.
typedef struct flat_t {
    const unsigned char *data;
    size_t at;
} flat_t;

flat_t flat_root(const void *data);

// A field by its number. One that is not there is 0, "", NULL or an empty vector.
uint64_t flat_number(flat_t table, uint32_t field, flat_kind_t kind);
const void *flat_struct(flat_t table, uint32_t field);
const char *flat_text(flat_t table, uint32_t field);
uint32_t flat_count(flat_t table, uint32_t field);
flat_t flat_item(flat_t table, uint32_t field, uint32_t index);

// Writes front to back: a table first, then what its fields refer to. A table is known by where it
// lies, since the bytes move as they grow. All fields that refer to something must be set. When
// memory runs out, `failed` is set and all else does nothing.
typedef struct flat_builder_t {
    unsigned char *data; // owned, by mem_free
    size_t size, capacity;
    struct {
        const flat_table_t *table;
        size_t at;
    } shapes[8]; // of tables, shared by those that have the same; empty ones are NULL
    bool failed;
} flat_builder_t;

// Begins, and returns the root table.
size_t flat_build(flat_builder_t *builder, const char identifier[4], const flat_table_t *root);

void flat_set_number(flat_builder_t *builder, size_t table, uint32_t field, uint64_t value);
void flat_set_struct(flat_builder_t *builder, size_t table, uint32_t field, const void *bytes);
void flat_set_text(flat_builder_t *builder, size_t table, uint32_t field, const char *text);

// A vector of `count` tables, to be made by flat_make_item.
void flat_set_tables(flat_builder_t *builder, size_t table, uint32_t field, uint32_t count);
size_t flat_make_item(flat_builder_t *builder, size_t table, uint32_t field, uint32_t index);

// Whether a text may stand in a buffer.
bool flat_text_is_good(const char *text);

#endif
