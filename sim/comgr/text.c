// SPDX-License-Identifier: Apache-2.0
#include "comgr/text.h"

#include <stdlib.h>
#include <string.h>

void text_finish(text_t *text)
{
    free(text->bytes);
}

char *text_grow(text_t *text, size_t size)
{
    if (text->bad) return NULL;
    if (size > text->room - text->size) {
        size_t room = (text->room + size) * 2;
        char *bytes = size < SIZE_MAX / 4 ? realloc(text->bytes, room) : NULL;
        text->bad = !bytes;
        if (!bytes) return NULL;
        text->bytes = bytes;
        text->room = room;
    }
    char *place = text->bytes + text->size;
    text->size += size;
    return place;
}

void text_number(text_t *text, uint64_t number)
{
    char *place = text_grow(text, sizeof number);
    if (place) memcpy(place, &number, sizeof number);
}

// Each word goes through a multiplication, whose upper half comes down.
static uint64_t mix(uint64_t state, uint64_t word, uint64_t factor)
{
    state = (state ^ word) * factor;
    return state ^ state >> 32;
}

void text_digest(const text_t *text, uint64_t digest[2])
{
    digest[0] = text->size;
    digest[1] = ~text->size;
    for (size_t i = 0; i < text->size; i += 8) {
        uint64_t word = 0;
        memcpy(&word, text->bytes + i, text->size - i < 8 ? text->size - i : 8);
        digest[0] = mix(digest[0], word, 0x9e3779b97f4a7c15u);
        digest[1] = mix(digest[1], word, 0xc2b2ae3d27d4eb4fu);
    }
}
