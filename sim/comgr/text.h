// SPDX-License-Identifier: Apache-2.0
// Bytes one after the other: what identifies an action, and what it gave.
#ifndef SIM_COMGR_TEXT_H_
#define SIM_COMGR_TEXT_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
    char *bytes; // owned
    size_t size, room;
    bool bad; // memory was short, or what was to be put there could not be had
} text_t;

void text_finish(text_t *text);

// Room for more bytes at the end, to be written by the caller; NULL, and the text is bad: none.
char *text_grow(text_t *text, size_t size);
void text_number(text_t *text, uint64_t number);

// Two numbers that differ between any two texts that anyone meets.
void text_digest(const text_t *text, uint64_t digest[2]);

#endif
