// SPDX-License-Identifier: Apache-2.0
// BLAKE2b with 32 bytes of result (RFC 7693), what `b2sum -l 256` prints: names contents: two
// different ones with the same hash cannot be made.
#ifndef KEEL_SRC_EXECUTABLE_HASH_H_
#define KEEL_SRC_EXECUTABLE_HASH_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { HASH_SIZE = 32 };

typedef struct hash_t {
    uint8_t bytes[HASH_SIZE];
} hash_t;

hash_t hash_of(const void *data, size_t size);

// In pieces. hash_end may be called once.
typedef struct hash_state_t {
    uint64_t chain[8];
    uint64_t total;
    uint8_t block[128];
    size_t used; // of the block
} hash_state_t;

void hash_begin(hash_state_t *state);
void hash_add(hash_state_t *state, const void *data, size_t size);
hash_t hash_end(hash_state_t *state);

#endif
