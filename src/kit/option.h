// SPDX-License-Identifier: Apache-2.0
// Options of URIs. Errors name the option and what it takes, or all that there are.
#ifndef KEEL_SRC_KIT_OPTION_H_
#define KEEL_SRC_KIT_OPTION_H_

#include <keel/driver/driver.h>

typedef enum option_kind_t {
    OPTION_PATH,    // const char *, borrowed from the URI; not empty
    OPTION_HANDLES, // void *[most]: a vendor's, different numbers that are not 0, between commas
    OPTION_WORD,    // uint8_t: which of the words
} option_kind_t;

typedef struct option_t {
    const char *key;
    option_kind_t kind;
    size_t offset; // of the value, in the driver's struct
    size_t most;
    const char *words[3]; // the first may be NULL: what it is that was not given
} option_t;

// Puts those of the URI into the driver's struct.
keel_status_t options_read(const keel_uri_t *uri, const option_t *table, size_t count,
                           void *options);

#endif
