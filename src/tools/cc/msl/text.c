// SPDX-License-Identifier: Apache-2.0
#include "tools/cc/msl/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *or_exit(void *memory)
{
    if (memory) return memory;
    fprintf(stderr, "keel cc: memory is short\n");
    exit(1);
}

static void text_reserve(text_t *text, size_t more)
{
    if (text->length + more < text->capacity) return;
    text->capacity = (text->length + more) * 2 + 64;
    text->bytes = or_exit(realloc(text->bytes, text->capacity));
}

void text_add(text_t *text, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    int length = vsnprintf(NULL, 0, format, list);
    va_end(list);
    if (length < 0) return;
    text_reserve(text, (size_t)length);
    va_start(list, format);
    vsnprintf(text->bytes + text->length, (size_t)length + 1, format, list);
    va_end(list);
    text->length += (size_t)length;
}

void text_append(text_t *text, const text_t *other)
{
    text_add(text, "%s", text_of(other));
}

void text_finish(text_t *text)
{
    free(text->bytes);
    *text = (text_t){0};
}

const char *text_of(const text_t *text)
{
    return text->bytes ? text->bytes : "";
}

struct arena_piece_t {
    struct arena_piece_t *next;
    size_t used, size;
    _Alignas(16) char bytes[];
};

void *arena_new(arena_t *arena, size_t size)
{
    enum { PIECE = 1 << 16 };
    size = (size + 15) / 16 * 16;
    struct arena_piece_t *piece = arena->pieces;
    if (!piece || piece->size - piece->used < size) {
        size_t bytes = size > PIECE ? size : PIECE;
        piece = or_exit(calloc(1, sizeof *piece + bytes));
        piece->size = bytes;
        piece->next = arena->pieces;
        arena->pieces = piece;
    }
    void *memory = piece->bytes + piece->used;
    piece->used += size;
    return memory;
}

char *arena_copy(arena_t *arena, const char *bytes, size_t length)
{
    char *copy = arena_new(arena, length + 1);
    memcpy(copy, bytes, length);
    return copy;
}

char *arena_print(arena_t *arena, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    int length = vsnprintf(NULL, 0, format, list);
    va_end(list);
    char *text = arena_new(arena, (size_t)(length < 0 ? 0 : length) + 1);
    va_start(list, format);
    vsnprintf(text, (size_t)(length < 0 ? 0 : length) + 1, format, list);
    va_end(list);
    return text;
}

void *arena_grow(arena_t *arena, void *items, size_t count)
{
    if (count && (count & (count - 1))) return items; // room for the next power of two
    void *grown = arena_new(arena, (count ? count * 2 : 1) * sizeof(void *));
    if (count) memcpy(grown, items, count * sizeof(void *));
    return grown;
}

void arena_finish(arena_t *arena)
{
    for (struct arena_piece_t *piece; (piece = arena->pieces);) {
        arena->pieces = piece->next;
        free(piece);
    }
}
