// SPDX-License-Identifier: Apache-2.0
// Texts that grow, and memory that is given back all at once. Where memory is short the program
// ends: it is a tool.
#ifndef TOOLS_CC_MSL_TEXT_H_
#define TOOLS_CC_MSL_TEXT_H_

#include <stddef.h>

typedef struct text_t {
    char *bytes; // owned, ends in 0; NULL: nothing was added
    size_t length, capacity;
} text_t;

__attribute__((format(printf, 2, 3))) void text_add(text_t *text, const char *format, ...);
void text_append(text_t *text, const text_t *other);
void text_finish(text_t *text);
const char *text_of(const text_t *text); // "" if nothing was added

typedef struct arena_t {
    struct arena_piece_t *pieces;
} arena_t;

void *arena_new(arena_t *arena, size_t size); // zeroed
char *arena_copy(arena_t *arena, const char *bytes, size_t length);
__attribute__((format(printf, 2, 3))) char *arena_print(arena_t *arena, const char *format, ...);
// An array of pointers with room for one more than `count`, which has the items of the old one.
void *arena_grow(arena_t *arena, void *items, size_t count);
void arena_finish(arena_t *arena);

#endif
