// SPDX-License-Identifier: Apache-2.0
// The thread that looks what has ended on GPUs, and has it recorded.
//
// It looks at everything in flight each time, so that nothing waits for what was begun before it.
// While there is something, and a little longer, it sleeps 50 us to 1 ms in between; else until it
// is woken. Signals of dispatches raise no interrupts for it.
#ifndef KEEL_SRC_CAPTURE_HSA_COLLECT_H_
#define KEEL_SRC_CAPTURE_HSA_COLLECT_H_

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

// Records what has ended. Adds to *ended how much that was, and returns how much is left. Called by
// the thread alone.
typedef uint64_t (*collect_fn)(uint64_t *ended);

// Starts the thread, once for the process. False, after a warning, if the system gives none.
bool collect_start(collect_fn dispatches, collect_fn copies);

// Something is in flight. The caller has it where the thread looks, by a lock of both or by a
// read-modify-write of acq_rel of both. Any thread.
extern _Atomic bool collect_asked_; // the thread is to look once more before it sleeps
void collect_ask(void);
static inline void collect_wake(void)
{
    // relaxed: if the thread looked before the caller wrote, what both used to write has the caller
    // see that the thread has cleared it, or that another one has set it since.
    if (!atomic_load_explicit(&collect_asked_, memory_order_relaxed)) collect_ask();
}

// Waits until nothing is left of something, as long as it becomes less than it ever was: a second
// without that is too long, and gives false. Any thread but that of the collector.
bool collect_wait(uint64_t (*left)(const void *of), const void *of);

#endif
