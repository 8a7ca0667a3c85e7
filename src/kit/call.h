// SPDX-License-Identifier: Apache-2.0
// Host calls of submissions: calling the application, and what comes of it.
#ifndef KEEL_SRC_KIT_CALL_H_
#define KEEL_SRC_KIT_CALL_H_

#include <keel/driver/command.h>

#include "kit/chores.h"

// Makes one that is not detached, here and now; `done` and `context` of its state are set. True: it
// is over, and *status says how. False: it is deferred, `done` is called at its end, and the
// command may be gone.
bool call_make(const keel_device_t *device, keel_cmd_call_t *c, keel_status_t *status);
// A detached one: its failure is logged.
void call_make_detached(const keel_device_t *device, const keel_call_t *call);

// The same by a thread of its own, for drivers that have none to spare.
keel_status_t call_post_detached(keel_queue_t *queue, keel_cmd_call_t *c);

// Has a thread make it, which calls `done` at the end, unless the call is detached: then the
// command may go at once.
keel_status_t call_post(chores_t *calls, keel_queue_t *queue, keel_cmd_call_t *c);

// For the front door. Inside a call: its end comes later. False: the thread is in no such call.
bool call_defer(keel_host_call_t *call);
// Ends a deferred call, and consumes the status. False: there is none of that name (any more), and
// nothing is consumed.
bool call_complete(keel_host_call_t *call, keel_status_t status);

#endif
