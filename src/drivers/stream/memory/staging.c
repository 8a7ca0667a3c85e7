// SPDX-License-Identifier: Apache-2.0
// Staging: page-locked memory that both sides see, for bytes on their way. To page-lock takes long,
// and to unlock may wait for the whole device, so blocks have a few sizes and are kept for the next
// use.
#include "base/memory.h"
#include "base/status.h"
#include "drivers/stream/memory/memory.h"

keel_status_t stream_host_alloc(stream_device_t *device, uint64_t size, void **data,
                                uint64_t *address)
{
    KEEL_TRY(device->api->alloc_host(device->vendor, size, data));
    keel_status_t status = device->api->host_address(device->vendor, *data, address);
    if (status) stream_free(device, true, device->api->free_host, *data);
    return status;
}

static keel_status_t block_make(void *owner, uint64_t size, void **data, uint64_t *address)
{
    return stream_host_alloc(owner, size, data, address);
}

static void block_destroy(void *owner, void *data)
{
    stream_device_t *device = owner;
    stream_free(device, true, device->api->free_host, data);
}

const blocks_ops_t stream_blocks_ops = {block_make, block_destroy};

static void blocks_tidy(stream_device_t *device);

static void blocks_tidied(void *owner, chore_t *chore)
{
    stream_device_t *device = owner;
    bool many = blocks_trim(&device->blocks);
    stream_chore_end(device, false);
    if (many) blocks_tidy(device);
}

// Has some given back when the vendor would not wait; until then they can be used again.
static void blocks_tidy(stream_device_t *device)
{
    chore_t *chore = mem_zalloc(sizeof *chore);
    if (!chore) return;
    *chore = (chore_t){.run = blocks_tidied, .timed = true};
    stream_chore_add(device, chore);
}

void stream_blocks_return(stream_device_t *device, block_t *blocks)
{
    if (blocks_return(&device->blocks, blocks, stream_device_is_ours(device))) blocks_tidy(device);
}
