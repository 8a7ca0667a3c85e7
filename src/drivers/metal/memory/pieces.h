// SPDX-License-Identifier: Apache-2.0
// Pieces of memory, for the files of this room.
#ifndef KEEL_SRC_DRIVERS_METAL_MEMORY_PIECES_H_
#define KEEL_SRC_DRIVERS_METAL_MEMORY_PIECES_H_

#include "drivers/metal/memory/memory.h"

// Pages that were mapped for a buffer of Metal's, which ends them when it goes.
typedef struct metal_mapping_t {
    void *start, *pages; // of the address space, and of what is used of it
    size_t size;         // from the start on
    int fd;
    bool owns; // the descriptor
} metal_mapping_t;

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

// Whether host and GPU have a copy each.
static inline bool metal_memory_is_managed(const metal_memory_t *memory)
{
    const uint32_t host = KEEL_MEMORY_HOST_VISIBLE | KEEL_MEMORY_HOST_COHERENT;
    return (memory->bits & host) == KEEL_MEMORY_HOST_VISIBLE;
}

// memory.c
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
// Memory of this device, by its address: the same buffer of Metal's.
keel_status_t metal_memory_attach_address(keel_buffer_t *buffer) KEEL_MUST_USE;
keel_status_t metal_memory_refused(uint64_t size); // Metal makes no buffer of that size

// mapping.c
// A buffer of Metal's in whole pages. NULL: Metal does not take them.
id metal_mapping_wrap(metal_device_t *device, void *pages, uint64_t size,
                      metal_block_t *when_freed);
// Maps pages of a file for a buffer. `from` says of which, and whose the descriptor is: on failure
// it is still the caller's.
keel_status_t metal_mapping_make(metal_mapping_t from, uint64_t size, int protection,
                                 uint64_t offset, metal_mapping_t **mapping) KEEL_MUST_USE;
// Gives a buffer the pages, and the mapping to what Metal makes of them; with an alignment it
// begins where that is met. On failure the mapping has ended.
keel_status_t metal_mapping_attach(keel_buffer_t *buffer, metal_mapping_t *mapping, uint64_t size,
                                   uint64_t alignment) KEEL_MUST_USE;
void metal_mapping_end(metal_mapping_t *mapping); // NULL is fine

#endif
