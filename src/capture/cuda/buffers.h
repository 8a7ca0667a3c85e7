// SPDX-License-Identifier: Apache-2.0
// The buffers into which CUPTI writes records. It asks for them and gives them back on any thread,
// also on those of the application; what is in them is looked at by another.
#ifndef KEEL_SRC_CAPTURE_CUDA_BUFFERS_H_
#define KEEL_SRC_CAPTURE_CUDA_BUFFERS_H_

#include <stdbool.h>

#include "capture/cuda/abi.h"

typedef struct buffer_t buffer_t;
struct buffer_t {
    buffer_t *next;
    size_t used;    // bytes with records
    size_t dropped; // records that CUPTI had no room for
    _Alignas(8) uint8_t bytes[];
};

// What CUPTI calls. Without memory, and if too much waits to be looked at, it gets no buffer: it
// drops records then, and counts them.
void buffers_request(uint8_t **bytes, size_t *size, size_t *record_limit);
void buffers_complete(void *context, uint32_t stream, uint8_t *bytes, size_t size, size_t used);

// The buffer that was given back first; NULL: none. It is to be returned.
buffer_t *buffers_take(void);
void buffers_return(buffer_t *buffer);

// Sleeps until there is one, but not longer than that.
void buffers_wait(uint64_t most_ns);

// In the child of a fork: no thread holds anything.
void buffers_forget(void);

#endif
