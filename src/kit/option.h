// SPDX-License-Identifier: Apache-2.0
// Options of URIs, as <keel/driver/uri.h> has them.
#ifndef KEEL_SRC_KIT_OPTION_H_
#define KEEL_SRC_KIT_OPTION_H_

#include <keel/driver/uri.h>

// keel_options_read. A device that has but some of the options passes a part of the table.
keel_status_t options_read(const keel_uri_t *uri, const keel_option_t *table, size_t count,
                           void *options) KEEL_MUST_USE;

#endif
