// SPDX-License-Identifier: Apache-2.0
// roctx, by which applications mark what they do: its functions, whether or not the program has
// AMD's library for them. What they return is what that library's would.
#include <stddef.h>

#include "capture/ranges.h"
#include "trace/name.h"
#include "trace/trace.h"

#define EXPORT __attribute__((visibility("default")))

EXPORT void roctxMarkA(const char *message);
EXPORT int roctxRangePushA(const char *message);
EXPORT int roctxRangePop(void);
EXPORT uint64_t roctxRangeStartA(const char *message);
EXPORT void roctxRangeStop(uint64_t id);

static const char domain; // its address

static uint32_t name_of(const char *message)
{
    return trace_is_on() && message ? trace_text(message) : 0;
}

void roctxMarkA(const char *message)
{
    ranges_mark(name_of(message));
}

int roctxRangePushA(const char *message)
{
    return ranges_push(&domain, name_of(message));
}

int roctxRangePop(void)
{
    return ranges_pop(&domain);
}

uint64_t roctxRangeStartA(const char *message)
{
    return ranges_start(name_of(message));
}

void roctxRangeStop(uint64_t id)
{
    ranges_stop(id);
}
