// SPDX-License-Identifier: Apache-2.0
// Options of URIs. Errors name the option and what it takes, or all that there are.
#ifndef KEEL_SRC_KIT_OPTION_H_
#define KEEL_SRC_KIT_OPTION_H_

#include <keel/driver/driver.h>

typedef enum option_kind_t {
    OPTION_TEXT,    // const char *, borrowed from the URI
    OPTION_PATH,    // the same, and not empty
    OPTION_U32,     // uint32_t: a decimal number from `least` to `most`
    OPTION_U64,     // uint64_t: the same
    OPTION_HANDLES, // void *[most]: a vendor's, different numbers that are not 0, between commas
    OPTION_WORD,    // uint8_t: which of the words
} option_kind_t;

typedef struct option_t {
    const char *key;
    option_kind_t kind;
    size_t offset;        // of the value, in the driver's struct
    uint64_t least, most; // of a number; `most` handles
    const char *words[3]; // the first may be NULL: what it is that was not given
    size_t given;         // offset of a bool that is set if the option is given; 0: no such bool
} option_t;

// Puts those of the URI into the driver's struct, whose other fields stay as they are. A device
// that has but some of the options passes a part of the table.
keel_status_t options_read(const keel_uri_t *uri, const option_t *table, size_t count,
                           void *options) KEEL_MUST_USE;

#endif
