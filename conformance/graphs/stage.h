// SPDX-License-Identifier: Apache-2.0
// The host's way into memory of graphs that only the device sees: copies by way of memory that both
// do. Any thread; each call returns when it is done.
#ifndef GRAPHS_STAGE_H_
#define GRAPHS_STAGE_H_

#include "graphs/env.h"

// Opens the way, if the device has such memory.
keel_status_t stage_open(env_device_t *device) KEEL_MUST_USE;
void stage_close(env_device_t *device);
// The memory that buffers of a graph get: every second one what only the device sees, if any.
uint32_t stage_memory(const env_device_t *device, size_t index);

// Whether the host reaches a buffer by no other way. The copies of a read or write are work of the
// device, which who runs on one of its threads must not wait for.
bool stage_needed(keel_buffer_t *buffer);

keel_status_t stage_read(env_device_t *device, keel_buffer_t *buffer, uint64_t offset, void *bytes,
                         uint64_t length) KEEL_MUST_USE;
keel_status_t stage_write(env_device_t *device, keel_buffer_t *buffer, uint64_t offset,
                          const void *bytes, uint64_t length) KEEL_MUST_USE;

#endif
