// SPDX-License-Identifier: Apache-2.0
// What stands after the name of a part of `keel trace` that reads traces.
#ifndef TOOLS_TRACE_WORDS_H_
#define TOOLS_TRACE_WORDS_H_

#include <stdbool.h>
#include <stdint.h>

typedef struct words_t {
    const char *out, *format; // borrowed; NULL: not given
    uint32_t limit;           // 20 if it is not given
    char **traces;            // a part of argv, whose order is changed
    int count;
} words_t;

// Splits options from traces, in any order. `options` has the letters of those that the part knows,
// of o, f and n. False: something is wrong, which was said.
bool words_read(words_t *words, const char *options, int argc, char **argv);

// Reads the number of names that -n has. False: it is none.
bool words_limit(const char *text, uint32_t *limit);

#endif
