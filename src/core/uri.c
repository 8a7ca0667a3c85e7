// SPDX-License-Identifier: Apache-2.0
#include "core/uri.h"

#include <string.h>

#include "core/check.h"

static keel_status_t options_parse(const char *whole, char *text, uri_t *uri)
{
    while (text) {
        char *next = strchr(text, '&');
        if (next) *next++ = 0;
        char *value = strchr(text, '=');
        CHECK(value && value != text, KEEL_INVALID_ARGUMENT,
              "uri '%s': option '%s' is not KEY=VALUE", whole, text);
        *value++ = 0;
        size_t n = uri->parts.option_count;
        CHECK(n < URI_MAX_OPTIONS, KEEL_INVALID_ARGUMENT, "uri '%s' has more than %d options",
              whole, URI_MAX_OPTIONS);
        for (size_t i = 0; i < n; i++)
            CHECK(strcmp(uri->options[i].key, text) != 0, KEEL_INVALID_ARGUMENT,
                  "uri '%s' gives option '%s' twice", whole, text);
        uri->options[n] = (struct keel_uri_option_t){text, value};
        uri->parts.option_count++;
        text = next;
    }
    return NULL;
}

keel_status_t uri_parse(const char *text, uri_t *uri)
{
    size_t length = strlen(text);
    CHECK(length < URI_MAX_LENGTH, KEEL_INVALID_ARGUMENT,
          "uri has %zu characters; at most %d are taken", length, URI_MAX_LENGTH - 1);
    memcpy(uri->text, text, length + 1);
    char *which = strstr(uri->text, "://");
    CHECK(which && which != uri->text, KEEL_INVALID_ARGUMENT,
          "uri '%s' is not DRIVER://WHICH, as in cpu://", text);
    *which = 0;
    which += 3;
    char *options = strchr(which, '?');
    if (options) *options++ = 0;
    uri->driver = uri->text;
    uri->parts = (keel_uri_t){.text = text, .which = which, .options = uri->options};
    return options_parse(text, options, uri);
}
