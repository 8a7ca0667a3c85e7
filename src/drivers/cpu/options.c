// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/options.h"

#include <stddef.h>
#include <string.h>

#include "kit/option.h"

#define AT(field) offsetof(cpu_options_t, field)

enum { OPTIONS = 6, INLINE_OPTIONS = 3 }; // the latter are the last ones

static const keel_option_t table[OPTIONS] = {
    {"threads", KEEL_OPTION_U32, .offset = AT(threads), .least = 1, .most = 1024},
    {"cpus", KEEL_OPTION_TEXT, .offset = AT(cpus)},
    {"spin_us", KEEL_OPTION_U64, .offset = AT(spin_us), .most = 1000000},
    // Without threads, too:
    {"nodes", KEEL_OPTION_U32, .offset = AT(nodes), .least = 1, .most = 8},
    {"memory", KEEL_OPTION_WORD, .offset = AT(discrete), .words = {"unified", "discrete"}},
    {"shuffle", KEEL_OPTION_U64, .offset = AT(seed), .most = UINT64_MAX, .given = AT(shuffle)},
};

keel_status_t cpu_options_parse(const keel_uri_t *uri, cpu_options_t *options)
{
    *options = (cpu_options_t){.nodes = 1, .spin_us = 20};
    if (strcmp(uri->which, "inline") == 0)
        options->is_inline = true;
    else if (uri->which[0] && strcmp(uri->which, "0") != 0)
        return KEEL_ERROR(KEEL_NOT_FOUND, "there is no cpu://%s; there are cpu:// and cpu://inline",
                          uri->which);
    size_t count = options->is_inline ? INLINE_OPTIONS : OPTIONS;
    return options_read(uri, table + OPTIONS - count, count, options);
}
