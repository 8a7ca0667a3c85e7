// SPDX-License-Identifier: Apache-2.0
// Finds the members of a bundle of texts, which clang makes of assembly and the like.
#ifndef KEEL_SRC_EXECUTABLE_BUNDLE_TEXT_H_
#define KEEL_SRC_EXECUTABLE_BUNDLE_TEXT_H_

#include <stdbool.h>
#include <stddef.h>

// A member, and where the search goes on. Begin with `rest` and `end` alone.
typedef struct bundle_text_t {
    const char *rest, *end; // what is still to be looked at
    const char *name;       // not terminated
    size_t name_length;
    const char *data; // NULL: its end is missing
    size_t size;
} bundle_text_t;

// Whether a text begins as a bundle of texts does.
bool bundle_is_text(const void *data, size_t size);

// Goes to the next member; false when there is none.
bool bundle_text_next(bundle_text_t *text);

#endif
