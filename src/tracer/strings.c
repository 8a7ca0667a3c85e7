// SPDX-License-Identifier: Apache-2.0
#include "tracer/strings.h"

#include <string.h>

#include "base/memory.h"
#include "base/status.h"

// FNV-1a.
static uint32_t text_hash(const char *text)
{
    uint64_t hash = 0xcbf29ce484222325u;
    for (; *text; text++) hash = (hash ^ (unsigned char)*text) * 0x100000001b3u;
    return (uint32_t)(hash ^ hash >> 32);
}

// Where the number of a text is, or is to be.
static uint32_t *place_find(const strings_t *strings, const char *text)
{
    uint32_t at = text_hash(text) & (strings->size - 1);
    while (strings->places[at] && strcmp(strings_text(strings, strings->places[at]), text) != 0)
        at = (at + 1) & (strings->size - 1);
    return &strings->places[at];
}

static keel_status_t places_grow(strings_t *strings)
{
    uint32_t size = strings->size ? strings->size * 2 : 256;
    uint32_t *places = mem_zalloc(size * sizeof *places);
    if (!places) return status_no_memory();
    mem_free(strings->places);
    strings->places = places;
    strings->size = size;
    for (uint32_t i = 1; i <= strings->count; i++)
        *place_find(strings, strings_text(strings, i)) = i;
    return NULL;
}

keel_status_t strings_add(strings_t *strings, const char *text, uint32_t *number)
{
    *number = 0;
    if (!*text) return NULL;
    if (strings->count >= strings->size / 2) KEEL_TRY(places_grow(strings));
    uint32_t *place = place_find(strings, text);
    *number = *place;
    if (*number) return NULL;
    char **texts = mem_reserve(strings->texts, &strings->capacity, strings->count, sizeof *texts);
    if (!texts) return status_no_memory();
    strings->texts = texts;
    texts[strings->count] = mem_copy_text(text);
    if (!texts[strings->count]) return status_no_memory();
    *number = *place = ++strings->count;
    return NULL;
}

void strings_finish(strings_t *strings)
{
    for (uint32_t i = 0; i < strings->count; i++) mem_free(strings->texts[i]);
    mem_free(strings->texts);
    mem_free(strings->places);
    *strings = (strings_t){0};
}
