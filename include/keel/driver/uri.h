// SPDX-License-Identifier: Apache-2.0
// The URI that a device is opened by, taken apart, and its options read by a table:
//
//     typedef struct npu_options_t {
//         uint32_t cores;
//         const char *firmware; // as given; NULL: the one that came with it
//     } npu_options_t;
//     static const keel_option_t table[] = {
//         {"cores", KEEL_OPTION_U32, offsetof(npu_options_t, cores), .least = 1, .most = 64},
//         {"firmware", KEEL_OPTION_PATH, offsetof(npu_options_t, firmware)},
//     };
//     npu_options_t options = {.cores = 8};
//     KEEL_TRY(keel_options_read(uri, table, 2, &options));
#ifndef KEEL_DRIVER_URI_H_
#define KEEL_DRIVER_URI_H_

#include <keel/status.h>

typedef struct keel_uri_option_t {
    const char *key, *value;
} keel_uri_option_t;

// A URI taken apart. Texts are borrowed for the call of `open`.
typedef struct keel_uri_t {
    const char *text;  // the whole
    const char *which; // between :// and ?
    const keel_uri_option_t *options;
    size_t option_count;
} keel_uri_t;

typedef enum keel_option_kind_t {
    KEEL_OPTION_TEXT,    // const char *, borrowed from the URI
    KEEL_OPTION_PATH,    // the same, and not empty
    KEEL_OPTION_U32,     // uint32_t: a decimal number from `least` to `most`
    KEEL_OPTION_U64,     // uint64_t: the same
    KEEL_OPTION_HANDLES, // void *[most]: a vendor's, different numbers that are not 0, with commas
    KEEL_OPTION_WORD,    // uint8_t: which of the words
} keel_option_kind_t;

typedef struct keel_option_t {
    const char *key;
    keel_option_kind_t kind;
    size_t offset;        // of the value, in the driver's struct
    uint64_t least, most; // of a number; `most` handles
    const char *words[3]; // the first may be NULL: what it is that was not given
    size_t given;         // offset of a bool that is set if the option is given; 0: no such bool
} keel_option_t;

KEEL_EXTERN_C_BEGIN

// Puts the options of the URI into the driver's struct, whose other fields stay as they are;
// `table` may be NULL if `count` is 0. KEEL_INVALID_ARGUMENT names an option that the table has
// not, with those that it has, or a value, with what is taken. Any thread; does not block.
KEEL_API keel_status_t keel_options_read(const keel_uri_t *uri, const keel_option_t *table,
                                         size_t count, void *options) KEEL_MUST_USE;

KEEL_EXTERN_C_END

#endif
