// SPDX-License-Identifier: Apache-2.0
// The options of URIs.
#include <stddef.h>

#include "drivers/stream/options.h"
#include "kit/option.h"

#define AT(field) offsetof(stream_options_t, field)

keel_status_t stream_options_parse(const keel_uri_t *uri, stream_options_t *options)
{
    static const keel_option_t table[] = {
        {"lib", KEEL_OPTION_PATH, .offset = AT(library)},
        {"context", KEEL_OPTION_HANDLES, .offset = AT(context), .most = 1},
        {"stream", KEEL_OPTION_HANDLES, .offset = AT(adopted), .most = STREAM_ADOPTED},
        {"commands", KEEL_OPTION_WORD, .offset = AT(commands), .words = {NULL, "graph", "stream"}},
        {"alloc", KEEL_OPTION_WORD, .offset = AT(alloc_sync), .words = {"async", "sync"}},
        {"serial", KEEL_OPTION_WORD, .offset = AT(serial), .words = {"0", "1"}},
    };
    *options = (stream_options_t){0};
    return options_read(uri, table, sizeof table / sizeof *table, options);
}
