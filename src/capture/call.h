// SPDX-License-Identifier: Apache-2.0
// Calls of the application into a runtime. A thread is in one at a time: what a runtime calls of
// itself meanwhile is a part of that call.
#ifndef KEEL_SRC_CAPTURE_CALL_H_
#define KEEL_SRC_CAPTURE_CALL_H_

#include "trace/name.h"
#include "trace/trace.h"

typedef struct call_thread_t {
    uint64_t current; // the number of the call that the thread is in; 0: none
    uint64_t last;    // the number that it gave last
} call_thread_t;
extern THREAD_LOCAL call_thread_t call_thread_;

// A number that no call of this process has had, and the first one of a thread.
uint64_t call_first(void);

// The call that the calling thread is in; 0: none.
static inline uint64_t call_current(void)
{
    return call_thread_.current;
}

// Begins a call. Returns when; 0: it is not recorded, because tracing is off or because the thread
// is in a call already.
__attribute__((always_inline)) static inline uint64_t call_begin(void)
{
    call_thread_t *thread = &call_thread_;
    if (!trace_is_on() || thread->current) return 0;
    thread->last = __builtin_expect(thread->last != 0, 1) ? thread->last + 1 : call_first();
    thread->current = thread->last;
    return trace_now();
}

// What a record says of a call besides its times.
typedef struct call_about_t {
    uint32_t name, domain; // names of the trace
    uint32_t kernel;       // the name of what it launches; 0: none
    uint64_t result;
    const void *stream; // NULL: none, or the default
    trace_memory_t memory;
    const void *address; // if it is about memory, as `bytes`
    uint64_t bytes;
} call_about_t;

// Ends a call that was begun, and records it if there is a record to fill in.
static inline void call_put(trace_record_t *record, uint64_t start, uint64_t end,
                            const call_about_t *about)
{
    uint64_t number = call_thread_.current;
    call_thread_.current = 0;
    if (!record) return;
    record->name = about->name;
    record->start = start;
    record->end = end;
    record->id = number;
    record->submission = (uint64_t)(uintptr_t)about->stream;
    record->flags = (uint16_t)about->memory;
    record->a[0] = about->result;
    record->a[1] = about->kernel;
    record->a[2] = about->domain;
    if (about->memory) {
        record->a[0] = (uint32_t)about->result | (uint64_t)about->domain << 32;
        record->a[1] = (uint64_t)(uintptr_t)about->address;
        record->a[2] = about->bytes;
    }
    trace_put(record, TRACE_CALL);
}

// Ends a call that was begun, and records it.
static inline void call_end(uint64_t start, const call_about_t *about)
{
    trace_record_t *record = trace_take();
    call_put(record, start, trace_now(), about);
}

#endif
