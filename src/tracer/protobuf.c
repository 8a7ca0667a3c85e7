// SPDX-License-Identifier: Apache-2.0
#include "tracer/protobuf.h"

#include <string.h>

enum { VARINT = 0, FIXED64 = 1, BYTES = 2, MOST = 20 }; // types; of a tag and a number, in bytes

static void number_put(pb_t *pb, uint64_t value)
{
    for (; value >= 0x80; value >>= 7) pb->data[pb->size++] = (uint8_t)(value | 0x80);
    pb->data[pb->size++] = (uint8_t)value;
}

static void bytes_put(pb_t *pb, uint32_t field, const void *bytes, size_t size)
{
    if (pb->size + size + MOST > sizeof pb->data) return;
    number_put(pb, (uint64_t)field << 3 | BYTES);
    number_put(pb, size);
    memcpy(pb->data + pb->size, bytes, size);
    pb->size += size;
}

void pb_varint(pb_t *pb, uint32_t field, uint64_t value)
{
    if (pb->size + MOST > sizeof pb->data) return;
    number_put(pb, (uint64_t)field << 3 | VARINT);
    number_put(pb, value);
}

void pb_fixed64(pb_t *pb, uint32_t field, uint64_t value)
{
    if (pb->size + MOST > sizeof pb->data) return;
    number_put(pb, (uint64_t)field << 3 | FIXED64);
    for (int i = 0; i < 8; i++) pb->data[pb->size++] = (uint8_t)(value >> 8 * i);
}

void pb_double(pb_t *pb, uint32_t field, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    pb_fixed64(pb, field, bits);
}

void pb_text(pb_t *pb, uint32_t field, const char *text)
{
    bytes_put(pb, field, text, strnlen(text, PB_TEXT));
}

void pb_message(pb_t *pb, uint32_t field, const pb_t *message)
{
    bytes_put(pb, field, message->data, message->size);
}
