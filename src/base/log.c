// SPDX-License-Identifier: Apache-2.0
#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>

static struct {
    keel_log_fn fn;
    void *user;
    keel_log_level_t level;
} sink;

void keel_log_set(keel_log_fn fn, void *user, keel_log_level_t level)
{
    sink.fn = fn;
    sink.user = user;
    sink.level = level;
}

void log_say(keel_log_level_t level, const char *format, ...)
{
    if (!sink.fn || level > sink.level) return;
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    sink.fn(sink.user, level, text);
}
