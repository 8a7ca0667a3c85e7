// SPDX-License-Identifier: Apache-2.0
// Memory of the host and of the GPUs.
//
// A GPU's own memory has an address that the host has reserved and may not touch; its bytes are
// somewhere else. Host memory that is registered keeps its place and gets a second address for the
// devices, out of a range of its own, so that a host pointer that is handed to a device is noticed.
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "amd/engine/engine.h"

typedef struct block {
    struct block *next;
    uint64_t address; // of the host, or what stands for it
    uint64_t device;  // of the devices
    uint64_t size;
    uint8_t *bytes;
    HSA_POINTER_TYPE type;
    HsaMemFlags flags;
    unsigned node;
    unsigned uses; // registrations
    void *user;
    HSAuint32 mapped[GPU_MAX];
    unsigned mapped_count;
} block_t;

// What fresh memory is filled with: no number, no address, no character.
enum { POISON = 0xdb, POISON_MAX = 256 << 20 };

enum { PAGE = 4096, LARGE_PAGE = 2 << 20 };

static block_t *blocks;
static uint64_t alias_next, alias_end;
static uint64_t vram_used[NODE_FIRST_GPU + GPU_MAX];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
_Atomic uint64_t code_generation;

static bool holds(uint64_t base, uint64_t size, uint64_t address)
{
    return address - base < size;
}

// The block that an address of the host or of a device lies in; the lock is held.
static block_t *block_find(uint64_t address)
{
    block_t *block = blocks;
    while (block && !holds(block->address, block->size, address) &&
           !holds(block->device, block->size, address)) {
        block = block->next;
    }
    return block;
}

static block_t *block_exact(uint64_t address)
{
    block_t *block = blocks;
    while (block && block->address != address) block = block->next;
    return block;
}

static bool block_insert(const block_t *made)
{
    block_t *block = malloc(sizeof *block);
    if (!block) return false;
    *block = *made;
    if (!map_add(&(span_t){.base = block->device, .size = block->size, .host = block->bytes})) {
        free(block);
        return false;
    }
    if (block->flags.ui32.CoarseGrain) map_coarse(block->device, block->node);
    block->next = blocks;
    blocks = block;
    return true;
}

static void block_delete(block_t *block)
{
    block_t **link = &blocks;
    while (*link != block) link = &(*link)->next;
    *link = block->next;
    map_remove(block->device);
    if (block->flags.ui32.ExecuteAccess) atomic_fetch_add(&code_generation, 1);
    free(block);
}

