// SPDX-License-Identifier: Apache-2.0
// Memory of buffers, for memory.c and external.c.
#ifndef KEEL_SRC_DRIVERS_METAL_MEMORY_H_
#define KEEL_SRC_DRIVERS_METAL_MEMORY_H_

#include "drivers/metal/metal.h"

// What keel_buffer_t.handle points to.
typedef struct metal_memory_t {
    struct metal_memory_t *next, **link; // of the device
    id buffer;                           // retained
    uint64_t inside;                     // where the memory begins in it
    uint64_t address, size;              // of the memory, for the device
    uint32_t bits;                       // keel_memory_bit_t
    bool aliased;                // another may have the same buffer; the device's lock guards it
    struct metal_memory_t *also; // of the staging of a run
    metal_mapping_t *mapping;    // of pages that were mapped for it, the buffer's; or NULL
} metal_memory_t;

static inline metal_memory_t *metal_memory_of(const keel_buffer_t *buffer)
{
    return (metal_memory_t *)(uintptr_t)buffer->handle;
}

// The buffer that a root has its memory of: itself, a slab of its pool, or one that lends it.
const keel_buffer_t *metal_memory_owner(const keel_buffer_t *root);
// Memory that both see at once.
uint32_t metal_shared_bits(const metal_device_t *device);
// Gives a buffer memory in `made`, with the bits that buffer->memory has. Takes over `made`, which
// is nil if Metal has refused it.
keel_status_t metal_memory_attach(keel_buffer_t *buffer, id made, uint64_t inside) KEEL_MUST_USE;
// The same, where others may have that buffer of Metal's.
keel_status_t metal_memory_attach_alias(keel_buffer_t *buffer, id made,
                                        uint64_t inside) KEEL_MUST_USE;

#endif
