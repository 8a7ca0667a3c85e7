// SPDX-License-Identifier: Apache-2.0
// Work that keeps the application's completion signal: copies, and dispatches that may overlap. The
// times are read from that signal when it is complete: by the collector, or before the application
// sets the signal anew or destroys it, whichever comes first.
#ifndef KEEL_SRC_CAPTURE_HSA_WATCH_H_
#define KEEL_SRC_CAPTURE_HSA_WATCH_H_

#include "capture/hsa/work.h"

// Watches work that is about to be submitted with a signal. NULL: there is no memory, or no signal.
// Any thread, for all of these.
typedef struct watch_t watch_t;
watch_t *watch_add(const work_t *work, hsa_signal_t signal);

// The runtime refused the work, so that there is nothing to record. NULL is fine.
void watch_cancel(watch_t *watch);

// What the collector calls.
uint64_t watch_collect(uint64_t *ended);

// Waits until all is recorded. False: some did not end within a second.
bool watch_wait(void);

// The same; what does not end is recorded without times.
void watch_drain(void);

// In the child of a fork, whose parent's all of it is.
void watch_child(void);

// Puts what replaces the runtime's functions on signals into `ours`.
void watch_replace(hsa_functions_t *ours);

#endif
