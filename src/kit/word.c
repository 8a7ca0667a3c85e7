// SPDX-License-Identifier: Apache-2.0
#include "kit/word.h"

#include "base/memory.h"

struct word_t {
    word_t *next;
    const keel_buffer_t *buffer;
    pool_word_t *at;
};

static uint32_t bucket_of(const keel_buffer_t *buffer)
{
    uint64_t hash = (uintptr_t)buffer * UINT64_C(0x9e3779b97f4a7c15);
    return (uint32_t)(hash >> 32) % WORD_BUCKETS;
}

pool_word_t *words_find(const words_t *words, const keel_buffer_t *buffer)
{
    const word_t *word = words->buckets[bucket_of(buffer)];
    while (word && word->buffer != buffer) word = word->next;
    return word ? word->at : NULL;
}

bool words_add(words_t *words, const keel_buffer_t *buffer, pool_word_t *at)
{
    word_t **first = &words->buckets[bucket_of(buffer)], *word = mem_alloc(sizeof *word);
    if (!word) return false;
    *word = (word_t){*first, buffer, at};
    *first = word;
    return true;
}

pool_word_t *words_remove(words_t *words, const keel_buffer_t *buffer)
{
    word_t **link = &words->buckets[bucket_of(buffer)];
    while (*link && (*link)->buffer != buffer) link = &(*link)->next;
    word_t *word = *link;
    if (!word) return NULL;
    pool_word_t *at = word->at;
    *link = word->next;
    mem_free(word);
    return at;
}
