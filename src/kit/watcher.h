// SPDX-License-Identifier: Apache-2.0
// The thread of the process that sleeps for semaphores of several processes (shared.h).
//
// It is there while something here waits for one, and a moment longer. It sleeps on the bells of
// all that are awaited; and it looks at each from time to time, rung or not, so that a process that
// dies, or breaks the rules, keeps nothing waiting. Before Linux 5.16, for more semaphores than it
// can sleep on, and while bells ring for nothing, it looks every millisecond.
#ifndef KEEL_SRC_KIT_WATCHER_H_
#define KEEL_SRC_KIT_WATCHER_H_

#include "base/bell.h"
#include "base/shared_page.h"
#include "kit/remote.h"

// Begins the struct of such a semaphore.
typedef struct watched_t {
    remote_t remote; // first; `poll` links those that are awaited
    shared_page_t page;
    bell_t *bell;                      // in the page
    uint64_t seen;                     // by the watcher, when it last looked
    struct watched_t *next, *previous; // of all that are open
} watched_t;

// It is open from now on: the child of a fork leaves its page.
void watcher_add(watched_t *watched);
// It is about to be freed. Not in the child of a fork.
void watcher_remove(watched_t *watched);
// As remote_ops_t.watch. The semaphore fails if the system gives no thread.
void watcher_watch(watched_t *watched);
// Whether nothing keeps the semaphore but one reference of the caller's and perhaps a look of the
// watcher: no part of this process can use it any more.
bool watcher_is_last(const keel_semaphore_t *semaphore);
// Whether the calling thread is the watcher.
bool watcher_is_here(void);

#endif
