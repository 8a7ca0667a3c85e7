// SPDX-License-Identifier: Apache-2.0
// CUDA's streams as queues of the trace. One thread at a time.
#ifndef KEEL_SRC_CAPTURE_CUDA_STREAMS_H_
#define KEEL_SRC_CAPTURE_CUDA_STREAMS_H_

#include <stdint.h>

// Looks up what the devices are called, by CUDA itself: not in a call of it.
void streams_name_devices(void);

typedef struct stream_key_t {
    uint32_t device, context, stream;
} stream_key_t;

// The number of a stream's queue.
uint32_t streams_queue(stream_key_t key);

// The name of the trace for the memory of a device.
uint32_t streams_memory(uint32_t device);

#endif
