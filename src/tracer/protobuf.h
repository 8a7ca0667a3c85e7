// SPDX-License-Identifier: Apache-2.0
// Writes messages of Protocol Buffers, by the numbers of their fields.
#ifndef KEEL_SRC_TRACER_PROTOBUF_H_
#define KEEL_SRC_TRACER_PROTOBUF_H_

#include <stddef.h>
#include <stdint.h>

enum { PB_TEXT = 4096, PB_SIZE = 3 * PB_TEXT }; // bytes of a text that are kept; of a message

// Zeroed size, it is empty. What is more than PB_SIZE is left out.
typedef struct pb_t {
    size_t size;
    uint8_t data[PB_SIZE];
} pb_t;

void pb_varint(pb_t *pb, uint32_t field, uint64_t value);
void pb_fixed64(pb_t *pb, uint32_t field, uint64_t value);
void pb_double(pb_t *pb, uint32_t field, double value);
void pb_text(pb_t *pb, uint32_t field, const char *text);
void pb_message(pb_t *pb, uint32_t field, const pb_t *message);

#endif
