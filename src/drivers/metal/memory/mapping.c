// SPDX-License-Identifier: Apache-2.0
// Pages that are mapped for buffers of Metal's. Metal has no descriptors of its own, but takes
// pages that were mapped, also those of a file.
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/status.h"
#include "drivers/metal/memory/pieces.h"

id metal_mapping_wrap(metal_device_t *device, void *pages, uint64_t size, metal_block_t *when_freed)
{
    return mtl_new_wrapped(device->api, device->device, pages, (unsigned long)size,
                           METAL_SHARED | METAL_UNTRACKED, when_freed);
}

void metal_mapping_end(metal_mapping_t *mapping)
{
    if (!mapping) return;
    munmap(mapping->start, mapping->size);
    if (mapping->owns) close(mapping->fd);
    mem_free(mapping);
}

// On any thread: others may have kept Metal's buffer for longer than Keel has its own.
static void pages_unused(metal_block_t *block, void *pages, unsigned long size)
{
    (void)pages, (void)size;
    metal_mapping_end(block->user);
}

// Maps a file where Metal takes it: at a multiple of its pages, for whole ones.
static keel_status_t pages_map(metal_mapping_t *mapping, uint64_t size, int protection,
                               uint64_t offset)
{
    mapping->size = (size_t)size + METAL_PAGE;
    char *start = mmap(NULL, mapping->size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (start == MAP_FAILED)
        return status_from_errno(KEEL_RESOURCE_EXHAUSTED, errno, "mapping pages for Metal");
    mapping->pages = start + (-(uintptr_t)start & (METAL_PAGE - 1));
    if (mmap(mapping->pages, (size_t)size, protection, MAP_SHARED | MAP_FIXED, mapping->fd,
             (off_t)offset) == MAP_FAILED) {
        keel_status_t status =
            status_from_errno(KEEL_PERMISSION_DENIED, errno, "mapping the descriptor");
        munmap(start, mapping->size);
        return status;
    }
    mapping->start = start;
    return NULL;
}

keel_status_t metal_mapping_attach(keel_buffer_t *buffer, metal_mapping_t *mapping, uint64_t size,
                                   uint64_t alignment)
{
    metal_device_t *device = metal_device(buffer->device);
    metal_block_t unused = metal_block_freeing(device->api, pages_unused, mapping);
    id made = metal_mapping_wrap(device, mapping->pages, size, &unused);
    if (!made) metal_mapping_end(mapping);
    uint64_t address = alignment ? mtl_gpu_address(device->api, made) : 0;
    uint64_t inside = alignment ? metal_round_up(address, alignment) - address : 0;
    KEEL_TRY(metal_memory_attach(buffer, made, inside));
    metal_memory_of(buffer)->mapping = mapping;
    return NULL;
}

keel_status_t metal_mapping_make(metal_mapping_t from, uint64_t size, int protection,
                                 uint64_t offset, metal_mapping_t **mapping)
{
    metal_mapping_t *made = mem_alloc(sizeof *made);
    if (!made) return status_no_memory();
    *made = from;
    keel_status_t status = pages_map(made, size, protection, offset);
    if (status) mem_free(made);
    *mapping = made;
    return status;
}