// Address space of a size, aligned as large pages would be.
static uint8_t *reserve(uint64_t size, int protection)
{
    uint64_t alignment = size >= LARGE_PAGE ? LARGE_PAGE : PAGE;
    uint8_t *room = mmap(NULL, size + alignment, protection,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (room == MAP_FAILED) return NULL;
    uint64_t before = -(uint64_t)(uintptr_t)room % alignment;
    if (before) munmap(room, before);
    if (alignment > before) munmap(room + before + size, alignment - before);
    return room + before;
}

static void bytes_free(const block_t *block)
{
    munmap(block->bytes, block->size);
    if ((uint64_t)(uintptr_t)block->bytes != block->address) {
        munmap((void *)(uintptr_t)block->address, block->size);
    }
}

// Blocks are few, and the program is about to end: who holds the lock lets go of it.
bool memory_is_hidden(uint64_t address, unsigned *out_node)
{
    pthread_mutex_lock(&lock);
    const block_t *block = block_find(address);
    bool hidden =
        block && gpu_is(block->node) && (uint64_t)(uintptr_t)block->bytes != block->address;
    if (hidden) *out_node = block->node;
    pthread_mutex_unlock(&lock);
    return hidden;
}

static uint64_t vram_size(unsigned node)
{
    HsaNodeProperties properties;
    hsaKmtGetNodeProperties(node, &properties);
    return properties.LocalMemSize;
}

HSAKMT_STATUS hsaKmtAllocMemory(HSAuint32 node, HSAuint64 size, HsaMemFlags flags, void **out)
{
    if (flags.ui32.FixedAddress || flags.ui32.GDSMemory) return HSAKMT_STATUS_NOT_SUPPORTED;
    if (!size) return HSAKMT_STATUS_INVALID_PARAMETER;
    size = (size + PAGE - 1) & ~(uint64_t)(PAGE - 1);
    bool gpu = gpu_is(node), counted = gpu && !flags.ui32.Scratch;
    uint64_t limit = counted ? vram_size(node) : 0;
    block_t block = {.size = size, .node = node, .flags = flags, .type = HSA_POINTER_ALLOCATED};
    block.bytes = reserve(size, PROT_READ | PROT_WRITE);
    uint8_t *visible = gpu && !flags.ui32.HostAccess ? reserve(size, PROT_NONE) : block.bytes;
    block.address = block.device = (uint64_t)(uintptr_t)visible;
    pthread_mutex_lock(&lock);
    bool room = !counted || size <= limit - vram_used[node];
    bool made = block.bytes && visible && room && block_insert(&block);
    if (made && counted) vram_used[node] += size;
    pthread_mutex_unlock(&lock);
    log_line(LOG_CALLS, "AllocMemory: node %u, %llu bytes, flags %08x: %p%s", node,
             (unsigned long long)size, flags.Value, (void *)visible, made ? "" : ", refused");
    if (!made) {
        if (block.bytes && visible) bytes_free(&block);
        return HSAKMT_STATUS_NO_MEMORY;
    }
    // Scratch that the runtime reserves is never used, and to fill gigabytes takes too long.
    if (!flags.ui32.Scratch) memset(block.bytes, POISON, size < POISON_MAX ? size : POISON_MAX);
    *out = visible;
    return HSAKMT_STATUS_SUCCESS;
}

HSAKMT_STATUS hsaKmtFreeMemory(void *address, HSAuint64 size)
{
    pthread_mutex_lock(&lock);
    block_t *block = block_exact((uint64_t)(uintptr_t)address);
    block_t freed = {0};
    if (block && block->type == HSA_POINTER_ALLOCATED) {
        freed = *block;
        block_delete(block);
        if (gpu_is(freed.node) && !freed.flags.ui32.Scratch) vram_used[freed.node] -= freed.size;
    }
    pthread_mutex_unlock(&lock);
    if (!freed.bytes) return HSAKMT_STATUS_INVALID_PARAMETER;
    bytes_free(&freed);
    return HSAKMT_STATUS_SUCCESS;
}

// Addresses for registered memory are not used twice; a terabyte of them lasts, and where address
// space is short, as under a sanitizer, less of it does.
static void alias_reserve(void)
{
    for (uint64_t size = 1ull << 40; size >= 1ull << 32; size /= 4) {
        void *range =
            mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (range == MAP_FAILED) continue;
        alias_next = (uint64_t)(uintptr_t)range;
        alias_end = alias_next + size;
        return;
    }
}

static uint64_t alias_take(uint64_t size)
{
    if (!alias_end) alias_reserve();
    if (size > alias_end - alias_next) return 0;
    uint64_t taken = alias_next;
    alias_next += size;
    return taken;
}

HSAKMT_STATUS hsaKmtRegisterMemoryWithFlags(void *address, HSAuint64 size, HsaMemFlags flags)
{
    uint64_t host = (uint64_t)(uintptr_t)address, in_page = host % PAGE;
    if (!host || !size) return HSAKMT_STATUS_INVALID_PARAMETER;
    pthread_mutex_lock(&lock);
    block_t *block = block_exact(host);
    bool good = block && block->type == HSA_POINTER_REGISTERED_USER;
    if (good) {
        block->uses++;
    } else if (!block) {
        // A page more, so that what reaches over the end hits nothing.
        uint64_t device = alias_take((in_page + size + 2 * PAGE - 1) & ~(uint64_t)(PAGE - 1));
        const block_t made = {.address = host,
                              .device = device + in_page,
                              .size = size,
                              .bytes = address,
                              .type = HSA_POINTER_REGISTERED_USER,
                              .flags = flags,
                              .uses = 1};
        good = device && block_insert(&made);
    }
    pthread_mutex_unlock(&lock);
    log_line(LOG_CALLS, "RegisterMemory: %p, %llu bytes", address, (unsigned long long)size);
    return good ? HSAKMT_STATUS_SUCCESS : HSAKMT_STATUS_NO_MEMORY;
}

HSAKMT_STATUS hsaKmtDeregisterMemory(void *address)
{
    pthread_mutex_lock(&lock);
    block_t *block = block_exact((uint64_t)(uintptr_t)address);
    bool known = block && block->type == HSA_POINTER_REGISTERED_USER;
    if (known && --block->uses == 0) block_delete(block);
    pthread_mutex_unlock(&lock);
    return known ? HSAKMT_STATUS_SUCCESS : HSAKMT_STATUS_MEMORY_NOT_REGISTERED;
}

static HSAKMT_STATUS block_map(void *address, HSAuint64 *out, const HSAuint32 *nodes,
                               unsigned count)
{
    uint64_t host = (uint64_t)(uintptr_t)address, mask = 0;
    pthread_mutex_lock(&lock);
    block_t *block = block_exact(host);
    if (!block) block = block_find(host);
    if (block) {
        block->mapped_count = 0;
        for (unsigned k = 0; k < count && block->mapped_count < GPU_MAX; k++) {
            if (!gpu_is(nodes[k])) continue;
            block->mapped[block->mapped_count++] = nodes[k];
            mask |= 1ull << nodes[k];
        }
        map_allow(block->device, mask);
        if (out) *out = block->device + (host - block->address);
    }
    pthread_mutex_unlock(&lock);
    return block ? HSAKMT_STATUS_SUCCESS : HSAKMT_STATUS_INVALID_PARAMETER;
}

HSAKMT_STATUS hsaKmtMapMemoryToGPU(void *address, HSAuint64 size, HSAuint64 *out)
{
    HSAuint32 nodes[GPU_MAX];
    for (unsigned k = 0; k < gpu_count(); k++) nodes[k] = NODE_FIRST_GPU + k;
    return block_map(address, out, nodes, gpu_count());
}

HSAKMT_STATUS hsaKmtMapMemoryToGPUNodes(void *address, HSAuint64 size, HSAuint64 *out,
                                        HsaMemMapFlags flags, HSAuint64 count, HSAuint32 *nodes)
{
    return block_map(address, out, nodes, (unsigned)count);
}

HSAKMT_STATUS hsaKmtUnmapMemoryToGPU(void *address)
{
    return block_map(address, NULL, NULL, 0);
}

HSAKMT_STATUS hsaKmtQueryPointerInfo(const void *pointer, HsaPointerInfo *out)
{
    memset(out, 0, sizeof *out);
    pthread_mutex_lock(&lock);
    const block_t *block = block_find((uint64_t)(uintptr_t)pointer);
    if (block) {
        out->Type = block->type;
        out->Node = block->node;
        out->MemFlags = block->flags;
        out->CPUAddress = (void *)(uintptr_t)block->address;
        out->GPUAddress = block->device;
        out->SizeInBytes = block->size;
        out->NMappedNodes = block->mapped_count;
        out->MappedNodes = block->mapped;
        out->UserData = block->user;
    }
    pthread_mutex_unlock(&lock);
    return block ? HSAKMT_STATUS_SUCCESS : HSAKMT_STATUS_ERROR;
}

HSAKMT_STATUS hsaKmtSetMemoryUserData(const void *pointer, void *user)
{
    pthread_mutex_lock(&lock);
    block_t *block = block_find((uint64_t)(uintptr_t)pointer);
    if (block) block->user = user;
    pthread_mutex_unlock(&lock);
    return block ? HSAKMT_STATUS_SUCCESS : HSAKMT_STATUS_ERROR;
}
