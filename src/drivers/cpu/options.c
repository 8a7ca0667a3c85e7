// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/options.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static keel_status_t number_parse(const char *key, const char *text, uint64_t least, uint64_t most,
                                  uint64_t *number)
{
    char *end;
    errno = 0;
    *number = strtoull(text, &end, 10);
    if (errno || end == text || *end || text[0] == '-' || *number < least || *number > most)
        return KEEL_ERROR(KEEL_INVALID_ARGUMENT,
                          "option %s is '%s'; it must be a number from %llu to %llu", key, text,
                          (unsigned long long)least, (unsigned long long)most);
    return NULL;
}

static keel_status_t option_parse(const char *key, const char *value, cpu_options_t *options)
{
    uint64_t number = 0;
    if (strcmp(key, "threads") == 0 && !options->is_inline) {
        KEEL_TRY(number_parse(key, value, 1, 1024, &number));
        options->threads = (uint32_t)number;
    } else if (strcmp(key, "nodes") == 0) {
        KEEL_TRY(number_parse(key, value, 1, 8, &number));
        options->nodes = (uint32_t)number;
    } else if (strcmp(key, "spin_us") == 0 && !options->is_inline) {
        KEEL_TRY(number_parse(key, value, 0, 1000000, &options->spin_us));
    } else if (strcmp(key, "cpus") == 0 && !options->is_inline) {
        options->cpus = value;
    } else if (strcmp(key, "shuffle") == 0) {
        KEEL_TRY(number_parse(key, value, 0, UINT64_MAX, &options->seed));
        options->shuffle = true;
    } else {
        return KEEL_ERROR(KEEL_INVALID_ARGUMENT, "cpu://%s has no option '%s'; it has: %s",
                          options->is_inline ? "inline" : "", key,
                          options->is_inline ? "nodes, shuffle"
                                             : "threads, cpus, spin_us, nodes, shuffle");
    }
    return NULL;
}

keel_status_t cpu_options_parse(const keel_uri_t *uri, cpu_options_t *options)
{
    *options = (cpu_options_t){.nodes = 1, .spin_us = 20};
    if (strcmp(uri->which, "inline") == 0)
        options->is_inline = true;
    else if (uri->which[0] && strcmp(uri->which, "0") != 0)
        return KEEL_ERROR(KEEL_NOT_FOUND, "there is no cpu://%s; there are cpu:// and cpu://inline",
                          uri->which);
    for (size_t i = 0; i < uri->option_count; i++)
        KEEL_TRY(option_parse(uri->options[i].key, uri->options[i].value, options));
    return NULL;
}
