// SPDX-License-Identifier: Apache-2.0
// The thread that looks what has ended on GPUs, and has it recorded.
//
// It looks at everything in flight each time, so that nothing waits for what was begun before it.
// While there is something, it sleeps 50 us to 1 ms in between; else until it is woken. Signals of
// dispatches raise no interrupts for it.
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

// Something is in flight. Any thread.
void collect_wake(void);

// Waits until nothing is left, as long as it becomes less than it ever was: a second without that
// is too long, and gives false. Any thread but that of the collector.
bool collect_wait(const _Atomic uint64_t *left);

#endif
