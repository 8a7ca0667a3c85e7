// SPDX-License-Identifier: Apache-2.0
// Tracing: the application's own spans, marks and counters in a trace.
//
// `keel trace -- PROGRAM` runs a program and records what it does with Keel. These functions add
// what Keel cannot know, on the same timeline:
//
//     uint64_t start = keel_trace_begin();
//     decode(token);
//     keel_trace_end(start, "decode");
//     keel_trace_count("tokens", ++tokens);
//
// A program that is not traced pays a call and a branch for each. Traced, a record is some 64 bytes
// that the thread writes into its own part of a mapped file: no lock is taken, nothing is
// allocated, and handlers of signals may call all functions. docs/trace.md has the cost.
//
// Names are texts in UTF-8. Each different text is kept once, so there should be thousands of them
// at most: the number of an item belongs into a counter, and not into a name.
//
// Any thread may call every function, and no function fails: a record for which there is no room is
// left out, and the trace says how many were.
#ifndef KEEL_TRACE_H_
#define KEEL_TRACE_H_

#include <keel/base.h>

KEEL_EXTERN_C_BEGIN

// True while the program is traced and the recording is not stopped. For what costs time to find
// out and is of use in a trace alone: the other functions ask themselves.
KEEL_API bool keel_trace_is_on(void);

// Begins a span of the calling thread. Returns what keel_trace_end takes: a time, 0 if nothing is
// recorded. Nothing is kept, so a span that is never ended costs nothing and is not in the trace.
KEEL_API uint64_t keel_trace_begin(void);

// Ends a span, on the thread that began it. Spans of a thread enclose each other, or follow each
// other. With a `start` of 0, does nothing.
KEEL_API void keel_trace_end(uint64_t start, const char *name);

// Marks this moment of the calling thread.
KEEL_API void keel_trace_mark(const char *name);

// Says that a counter has a new value, which it keeps until the next. A counter belongs to the
// process, whichever thread speaks of it.
KEEL_API void keel_trace_count(const char *name, double value);

KEEL_EXTERN_C_END

#endif
