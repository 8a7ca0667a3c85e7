// SPDX-License-Identifier: Apache-2.0
// The options of URIs.
#include <keel/driver/driver.h>

#include <string.h>

#include "base/status.h"
#include "drivers/stream/stream.h"
#include "kit/option.h"

static keel_status_t option_parse(const char *key, const char *value, stream_options_t *options)
{
    int choice = 0;
    if (strcmp(key, "lib") == 0) {
        if (!*value) return KEEL_ERROR(KEEL_INVALID_ARGUMENT, "option lib is ''; it is a path");
        options->library = value;
    } else if (strcmp(key, "context") == 0) {
        return option_handles(key, value, &options->context, 1);
    } else if (strcmp(key, "stream") == 0) {
        return option_handles(key, value, options->adopted, STREAM_ADOPTED);
    } else if (strcmp(key, "commands") == 0) {
        KEEL_TRY(option_choice(key, value, (const char *[]){"graph", "stream"}, &choice));
        options->commands = choice ? STREAM_COMMANDS_STREAM : STREAM_COMMANDS_GRAPH;
    } else if (strcmp(key, "alloc") == 0) {
        KEEL_TRY(option_choice(key, value, (const char *[]){"async", "sync"}, &choice));
        options->alloc_sync = choice;
    } else if (strcmp(key, "serial") == 0) {
        KEEL_TRY(option_choice(key, value, (const char *[]){"0", "1"}, &choice));
        options->serial = choice;
    } else {
        return KEEL_ERROR(KEEL_INVALID_ARGUMENT,
                          "such a device has no option '%s'; it has: lib, context, stream, "
                          "commands, alloc, serial",
                          key);
    }
    return NULL;
}

keel_status_t stream_options_parse(const keel_uri_t *uri, stream_options_t *options)
{
    *options = (stream_options_t){0};
    for (size_t i = 0; i < uri->option_count; i++)
        KEEL_TRY(option_parse(uri->options[i].key, uri->options[i].value, options));
    return NULL;
}
