// SPDX-License-Identifier: Apache-2.0
// Little-endian numbers at any address, and the one question asked of every offset that an image
// holds.
#ifndef KEEL_SRC_EXECUTABLE_BYTES_H_
#define KEEL_SRC_EXECUTABLE_BYTES_H_

#include <stdbool.h>
#include <stdint.h>

static inline uint16_t bytes_u16(const uint8_t *at)
{
    return (uint16_t)(at[0] | at[1] << 8);
}

static inline uint32_t bytes_u32(const uint8_t *at)
{
    return bytes_u16(at) | (uint32_t)bytes_u16(at + 2) << 16;
}

static inline uint64_t bytes_u64(const uint8_t *at)
{
    return bytes_u32(at) | (uint64_t)bytes_u32(at + 4) << 32;
}

// Whether `length` bytes at `offset` lie within `size`.
static inline bool bytes_fit(uint64_t offset, uint64_t length, uint64_t size)
{
    return offset <= size && length <= size - offset;
}

#endif
