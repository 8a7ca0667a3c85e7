// SPDX-License-Identifier: Apache-2.0
// Blocks of memory, cut from chunks of the size that HSA recommends. Calls of HSA for memory take
// long, and take longer the more pieces of it there are; so all of the driver's own needs share
// the chunks, small blocks and large ones apart. Memory for more than a block comes from HSA.
#include "base/memory.h"
#include "base/status.h"
#include "drivers/amdgpu/host/memory/memory.h"

enum {
    WORD = 64,
    WORDS = 8, // of bits of blocks that are free
};

struct amdgpu_chunk_t {
    amdgpu_chunk_t *next;
    KEEL_AMDGPU_DEVICE_PTR unsigned char *memory; // owned
    uint32_t taken;                               // blocks
    uint64_t free[WORDS];
};

// Old releases do not know what is recommended.
void amdgpu_chunks_init(amdgpu_chunks_t *chunks, amdgpu_device_t *device,
                        hsa_amd_memory_pool_t pool, uint64_t small, uint64_t large)
{
    enum { USUAL = 2 << 20 };
    size_t granule = 0;
    device->hsa->hsa_amd_memory_pool_get_info(
        pool, HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_REC_GRANULE, &granule);
    *chunks = (amdgpu_chunks_t){.device = device,
                                .pool = pool,
                                .size = USUAL,
                                .block_sizes = {small, large},
                                .keeps = true};
    if (granule) chunks->size = (USUAL + granule - 1) / granule * granule;
}

keel_status_t amdgpu_pool_allocate(amdgpu_device_t *device, hsa_amd_memory_pool_t pool,
                                   uint64_t size, KEEL_AMDGPU_DEVICE_PTR void **memory)
{
    const hsa_symbols_t *hsa = device->hsa;
    *memory = NULL;
    KEEL_TRY(HSA_CALL(hsa, hsa_amd_memory_pool_allocate, pool, size, 0, memory));
    keel_status_t status = HSA_CALL(hsa, hsa_amd_agents_allow_access, device->node_count,
                                    device->agents, NULL, (void *)*memory);
    if (status) hsa->hsa_amd_memory_pool_free((void *)*memory);
    return status;
}

// All are free.
static void blocks_free(const amdgpu_chunks_t *chunks, uint32_t bucket, amdgpu_chunk_t *chunk)
{
    uint64_t count = chunks->size / chunks->block_sizes[bucket];
    for (uint32_t i = 0; i < count && i < WORD * WORDS; i++)
        chunk->free[i / WORD] |= UINT64_C(1) << i % WORD;
}

// NULL: it has none left.
static KEEL_AMDGPU_DEVICE_PTR void *block_cut_from(const amdgpu_chunks_t *chunks, uint32_t bucket,
                                                   amdgpu_chunk_t *chunk)
{
    uint32_t word = 0;
    while (word < WORDS && !chunk->free[word]) word++;
    if (word == WORDS) return NULL;
    uint64_t number = word * WORD + (uint64_t)__builtin_ctzll(chunk->free[word]);
    chunk->free[word] &= chunk->free[word] - 1;
    chunk->taken++;
    return chunk->memory + number * chunks->block_sizes[bucket];
}

// NULL: no chunk has a free one.
static KEEL_AMDGPU_DEVICE_PTR void *block_find(amdgpu_chunks_t *chunks, uint32_t bucket)
{
    KEEL_AMDGPU_DEVICE_PTR void *memory = NULL;
    lock_enter(&chunks->lock);
    for (amdgpu_chunk_t *c = chunks->buckets[bucket]; c && !memory; c = c->next)
        memory = block_cut_from(chunks, bucket, c);
    lock_leave(&chunks->lock);
    return memory;
}

static keel_status_t chunk_add(amdgpu_chunks_t *chunks, uint32_t bucket,
                               KEEL_AMDGPU_DEVICE_PTR void **memory)
{
    KEEL_AMDGPU_DEVICE_PTR void *made = NULL;
    amdgpu_chunk_t *chunk = mem_zalloc(sizeof *chunk);
    if (!chunk) return status_no_memory();
    keel_status_t status = amdgpu_pool_allocate(chunks->device, chunks->pool, chunks->size, &made);
    if (status) {
        mem_free(chunk);
        return status;
    }
    chunk->memory = made;
    blocks_free(chunks, bucket, chunk);
    *memory = block_cut_from(chunks, bucket, chunk);
    lock_enter(&chunks->lock);
    chunk->next = chunks->buckets[bucket];
    chunks->buckets[bucket] = chunk;
    lock_leave(&chunks->lock);
    return NULL;
}

