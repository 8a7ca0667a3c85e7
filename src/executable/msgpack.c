// SPDX-License-Identifier: Apache-2.0
#include "executable/msgpack.h"

#include <string.h>

// How a first byte of 0xc0 and more is to be read: a value that stands in the byte itself, or a
// number of `width` bytes behind it that is the value or the size of what follows.
typedef struct form_t {
    uint8_t type;
    uint8_t width;
    bool sized;    // the number is the size of data
    uint8_t fixed; // bytes of data beside those the number counts
} form_t;

static const form_t forms[32] = {
    [0xc0 - 0xc0] = {MSGPACK_NIL, 0, false, 0},
    [0xc2 - 0xc0] = {MSGPACK_BOOL, 0, false, 0},
    [0xc3 - 0xc0] = {MSGPACK_BOOL, 0, false, 0},
    [0xc4 - 0xc0] = {MSGPACK_BINARY, 1, true, 0},
    [0xc5 - 0xc0] = {MSGPACK_BINARY, 2, true, 0},
    [0xc6 - 0xc0] = {MSGPACK_BINARY, 4, true, 0},
    [0xc7 - 0xc0] = {MSGPACK_EXTENSION, 1, true, 1},
    [0xc8 - 0xc0] = {MSGPACK_EXTENSION, 2, true, 1},
    [0xc9 - 0xc0] = {MSGPACK_EXTENSION, 4, true, 1},
    [0xca - 0xc0] = {MSGPACK_FLOAT, 4, false, 0},
    [0xcb - 0xc0] = {MSGPACK_FLOAT, 8, false, 0},
    [0xcc - 0xc0] = {MSGPACK_UNSIGNED, 1, false, 0},
    [0xcd - 0xc0] = {MSGPACK_UNSIGNED, 2, false, 0},
    [0xce - 0xc0] = {MSGPACK_UNSIGNED, 4, false, 0},
    [0xcf - 0xc0] = {MSGPACK_UNSIGNED, 8, false, 0},
    [0xd0 - 0xc0] = {MSGPACK_NEGATIVE, 1, false, 0},
    [0xd1 - 0xc0] = {MSGPACK_NEGATIVE, 2, false, 0},
    [0xd2 - 0xc0] = {MSGPACK_NEGATIVE, 4, false, 0},
    [0xd3 - 0xc0] = {MSGPACK_NEGATIVE, 8, false, 0},
    [0xd4 - 0xc0] = {MSGPACK_EXTENSION, 0, true, 2},
    [0xd5 - 0xc0] = {MSGPACK_EXTENSION, 0, true, 3},
    [0xd6 - 0xc0] = {MSGPACK_EXTENSION, 0, true, 5},
    [0xd7 - 0xc0] = {MSGPACK_EXTENSION, 0, true, 9},
    [0xd8 - 0xc0] = {MSGPACK_EXTENSION, 0, true, 17},
    [0xd9 - 0xc0] = {MSGPACK_TEXT, 1, true, 0},
    [0xda - 0xc0] = {MSGPACK_TEXT, 2, true, 0},
    [0xdb - 0xc0] = {MSGPACK_TEXT, 4, true, 0},
    [0xdc - 0xc0] = {MSGPACK_ARRAY, 2, true, 0},
    [0xdd - 0xc0] = {MSGPACK_ARRAY, 4, true, 0},
    [0xde - 0xc0] = {MSGPACK_MAP, 2, true, 0},
    [0xdf - 0xc0] = {MSGPACK_MAP, 4, true, 0},
};

static uint64_t left(const msgpack_t *reader)
{
    return (uint64_t)(reader->end - reader->at);
}

static keel_status_t cut_off(void)
{
    return KEEL_ERROR(KEEL_CORRUPT, "its MessagePack data is cut off");
}

// Big-endian, as all of MessagePack.
static keel_status_t number_take(msgpack_t *reader, unsigned width, uint64_t *number)
{
    *number = 0;
    if (left(reader) < width) return cut_off();
    for (unsigned i = 0; i < width; i++) *number = *number << 8 | *reader->at++;
    return NULL;
}

