// SPDX-License-Identifier: Apache-2.0
// Words in which a device finds the addresses of queue-ordered buffers, by the buffers. Those of a
// pool, under its lock.
#ifndef KEEL_SRC_KIT_WORD_H_
#define KEEL_SRC_KIT_WORD_H_

#include "kit/shelf.h"

enum { WORD_BUCKETS = 64 };

typedef struct word_t word_t;
typedef struct words_t {
    word_t *buckets[WORD_BUCKETS];
} words_t;

// NULL: the buffer has none.
pool_word_t *words_find(const words_t *words, const keel_buffer_t *buffer);
// The buffer has none so far. False: there is no memory.
bool words_add(words_t *words, const keel_buffer_t *buffer, pool_word_t *at);
// Takes that of a buffer away, and returns it; NULL: it had none.
pool_word_t *words_remove(words_t *words, const keel_buffer_t *buffer);

#endif
