// SPDX-License-Identifier: Apache-2.0
// A thread that works when it is woken. Drivers keep one for work that no call should wait for.
#ifndef KEEL_SRC_KIT_HELPER_H_
#define KEEL_SRC_KIT_HELPER_H_

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/lock.h"

typedef struct helper_t {
    const char *name;
    // Does what there is to do and returns when to look again (keel_now_ns; KEEL_FOREVER).
    uint64_t (*work)(void *owner);
    void *owner;
    pthread_t thread;
    _Atomic uint32_t word;  // counts wake-ups; what it sleeps on
    _Atomic uint32_t state; // helper_state_t
    lock_t lock;            // for its start and stop
} helper_t;

void helper_init(helper_t *helper, const char *name, uint64_t (*work)(void *), void *owner);
// Starts it if need be. False if there is no thread to be had.
bool helper_wake(helper_t *helper);
// Ends it, and waits for that unless called on it.
void helper_stop(helper_t *helper);
// The one whose thread is calling; NULL: none. Helpers that waited for each other's end would do so
// for ever.
const helper_t *helper_here(void);

#endif
