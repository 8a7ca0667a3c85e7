// SPDX-License-Identifier: Apache-2.0
// What the library wants to say besides statuses. It never writes to stdout or stderr by itself.
#ifndef KEEL_LOG_H_
#define KEEL_LOG_H_

#include <keel/base.h>

typedef enum keel_log_level_t {
    KEEL_LOG_ERROR,   // something failed and no status could carry it
    KEEL_LOG_WARNING, // it works, but not as well as it might
    KEEL_LOG_INFO,    // what was chosen: devices, workers, fallbacks
    KEEL_LOG_DEBUG,
} keel_log_level_t;

// Called from any thread, the library's own included, never under one of its locks. `text` has no
// newline.
typedef void (*keel_log_fn)(void *user, keel_log_level_t level, const char *text);

KEEL_EXTERN_C_BEGIN

// Sends messages up to `level` to `fn`; NULL (the start) drops them. Not thread safe: call it
// before opening devices.
KEEL_API void keel_set_log(keel_log_fn fn, void *user, keel_log_level_t level);

KEEL_EXTERN_C_END

#endif
