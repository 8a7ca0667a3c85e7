// SPDX-License-Identifier: Apache-2.0
// Queues, events, the thread of a device, and what goes ahead or is cancelled.
#ifndef KEEL_SRC_DRIVERS_METAL_QUEUE_QUEUE_H_
#define KEEL_SRC_DRIVERS_METAL_QUEUE_QUEUE_H_

#include "drivers/metal/base/device.h"

// queue.c
keel_status_t metal_queue_create(keel_device_t *device, const keel_queue_options_t *options,
                                 keel_queue_t **queue);
void metal_queue_destroy(keel_queue_t *queue);
// Around the making of a command buffer, where queues have scopes.
void metal_scope_begin(metal_run_t *run);
void metal_scope_end(metal_run_t *run);
// A fence for the run; NULL: there is none to be had.
id metal_fence_take(metal_run_t *run);
void metal_fence_give_back(metal_run_t *run);

// event.c
keel_status_t metal_semaphore_import(keel_device_t *device,
                                     const keel_external_semaphore_t *external, uint64_t initial,
                                     keel_semaphore_t **semaphore);
bool metal_event_is(keel_semaphore_t *semaphore);
// No encoder is open, and the run ends well if the command buffer at hand does: has that make
// signals of the run.
void metal_events_signal(metal_run_t *run);
void metal_listening_stop(metal_device_t *device); // also after a failed start

// stop.c
// Around the life of a guarded command buffer, before it is committed, and when it has ended:
// between the two the GPU can be told to leave it out.
void metal_stop_begin(metal_run_t *run);
void metal_stop_end(metal_run_t *run);
void metal_queue_cancel(keel_queue_t *queue, keel_status_t cause);
void metal_stops_go_on(metal_device_t *device); // the device's thread

// worker.c
uint64_t metal_worker(void *device); // the thread's work
// The GPU is lost: has the device's thread end the device. Others may go on with runs here. Borrows
// the status.
void metal_worker_lose(metal_device_t *device, keel_status_t status);

// demand.c, slots.c
// Around the life of a device.
void metal_demand_open(void);
void metal_demand_close(void);
void metal_slots_close(metal_device_t *device);
void metal_slots_free(metal_device_t *device);

// ahead.c
// Before a submission waits: what comes after it may have to go ahead.
void metal_ahead_note(keel_submission_t *submission);
void metal_ahead_begin(run_t *run);        // of run_ops_t
void metal_ahead_settle(metal_run_t *run); // before commands are encoded
void metal_ahead_finish(metal_run_t *run); // all is over
void metal_ahead_events(metal_run_t *run); // a command buffer begins
void metal_ahead_fences(metal_run_t *run); // its first encoder begins

#endif
