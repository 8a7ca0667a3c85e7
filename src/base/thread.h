// SPDX-License-Identifier: Apache-2.0
#ifndef KEEL_SRC_BASE_THREAD_H_
#define KEEL_SRC_BASE_THREAD_H_

#include <pthread.h>
#include <stdbool.h>

// The name that debuggers show: 15 characters at most. Does nothing where it cannot be done from
// outside of the thread.
void thread_set_name(pthread_t thread, const char *name);

// Runs `fn` on a thread that nobody joins. False if there is none to be had.
bool thread_detach(void *(*fn)(void *), void *argument);

#endif
