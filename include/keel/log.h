// SPDX-License-Identifier: Apache-2.0
// The log: messages that no status can carry. The library never writes to stdout or stderr.
#ifndef KEEL_LOG_H_
#define KEEL_LOG_H_

#include <keel/base.h>

// How important a message is. A lower number is more important.
typedef enum keel_log_level_t {
    KEEL_LOG_ERROR,   // a call failed and could not return a status: a detached host call, say
    KEEL_LOG_WARNING, // the library works, but not as well as it could
    KEEL_LOG_INFO,    // what the library chose: devices, workers, fallbacks
    KEEL_LOG_DEBUG,   // details for people who work on the library
} keel_log_level_t;

// Receives one message. `text` ends in no newline, has at most 1023 bytes and is borrowed for the
// call.
//
// Any thread may call it, several at once, the threads of the library included. The library holds
// no lock then. The function may use all of Keel, except calls that log something themselves: these
// would call it again.
typedef void (*keel_log_fn)(void *user, keel_log_level_t level, const char *text);

KEEL_EXTERN_C_BEGIN

// Sends every message of importance `level` or more to `fn`, with `user` as its first argument.
// A program starts with `fn` being NULL, which drops all messages. `user` is borrowed until the
// next call of this function.
//
// Call it before opening devices: it is not thread safe. Never fails.
KEEL_API void keel_log_set(keel_log_fn fn, void *user, keel_log_level_t level);

KEEL_EXTERN_C_END

#endif
