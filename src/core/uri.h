// SPDX-License-Identifier: Apache-2.0
// Taking URIs apart: DRIVER://WHICH?KEY=VALUE&KEY=VALUE
#ifndef KEEL_SRC_CORE_URI_H_
#define KEEL_SRC_CORE_URI_H_

#include <keel/driver/driver.h>

enum { URI_MAX_LENGTH = 1024, URI_MAX_OPTIONS = 32 };

typedef struct uri_t {
    const char *driver;
    keel_uri_t parts;
    struct keel_uri_option_t options[URI_MAX_OPTIONS];
    char text[URI_MAX_LENGTH]; // what the pointers point into
} uri_t;

// `text` must outlive `uri`.
keel_status_t uri_parse(const char *text, uri_t *uri);

#endif
