// SPDX-License-Identifier: Apache-2.0
#include "tools/trace/words.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool words_limit(const char *text, uint32_t *limit)
{
    char *end;
    unsigned long given = *text >= '0' && *text <= '9' ? strtoul(text, &end, 10) : 0;
    if (!given || *end || given > UINT32_MAX) return false;
    *limit = (uint32_t)given;
    return true;
}

// Takes an option that has one letter, with its value.
static bool option_take(words_t *words, const char *part, char letter, const char *value)
{
    bool good = value && *value;
    if (letter == 'o') words->out = value;
    if (letter == 'f') words->format = value;
    if (letter == 'n') good = good && words_limit(value, &words->limit);
    if (good) return true;
    fprintf(stderr, "keel trace %s: -%c wants %s\n", part, letter,
            letter == 'n' ? "a number" : "a value");
    return false;
}

bool words_read(words_t *words, const char *options, int argc, char **argv)
{
    *words = (words_t){.limit = 20, .traces = argv + 1};
    for (int i = 1; i < argc; i++) {
        const char *word = argv[i];
        if (word[0] != '-') {
            words->traces[words->count++] = argv[i];
            continue;
        }
        if (!word[1] || word[2] || !strchr(options, word[1])) {
            fprintf(stderr, "keel trace %s: what is %s?\n", argv[0], word);
            return false;
        }
        i++;
        if (!option_take(words, argv[0], word[1], i < argc ? argv[i] : NULL)) return false;
    }
    return true;
}
