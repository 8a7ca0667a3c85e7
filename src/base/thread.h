// SPDX-License-Identifier: Apache-2.0
#ifndef KEEL_SRC_BASE_THREAD_H_
#define KEEL_SRC_BASE_THREAD_H_

#include <pthread.h>
#include <stdbool.h>

// Starts a thread of the library's own: it takes no signals, which are for the application's
// threads, and debuggers show its name (15 characters at most; NULL: none). Returns an errno, or 0.
int thread_start(pthread_t *thread, const char *name, void *(*fn)(void *), void *argument);

// The same; the thread is detached and never joined. False if the system gives no thread.
bool thread_detach(const char *name, void *(*fn)(void *), void *argument);

// An address that no other thread has.
extern _Thread_local char thread_mark_;
static inline const void *thread_mark(void)
{
    return &thread_mark_;
}

// Names a thread that is not over yet.
void thread_set_name(pthread_t thread, const char *name);

#endif