// Data must be there; of arrays and maps each element takes a byte at least.
static keel_status_t size_check(msgpack_t *reader, msgpack_value_t *value)
{
    if (value->type == MSGPACK_ARRAY || value->type == MSGPACK_MAP) {
        uint64_t least = value->type == MSGPACK_MAP ? value->size * 2 : value->size;
        return least > left(reader) ? cut_off() : NULL;
    }
    if (value->size > left(reader)) return cut_off();
    value->data = reader->at;
    reader->at += value->size;
    return NULL;
}

// First bytes below 0xc0, and from 0xe0 on: small numbers and sizes.
static keel_status_t short_next(msgpack_t *reader, uint8_t first, msgpack_value_t *value)
{
    if (first < 0x80 || first >= 0xe0) {
        value->type = first < 0x80 ? MSGPACK_UNSIGNED : MSGPACK_NEGATIVE;
        value->number = (uint64_t)(int64_t)(int8_t)first;
        return NULL;
    }
    value->type = first < 0x90 ? MSGPACK_MAP : first < 0xa0 ? MSGPACK_ARRAY : MSGPACK_TEXT;
    value->size = first & (first < 0xa0 ? 15 : 31);
    return size_check(reader, value);
}

keel_status_t msgpack_next(msgpack_t *reader, msgpack_value_t *value)
{
    *value = (msgpack_value_t){.type = MSGPACK_NIL};
    if (reader->at == reader->end) return cut_off();
    uint8_t first = *reader->at++;
    if (first < 0xc0 || first >= 0xe0) return short_next(reader, first, value);
    if (first == 0xc1) return KEEL_ERROR(KEEL_CORRUPT, "its MessagePack data has a byte 0xc1");
    const form_t *form = &forms[first - 0xc0];
    uint64_t number;
    KEEL_TRY(number_take(reader, form->width, &number));
    value->type = form->type;
    if (form->sized) {
        value->size = number + form->fixed;
        return size_check(reader, value);
    }
    value->number = form->type == MSGPACK_BOOL ? first & 1 : number;
    if (form->type == MSGPACK_NEGATIVE) {
        uint64_t sign = UINT64_C(1) << (form->width * 8 - 1);
        value->number = (number ^ sign) - sign;
        if ((int64_t)value->number >= 0) value->type = MSGPACK_UNSIGNED;
    }
    return NULL;
}

keel_status_t msgpack_skip(msgpack_t *reader)
{
    // Each value still to come takes a byte, so this cannot overflow.
    for (uint64_t values = 1; values; values--) {
        msgpack_value_t value;
        KEEL_TRY(msgpack_next(reader, &value));
        if (value.type == MSGPACK_ARRAY) values += value.size;
        if (value.type == MSGPACK_MAP) values += value.size * 2;
        if (values - 1 > left(reader)) return cut_off();
    }
    return NULL;
}

keel_status_t msgpack_expect(msgpack_t *reader, msgpack_type_t type, msgpack_value_t *value)
{
    static const char *const names[] = {
        [MSGPACK_NIL] = "nil",           [MSGPACK_BOOL] = "a bool",
        [MSGPACK_UNSIGNED] = "a number", [MSGPACK_NEGATIVE] = "a negative number",
        [MSGPACK_FLOAT] = "a fraction",  [MSGPACK_TEXT] = "a text",
        [MSGPACK_BINARY] = "binary",     [MSGPACK_EXTENSION] = "an extension",
        [MSGPACK_ARRAY] = "an array",    [MSGPACK_MAP] = "a map",
    };
    KEEL_TRY(msgpack_next(reader, value));
    if (value->type == type) return NULL;
    return KEEL_ERROR(KEEL_CORRUPT, "its MessagePack data has %s where %s belongs",
                      names[value->type], names[type]);
}

bool msgpack_is(const msgpack_value_t *value, const char *text)
{
    size_t length = strlen(text);
    return value->type == MSGPACK_TEXT && value->size == length &&
           memcmp(value->data, text, length) == 0;
}
