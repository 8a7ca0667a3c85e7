// SPDX-License-Identifier: Apache-2.0
// Texts that are kept once each, and known by a number. Number 0 is "".
#ifndef KEEL_SRC_TRACER_STRINGS_H_
#define KEEL_SRC_TRACER_STRINGS_H_

#include <keel/status.h>
#include <stdint.h>

// Zeroed, it has no text but "".
typedef struct strings_t {
    char **texts; // owned, each; by number and -1
    uint32_t count, capacity;
    uint32_t *places; // owned: numbers by the hash of their texts; 0: free
    uint32_t size;    // of places, a power of two
} strings_t;

// The number of a text, which is copied if it is new.
keel_status_t strings_add(strings_t *strings, const char *text, uint32_t *number) KEEL_MUST_USE;

// The text of a number that was added. Valid until strings_finish.
static inline const char *strings_text(const strings_t *strings, uint32_t number)
{
    return number ? strings->texts[number - 1] : "";
}

void strings_finish(strings_t *strings);

#endif
