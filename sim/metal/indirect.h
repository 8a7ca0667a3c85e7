// SPDX-License-Identifier: Apache-2.0
// MTLIndirectCommandBuffer, of compute commands: dispatches that are encoded once, and executed by
// encoders as often as they like. What Metal leaves to the program is looked at:
//
//     a pipeline without supportIndirectCommandBuffers; a kernel whose buffers are not bound
//     a command that is encoded again and was not reset; one that was never encoded, and executed
//     commands beyond the end, or more than a GPU of a Mac takes at a time
//     buffers that the encoder has not named (useResource:), unless its queue has residency sets
//     commands changed between the commit of what executes them and their end
//     on GPUs before Apple 9, a pipeline that the encoder has not set before
#ifndef SIM_METAL_INDIRECT_H_
#define SIM_METAL_INDIRECT_H_

#include "metal/buffer.h"
#include "metal/encoder.h"

typedef struct indirect_t indirect_t;

// Objects, borrowed, each once.
typedef struct named_t {
    const void **objects; // owned
    unsigned count;
} named_t;

void named_add(named_t *named, const void *object);

// Which commands: a range, or one in a buffer.
typedef struct execution_t {
    range_t range;
    buffer_t *counts; // NULL: `range` counts
    unsigned long at;
    void **used; // what the encoder has made resident
    unsigned used_count;
} execution_t;

// For the encoder `self`.
void indirect_execute(const void *self, sel_t cmd, indirect_t *commands, encoder_t *encoder,
                      const named_t *named, const execution_t *execution);

// A command buffer is committed; its works have ended, or never will be done.
void indirect_committed(const command_t *command);
void indirect_ended(const command_t *command);

// Of the device.
void *device_indirect(void *self, sel_t cmd, void *descriptor, unsigned long most,
                      unsigned long options);

#endif
