// SPDX-License-Identifier: Apache-2.0
// Recording what happens, for a tool to read: a record is 64 bytes that the thread writes into its
// own part of a mapped file. Writing one takes no lock, calls no system and allocates nothing, so
// that code in signal handlers may do it; each time a chunk is full, the system is asked for one.
// What was written is in the file however the process ends.
//
// Tracing is off unless the environment has KEEL_TRACE=FOLDER when the library is loaded. Off, each
// place that would record costs a load and a branch:
//
//     uint64_t start = trace_start();
//     work();
//     if (trace_is_on()) trace_work(start);
//
// Any thread, for all of it, except trace_enable and trace_enable_later.
#ifndef KEEL_SRC_TRACE_TRACE_H_
#define KEEL_SRC_TRACE_TRACE_H_

#include <stdbool.h>

#include "base/clock.h"
#include "base/thread.h"
#include "trace/control.h"
#include "trace/file.h"

extern _Atomic bool trace_on_;
extern trace_clock_t trace_clock_;
extern _Atomic(const trace_control_t *) trace_control_;

typedef struct trace_thread_t {
    trace_room_t room;
    // Between taking a slot and writing its kind. A signal handler that records just then is not
    // served, and counted as lost.
    volatile bool busy;
} trace_thread_t;
extern THREAD_LOCAL trace_thread_t trace_thread_;

static inline bool trace_is_on(void)
{
    // relaxed: a thread may see the change a little later.
    return __builtin_expect(atomic_load_explicit(&trace_on_, memory_order_relaxed), 0);
}

// Recording is stopped from outside.
static inline bool trace_is_paused(void)
{
    // relaxed, both: a thread may see the change a little later.
    const trace_control_t *control = atomic_load_explicit(&trace_control_, memory_order_relaxed);
    return atomic_load_explicit(&control->paused, memory_order_relaxed) != 0;
}

// The clock of records.
static inline uint64_t trace_now(void)
{
    return __builtin_expect(trace_clock_ == TRACE_CLOCK_TICKS, 1) ? clock_ticks() : keel_now_ns();
}

// When a span begins; 0 if it is not to be recorded.
static inline uint64_t trace_start(void)
{
    return trace_is_on() ? trace_now() : 0;
}

// What trace_take does when the chunk is full, and when the thread is writing a record already.
trace_record_t *trace_take_more(void);
trace_record_t *trace_lose(void);

// So many records that should be in the file are not, because what told of them lost them.
void trace_lose_many(uint64_t count);

// A record to fill in, all 0 so far; NULL: it is lost, which is counted. Each one that is taken is
// to be put. For what others refer to, such as names, which are recorded while the rest is not.
static inline trace_record_t *trace_take_always(void)
{
    trace_thread_t *thread = &trace_thread_;
    if (__builtin_expect(thread->busy, 0)) return trace_lose();
    thread->busy = true;
    atomic_signal_fence(memory_order_seq_cst); // a handler from here on leaves `room` alone
    if (__builtin_expect(thread->room.next == thread->room.end, 0)) return trace_take_more();
    return thread->room.next++;
}

// The same; NULL as well while recording is stopped.
static inline trace_record_t *trace_take(void)
{
    if (__builtin_expect(trace_is_paused(), 0)) return NULL;
    return trace_take_always();
}

// The same, if nothing but a load or two is needed for it, and the clock of records is that of the
// processor: clock_ticks. NULL: to be had by trace_take, or not at all. So a function that goes on
// in another one then calls none of its own, and keeps nothing for that.
static inline trace_record_t *trace_take_ready(void)
{
    trace_thread_t *thread = &trace_thread_;
    if (__builtin_expect(trace_is_paused() || trace_clock_ != TRACE_CLOCK_TICKS || thread->busy, 0))
        return NULL;
    thread->busy = true;
    atomic_signal_fence(memory_order_seq_cst); // as in trace_take_always
    if (__builtin_expect(thread->room.next != thread->room.end, 1)) return thread->room.next++;
    thread->busy = false;
    return NULL;
}

static inline void trace_put(trace_record_t *record, trace_kind_t kind)
{
    // release: a reader that sees the kind sees the rest.
    atomic_store_explicit(&record->kind, (uint16_t)kind, memory_order_release);
    atomic_signal_fence(memory_order_seq_cst);
    trace_thread_.busy = false;
}

// Turns recording on, into files that this process and children of its forks make in a folder, each
// with its first record. A folder that cannot be written turns it off again, with a warning in the
// log. To be called once, before other threads record.
void trace_enable(const char *folder);

// The same, with a folder that is made by the first record, so that a process that records nothing
// leaves none.
void trace_enable_later(const char *folder);

// This process has recorded something.
bool trace_has_file(void);

// Says that the process comes to its end in good order. Recording goes on.
void trace_finish(void);

#endif
