// SPDX-License-Identifier: Apache-2.0
// The operations of the driver that its own files have (device.c puts them into a table).
#ifndef KEEL_SRC_DRIVERS_STREAM_DRIVER_H_
#define KEEL_SRC_DRIVERS_STREAM_DRIVER_H_

#include "drivers/stream/graph/graph.h"

// queue.c
keel_status_t stream_queue_create(keel_device_t *device, const keel_queue_options_t *options,
                                  keel_queue_t **queue);
void stream_queue_destroy(keel_queue_t *queue);
void stream_queue_submit(keel_queue_t *queue, keel_submission_t *submission);
// Takes those apart that were destroyed on threads of queues.
void stream_queues_reap(stream_device_t *device);
// Ends their threads, and takes all apart that are being destroyed.
void stream_queues_stop(stream_device_t *device);

// walk.c
// As stream_hooks_t.go.
bool stream_run_go(stream_segment_t *segment);

// keeper.c
// What the keeper does, as a helper.
uint64_t stream_device_keep(void *device);

// caps.c
// Fills in what the device can do, by its limits, features and options.
void stream_caps_fill(stream_device_t *device);

// semaphore.c
keel_status_t stream_semaphore_import(keel_device_t *device,
                                      const keel_external_semaphore_t *external, uint64_t initial,
                                      keel_semaphore_t **semaphore);

// executable.c
extern const cache_class_t stream_module_class;
keel_status_t stream_executable_load(keel_device_t *device, const keel_image_t *image,
                                     keel_executable_t **executable);
void stream_executable_unload(keel_executable_t *executable);
keel_status_t stream_executable_global(keel_executable_t *executable, const char *name,
                                       keel_external_buffer_t *where);
keel_status_t stream_executable_write(keel_executable_t *executable,
                                      const keel_external_buffer_t *where, const void *data);
uint32_t stream_executable_rank(keel_device_t *device, keel_image_kind_t kind, const char *target);

#endif
