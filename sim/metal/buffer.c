// SPDX-License-Identifier: Apache-2.0
#include "metal/buffer.h"

#include "metal/hazard.h"
#include "metal/resident.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { UNTRACKED = 1 }; // of MTLHazardTrackingMode

static atomic_ulong all_bytes;

typedef void (*free_fn)(block_t *block, void *memory, unsigned long length);

static void *map(int sharing, size_t size)
{
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, sharing | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

// Shared storage is one memory, mapped twice. No file is behind it: a limit on the size of files
// that the process has is none on memory.
static bool map_shared(buffer_t *buffer)
{
    buffer->host = map(MAP_SHARED, buffer->mapped);
    if (!buffer->host) return false;
    void *again = mremap(buffer->host, 0, buffer->mapped, MREMAP_MAYMOVE);
    buffer->gpu = again == MAP_FAILED ? NULL : again;
    return buffer->gpu;
}

static bool map_both(buffer_t *buffer)
{
    if (buffer->storage == STORAGE_SHARED) return map_shared(buffer);
    buffer->gpu = map(MAP_PRIVATE, buffer->mapped);
    if (buffer->storage == STORAGE_MANAGED) buffer->host = map(MAP_PRIVATE, buffer->mapped);
    if (buffer->host && settings()->discrete) buffer->told = map(MAP_PRIVATE, buffer->mapped);
    return buffer->gpu && (buffer->host || buffer->storage == STORAGE_PRIVATE);
}

// The storage mode; other bits are the cache mode (0) and hazard tracking (8, 9).
static storage_t storage_of(const void *self, sel_t cmd, unsigned long options)
{
    unsigned long mode = options >> 4 & 15;
    if (mode == STORAGE_MANAGED && on_ios) misuse(self, cmd, "iOS has no managed storage");
    if (mode > STORAGE_PRIVATE) misuse(self, cmd, "buffers have no storage mode %lu", mode);
    if (options & ~0x3f1ul || (options >> 8 & 3) == 3)
        misuse(self, cmd, "the options %#lx are not known", options);
    return (storage_t)mode;
}

buffer_t *buffer_new(const void *self, sel_t cmd, unsigned long length, unsigned long options)
{
    if (length == 0) misuse(self, cmd, "cannot create a buffer of zero length");
    storage_t storage = storage_of(self, cmd, options);
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    if (length > SIZE_MAX / 2) return NULL;
    buffer_t *buffer = object_new(&MTLBuffer);
    buffer->device = self;
    buffer->length = length;
    buffer->storage = storage;
    buffer->mapped = (length + page - 1) / page * page;
    atomic_fetch_add(&all_bytes, buffer->mapped);
    if (map_both(buffer)) {
        resident_add(buffer);
        if (options >> 8 & UNTRACKED) hazard_add(buffer);
        return buffer;
    }
    object_release(buffer);
    return NULL;
}

buffer_t *buffer_wrap(const void *self, sel_t cmd, range_t memory, unsigned long options)
{
    storage_t storage = storage_of(self, cmd, options);
    if (storage == STORAGE_PRIVATE) misuse(self, cmd, "memory of the program's is never private");
    size_t page = settings()->page;
    if (!memory.location || memory.location % page || !memory.length || memory.length % page)
        return NULL;
    buffer_t *buffer = object_new(&MTLBuffer);
    buffer->device = self;
    buffer->length = memory.length;
    buffer->storage = storage;
    buffer->host = buffer->gpu = (char *)memory.location;
    if (options >> 8 & UNTRACKED) hazard_add(buffer);
    return buffer;
}

static void buffer_dealloc(void *self)
{
    buffer_t *buffer = self;
    hazard_remove(buffer);
    if (buffer->free_host)
        ((free_fn)buffer->free_host->invoke)(buffer->free_host, buffer->host, buffer->length);
    block_free(buffer->free_host);
    if (!buffer->mapped) return;
    resident_remove(buffer);
    atomic_fetch_sub(&all_bytes, buffer->mapped);
    if (buffer->told) munmap(buffer->told, buffer->mapped);
    if (buffer->host) munmap(buffer->host, buffer->mapped);
    if (buffer->gpu) munmap(buffer->gpu, buffer->mapped);
}

unsigned long buffers_size(void)
{
    return atomic_load(&all_bytes);
}

void buffer_settled(buffer_t *buffer, range_t range)
{
    if (!buffer->told) return;
    memcpy(buffer->told + range.location, buffer->host + range.location, range.length);
}

long buffer_unflushed(const buffer_t *buffer, range_t range)
{
    if (!buffer->told) return -1;
    const char *host = buffer->host + range.location, *told = buffer->told + range.location;
    const char *gpu = buffer->gpu + range.location;
    if (memcmp(host, told, range.length) == 0) return -1;
    unsigned long at = 0;
    while (at < range.length && (host[at] == told[at] || host[at] == gpu[at])) at++;
    return at < range.length ? (long)(range.location + at) : -1;
}

void buffer_check(const void *self, sel_t cmd, const buffer_t *buffer, range_t range)
{
    if (range.location <= buffer->length && range.length <= buffer->length - range.location) return;
    misuse(self, cmd, "%lu bytes from %lu are not in the buffer of %lu", range.length,
           range.location, buffer->length);
}

static void *buffer_contents(buffer_t *self, sel_t cmd)
{
    return self->host;
}

static unsigned long buffer_length(buffer_t *self, sel_t cmd)
{
    return self->length;
}

static uint64_t buffer_address(buffer_t *self, sel_t cmd)
{
    return (uintptr_t)self->gpu;
}

static unsigned long buffer_storage(buffer_t *self, sel_t cmd)
{
    return self->storage;
}

static const void *buffer_device(buffer_t *self, sel_t cmd)
{
    return self->device;
}

static void buffer_did_modify(buffer_t *self, sel_t cmd, range_t range)
{
    if (self->storage != STORAGE_MANAGED) misuse(self, cmd, "the buffer's storage is not managed");
    buffer_check(self, cmd, self, range);
    if (!self->mapped) return;
    object_t *const shown[] = {&self->object};
    resident_open(shown, 1);
    hazard_flush(self, range);
    memcpy(self->gpu + range.location, self->host + range.location, range.length);
    resident_close(shown, 1);
    buffer_settled(self, range);
}

static method_t buffer_methods[] = {METHOD("contents", buffer_contents),
                                    METHOD("length", buffer_length),
                                    METHOD("gpuAddress", buffer_address),
                                    METHOD("storageMode", buffer_storage),
                                    METHOD("didModifyRange:", buffer_did_modify),
                                    METHOD("device", buffer_device),
                                    METHODS_END};
class_t MTLBuffer = {.name = "MTLBuffer",
                     .size = sizeof(buffer_t),
                     .dealloc = buffer_dealloc,
                     .methods = buffer_methods};
