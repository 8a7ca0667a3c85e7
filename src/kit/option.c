// SPDX-License-Identifier: Apache-2.0
#include "kit/option.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"

static keel_status_t path_read(const keel_option_t *option, const char *value, const char **path)
{
    if (!*value)
        return KEEL_ERROR(KEEL_INVALID_ARGUMENT, "option %s is ''; it is a path", option->key);
    *path = value;
    return NULL;
}

static keel_status_t number_read(const keel_option_t *option, const char *value, uint64_t *number)
{
    char *end;
    errno = 0;
    *number = strtoull(value, &end, 10);
    bool digits = value[0] >= '0' && value[0] <= '9' && !*end; // no sign, no space
    if (errno || !digits || *number < option->least || *number > option->most)
        return KEEL_ERROR(KEEL_INVALID_ARGUMENT,
                          "option %s is '%s'; it must be a number from %llu to %llu", option->key,
                          value, (unsigned long long)option->least,
                          (unsigned long long)option->most);
    return NULL;
}

static keel_status_t u32_read(const keel_option_t *option, const char *value, uint32_t *number)
{
    uint64_t wide;
    KEEL_TRY(number_read(option, value, &wide));
    *number = (uint32_t)wide;
    return NULL;
}

static keel_status_t handles_read(const keel_option_t *option, const char *value, void **handles)
{
    const char *next = value;
    for (size_t i = 0; i < option->most && !strchr(value, '-'); i++) {
        char *end;
        errno = 0;
        unsigned long long number = strtoull(next, &end, 0);
        handles[i] = (void *)(uintptr_t)number;
        if (errno || end == next || !number) break;
        for (size_t k = 0; k < i; k++)
            if (handles[k] == handles[i])
                return KEEL_ERROR(KEEL_INVALID_ARGUMENT, "option %s is '%s', which has %#llx twice",
                                  option->key, value, number);
        if (!*end) return NULL;
        if (*end != ',') break;
        next = end + 1;
    }
    if (option->most == 1)
        return KEEL_ERROR(KEEL_INVALID_ARGUMENT, "option %s is '%s'; it must be a handle, as 0x...",
                          option->key, value);
    return KEEL_ERROR(KEEL_INVALID_ARGUMENT,
                      "option %s is '%s'; it must be 1 to %llu handles, as 0x...,0x...",
                      option->key, value, (unsigned long long)option->most);
}

static keel_status_t word_read(const keel_option_t *option, const char *value, uint8_t *word)
{
    const char *const *words = option->words;
    bool first = words[0];
    for (uint8_t i = 0; i < 3; i++) {
        *word = i;
        if (words[i] && strcmp(words[i], value) == 0) return NULL;
    }
    return KEEL_ERROR(KEEL_INVALID_ARGUMENT, "option %s is '%s'; it must be %s or %s", option->key,
                      value, words[first ? 0 : 1], words[first ? 1 : 2]);
}

static keel_status_t option_read(const keel_option_t *option, const char *value, void *options)
{
    void *at = (char *)options + option->offset;
    if (option->given) *(bool *)((char *)options + option->given) = true;
    switch (option->kind) {
    case KEEL_OPTION_TEXT: *(const char **)at = value; return NULL;
    case KEEL_OPTION_U32: return u32_read(option, value, at);
    case KEEL_OPTION_U64: return number_read(option, value, at);
    case KEEL_OPTION_PATH: return path_read(option, value, at);
    case KEEL_OPTION_HANDLES: return handles_read(option, value, at);
    case KEEL_OPTION_WORD: return word_read(option, value, at);
    }
    return NULL;
}

static keel_status_t unknown(const keel_uri_t *uri, const char *key, const keel_option_t *table,
                             size_t count)
{
    char list[256] = "none";
    for (size_t i = 0; i < count; i++) {
        size_t length = i ? strlen(list) : 0;
        snprintf(list + length, sizeof list - length, "%s%s", i ? ", " : "", table[i].key);
    }
    return KEEL_ERROR(KEEL_INVALID_ARGUMENT, "%.*s has no option '%s'; it has: %s",
                      (int)strcspn(uri->text, "?"), uri->text, key, list);
}

keel_status_t options_read(const keel_uri_t *uri, const keel_option_t *table, size_t count,
                           void *options)
{
    for (size_t i = 0; i < uri->option_count; i++) {
        size_t k = 0;
        while (k < count && strcmp(table[k].key, uri->options[i].key) != 0) k++;
        if (k == count) return unknown(uri, uri->options[i].key, table, count);
        KEEL_TRY(option_read(&table[k], uri->options[i].value, options));
    }
    return NULL;
}
