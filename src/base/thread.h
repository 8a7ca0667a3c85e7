// SPDX-License-Identifier: Apache-2.0
#ifndef KEEL_SRC_BASE_THREAD_H_
#define KEEL_SRC_BASE_THREAD_H_

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h> // defines __GLIBC__, where that is

// What each thread has of its own. glibc keeps room for such variables of libraries that are opened
// at run time, if they are few: then they have a fixed place, and no function is called to find it.
#if defined(__GLIBC__) && !KEEL_PORTABLE
#define THREAD_LOCAL __attribute__((tls_model("initial-exec"))) _Thread_local
#else
#define THREAD_LOCAL _Thread_local
#endif

// Starts a thread of the library's own: it takes no signals, which are for the application's
// threads, but those that what it runs may cause, such as a crash of a host call. Debuggers show
// its name (15 characters at most; NULL: none). Returns an errno, or 0.
int thread_start(pthread_t *thread, const char *name, void *(*fn)(void *), void *argument);

// The same; the thread is detached and never joined. False if the system gives no thread.
bool thread_detach(const char *name, void *(*fn)(void *), void *argument);

// An address that no other thread has.
extern THREAD_LOCAL char thread_mark_;
static inline const void *thread_mark(void)
{
    return &thread_mark_;
}

// The number by which the system knows the calling thread, and its name: 16 bytes, "" if it has
// none.
uint64_t thread_number(void);
void thread_own_name(char name[16]);

// Names a thread that is not over yet.
void thread_set_name(pthread_t thread, const char *name);

#endif
