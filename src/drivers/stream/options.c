// SPDX-License-Identifier: Apache-2.0
// The options of URIs.
#include <stddef.h>

#include "drivers/stream/stream.h"
#include "kit/option.h"

#define AT(field) offsetof(stream_options_t, field)

keel_status_t stream_options_parse(const keel_uri_t *uri, stream_options_t *options)
{
    static const option_t table[] = {
        {"lib", OPTION_PATH, AT(library), 0, {0}},
        {"context", OPTION_HANDLES, AT(context), 1, {0}},
        {"stream", OPTION_HANDLES, AT(adopted), STREAM_ADOPTED, {0}},
        {"commands", OPTION_WORD, AT(commands), 0, {NULL, "graph", "stream"}},
        {"alloc", OPTION_WORD, AT(alloc_sync), 0, {"async", "sync"}},
        {"serial", OPTION_WORD, AT(serial), 0, {"0", "1"}},
    };
    *options = (stream_options_t){0};
    return options_read(uri, table, sizeof table / sizeof *table, options);
}
