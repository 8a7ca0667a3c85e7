// SPDX-License-Identifier: Apache-2.0
// Names in a trace: each is written once, and records have its number.
#ifndef KEEL_SRC_TRACE_NAME_H_
#define KEEL_SRC_TRACE_NAME_H_

#include <stdatomic.h>
#include <stdint.h>

// The number of a name; the same text has the same number in this process and in children of its
// forks. 0 if there is no room for more names, which is counted as lost. Takes no lock and
// allocates nothing. Any thread.
uint32_t trace_name(const char *text);

// The same for a text of the application's, such as that of a range. There may be any number of
// these, so they leave room for other names.
uint32_t trace_text(const char *text);

// What trace_name_at does at first.
uint32_t trace_name_keep(_Atomic uint32_t *place, const char *text);

// The same as trace_name, remembered at `place`, which is 0 at first.
static inline uint32_t trace_name_at(_Atomic uint32_t *place, const char *text)
{
    // relaxed: all threads find the same number.
    uint32_t known = atomic_load_explicit(place, memory_order_relaxed);
    return __builtin_expect(known != 0, 1) ? known : trace_name_keep(place, text);
}

#endif
