// SPDX-License-Identifier: Apache-2.0
// Reads MessagePack, value by value, from bytes that may be anything.
#ifndef KEEL_SRC_EXECUTABLE_MSGPACK_H_
#define KEEL_SRC_EXECUTABLE_MSGPACK_H_

#include <keel/status.h>

typedef enum msgpack_type_t {
    MSGPACK_NIL,
    MSGPACK_BOOL,
    MSGPACK_UNSIGNED,
    MSGPACK_NEGATIVE,
    MSGPACK_FLOAT,
    MSGPACK_TEXT,
    MSGPACK_BINARY,
    MSGPACK_EXTENSION,
    MSGPACK_ARRAY, // its elements are the values that follow
    MSGPACK_MAP,   // keys and values follow in turn
} msgpack_type_t;

typedef struct msgpack_value_t {
    msgpack_type_t type;
    uint64_t number;     // of a number: its value, a negative one as int64_t; a bool: 0 or 1
    const uint8_t *data; // of text, binary and extension: not terminated
    uint64_t size;       // of these: bytes; of an array: elements; of a map: pairs
} msgpack_value_t;

typedef struct msgpack_t {
    const uint8_t *at, *end; // what is not read yet; borrowed
} msgpack_t;

// Takes the next value; of an array or map, only its size. KEEL_CORRUPT if it is cut off, or has
// more elements than there are bytes left.
keel_status_t msgpack_next(msgpack_t *reader, msgpack_value_t *value) KEEL_MUST_USE;

// Passes over the next value with all that is in it, however deep.
keel_status_t msgpack_skip(msgpack_t *reader) KEEL_MUST_USE;

// Takes the next value, which must be of that type.
keel_status_t msgpack_expect(msgpack_t *reader, msgpack_type_t type,
                             msgpack_value_t *value) KEEL_MUST_USE;

// Whether a value is this text.
bool msgpack_is(const msgpack_value_t *value, const char *text);

#endif
