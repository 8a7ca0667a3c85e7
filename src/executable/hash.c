// SPDX-License-Identifier: Apache-2.0
#include "executable/hash.h"

#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "words are read as they lie");

static const uint64_t start[8] = {
    0x6a09e667f3bcc908, 0xbb67ae8584caa73b, 0x3c6ef372fe94f82b, 0xa54ff53a5f1d36f1,
    0x510e527fade682d1, 0x9b05688c2b3e6c1f, 0x1f83d9abfb41bd6b, 0x5be0cd19137e2179,
};

static const uint8_t order[12][16] = {
    {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
    {14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3},
    {11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4},
    {7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8},
    {9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13},
    {2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9},
    {12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11},
    {13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10},
    {6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5},
    {10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0},
    {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
    {14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3},
};

static inline uint64_t rotate(uint64_t word, int bits)
{
    return word >> bits | word << (64 - bits);
}

// A macro with constant indices, so that the sixteen words stay in registers.
#define MIX(a, b, c, d, i)                                                                         \
    do {                                                                                           \
        v[a] += v[b] + message[s[2 * (i)]];                                                        \
        v[d] = rotate(v[d] ^ v[a], 32);                                                            \
        v[c] += v[d];                                                                              \
        v[b] = rotate(v[b] ^ v[c], 24);                                                            \
        v[a] += v[b] + message[s[2 * (i) + 1]];                                                    \
        v[d] = rotate(v[d] ^ v[a], 16);                                                            \
        v[c] += v[d];                                                                              \
        v[b] = rotate(v[b] ^ v[c], 63);                                                            \
    } while (0)

static void compress(uint64_t chain[8], const uint8_t *block, uint64_t total, bool last)
{
    uint64_t message[16], v[16];
    memcpy(message, block, sizeof message);
    memcpy(v, chain, 64);
    memcpy(v + 8, start, 64);
    v[12] ^= total;
    if (last) v[14] = ~v[14];
    for (int round = 0; round < 12; round++) {
        const uint8_t *s = order[round];
        MIX(0, 4, 8, 12, 0);
        MIX(1, 5, 9, 13, 1);
        MIX(2, 6, 10, 14, 2);
        MIX(3, 7, 11, 15, 3);
        MIX(0, 5, 10, 15, 4);
        MIX(1, 6, 11, 12, 5);
        MIX(2, 7, 8, 13, 6);
        MIX(3, 4, 9, 14, 7);
    }
    for (int i = 0; i < 8; i++) chain[i] ^= v[i] ^ v[i + 8];
}

void hash_begin(hash_state_t *state)
{
    memset(state, 0, sizeof *state);
    memcpy(state->chain, start, sizeof start);
    state->chain[0] ^= 0x01010000 ^ HASH_SIZE; // no key, one leaf
}

// The last block is marked, so a full one waits until more is known to follow.
void hash_add(hash_state_t *state, const void *data, size_t size)
{
    const uint8_t *at = data;
    while (size) {
        if (state->used == sizeof state->block) {
            state->total += sizeof state->block;
            compress(state->chain, state->block, state->total, false);
            state->used = 0;
        }
        size_t room = sizeof state->block - state->used;
        size_t part = size < room ? size : room;
        memcpy(state->block + state->used, at, part);
        state->used += part;
        at += part;
        size -= part;
    }
}

hash_t hash_end(hash_state_t *state)
{
    hash_t hash;
    memset(state->block + state->used, 0, sizeof state->block - state->used);
    compress(state->chain, state->block, state->total + state->used, true);
    memcpy(&hash, state->chain, sizeof hash);
    return hash;
}

hash_t hash_of(const void *data, size_t size)
{
    hash_state_t state;
    hash_begin(&state);
    hash_add(&state, data, size);
    return hash_end(&state);
}