keel_status_t amdgpu_chunks_take(amdgpu_chunks_t *chunks, uint64_t size,
                                 KEEL_AMDGPU_DEVICE_PTR void **memory)
{
    uint32_t bucket = 0;
    while (bucket < AMDGPU_BUCKETS && size > chunks->block_sizes[bucket]) bucket++;
    if (bucket == AMDGPU_BUCKETS)
        return amdgpu_pool_allocate(chunks->device, chunks->pool, size, memory);
    *memory = block_find(chunks, bucket);
    keel_status_t status = *memory ? NULL : chunk_add(chunks, bucket, memory);
    if (!amdgpu_is_no_memory(status)) return status;
    // For a block alone there may be enough, or when what is idle has gone.
    keel_status_release(status);
    amdgpu_chunks_trim(chunks);
    return amdgpu_pool_allocate(chunks->device, chunks->pool, size, memory);
}

// Under the lock: takes out a chunk that no block is taken of; if `one`, not the first such.
static amdgpu_chunk_t *spare_unlink(amdgpu_chunks_t *chunks, uint32_t bucket, bool one)
{
    for (amdgpu_chunk_t **link = &chunks->buckets[bucket]; *link; link = &(*link)->next) {
        amdgpu_chunk_t *chunk = *link;
        if (chunk->taken) continue;
        if (!one) {
            *link = chunk->next;
            return chunk;
        }
        one = false;
    }
    return NULL;
}

static void chunk_free(const amdgpu_chunks_t *chunks, amdgpu_chunk_t *chunk)
{
    chunks->device->hsa->hsa_amd_memory_pool_free((void *)chunk->memory);
    mem_free(chunk);
}

// The bucket that the memory is of; AMDGPU_BUCKETS: none, HSA made it for itself.
static uint32_t block_put_back(amdgpu_chunks_t *chunks, KEEL_AMDGPU_DEVICE_PTR const void *memory)
{
    uint32_t bucket = 0;
    for (; bucket < AMDGPU_BUCKETS; bucket++)
        for (amdgpu_chunk_t *c = chunks->buckets[bucket]; c; c = c->next) {
            uint64_t inside = (uintptr_t)memory - (uintptr_t)c->memory;
            if (inside >= chunks->size) continue; // also what lies before it
            uint64_t number = inside / chunks->block_sizes[bucket];
            c->free[number / WORD] |= UINT64_C(1) << number % WORD;
            c->taken--;
            return bucket;
        }
    return bucket;
}

void amdgpu_chunks_give_back(amdgpu_chunks_t *chunks, KEEL_AMDGPU_DEVICE_PTR void *memory)
{
    lock_enter(&chunks->lock);
    uint32_t bucket = block_put_back(chunks, memory);
    amdgpu_chunk_t *spare =
        bucket < AMDGPU_BUCKETS ? spare_unlink(chunks, bucket, chunks->keeps) : NULL;
    lock_leave(&chunks->lock);
    if (spare) chunk_free(chunks, spare);
    if (bucket == AMDGPU_BUCKETS) chunks->device->hsa->hsa_amd_memory_pool_free((void *)memory);
}

static amdgpu_chunk_t *spare_find(amdgpu_chunks_t *chunks)
{
    amdgpu_chunk_t *spare = NULL;
    lock_enter(&chunks->lock);
    for (uint32_t bucket = 0; bucket < AMDGPU_BUCKETS && !spare; bucket++)
        spare = spare_unlink(chunks, bucket, false);
    lock_leave(&chunks->lock);
    return spare;
}

void amdgpu_chunks_trim(amdgpu_chunks_t *chunks)
{
    for (amdgpu_chunk_t *spare; (spare = spare_find(chunks));) chunk_free(chunks, spare);
}

void amdgpu_chunks_close(amdgpu_chunks_t *chunks)
{
    lock_enter(&chunks->lock);
    chunks->keeps = false;
    lock_leave(&chunks->lock);
    amdgpu_chunks_trim(chunks);
}
