// SPDX-License-Identifier: Apache-2.0
// MTLEvent, MTLSharedEvent and MTLSharedEventListener.
#ifndef SIM_METAL_EVENT_H_
#define SIM_METAL_EVENT_H_

#include "metal/block.h"
#include "metal/hazard.h"

#include <pthread.h>

typedef struct event_t {
    object_t object; // of class MTLEvent or MTLSharedEvent
    pthread_mutex_t lock;
    pthread_cond_t raised;
    uint64_t value;
    struct note_t *notes; // listeners that are not told yet
    known_t known;
} event_t;

event_t *event_new(class_t *class);
bool event_is(const void *object);
// Raises the value, wakes and notifies. A value that is not larger changes nothing, and is told of.
void event_raise(event_t *event, uint64_t value, bool by_host);
// Until the value is reached, or `until` (clock_ns) has come; UINT64_MAX: for ever. Whether
// reached.
bool event_wait(event_t *event, uint64_t value, uint64_t until);

#endif
