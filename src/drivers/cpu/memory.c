// SPDX-License-Identifier: Apache-2.0
// Memory of the cpu device is memory of the process. Small buffers come from the library's
// allocator, large ones straight from the system, so that their pages go back when they do;
// exportable ones from a memory file.
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/shared_memory.h"
#include "base/status.h"
#include "drivers/cpu/cpu.h"

enum {
    LARGE = 128 << 10,
    FD_NONE = -1,
};

// What keel_buffer_t.handle holds: how it was got, and the descriptor behind it.
typedef enum memory_kind_t {
    MEMORY_SMALL,
    MEMORY_MAPPED,
    MEMORY_FILE,
} memory_kind_t;

static uint64_t handle_make(memory_kind_t kind, int fd)
{
    return (uint64_t)(uint32_t)fd << 8 | kind;
}

static int handle_fd(uint64_t handle)
{
    return (int)(uint32_t)(handle >> 8);
}

static uint64_t page_round(uint64_t size)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    return (size + page - 1) / page * page;
}

static void buffer_attach(keel_buffer_t *buffer, void *data)
{
    atomic_store(&buffer->data, data);
    atomic_store(&buffer->address, (uint64_t)(uintptr_t)data);
}

static keel_status_t exhausted(uint64_t size, int error)
{
    return KEEL_ERROR(KEEL_RESOURCE_EXHAUSTED, "the system has no %llu bytes for a buffer: %s",
                      (unsigned long long)size, strerror(error));
}

// Maps with room to align, and gives the rest back.
static keel_status_t map_aligned(uint64_t size, uint64_t align, void **data)
{
    uint64_t page = page_round(1), extra = align > page ? align : 0;
    char *start =
        mmap(NULL, size + extra, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (start == MAP_FAILED) return exhausted(size, errno);
    char *aligned = start;
    if (extra) {
        aligned += -(uintptr_t)start & (align - 1);
        if (aligned > start) munmap(start, (size_t)(aligned - start));
        char *end = aligned + size;
        if (start + size + extra > end) munmap(end, (size_t)(start + size + extra - end));
    }
    *data = aligned;
    return NULL;
}

static keel_status_t alloc_file(keel_buffer_t *buffer, void **data)
{
    int fd = FD_NONE;
    KEEL_TRY(shared_memory_create(buffer->capacity, &fd));
    keel_status_t status = map_aligned(buffer->capacity, buffer->alignment, data);
    if (!status && mmap(*data, buffer->capacity, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd,
                        0) == MAP_FAILED) {
        status = exhausted(buffer->capacity, errno);
        munmap(*data, buffer->capacity);
    }
    if (status) {
        close(fd);
        return status;
    }
    buffer->handle = handle_make(MEMORY_FILE, fd);
    return NULL;
}

keel_status_t cpu_buffer_alloc(keel_buffer_t *buffer)
{
    void *data = NULL;
    buffer->capacity = buffer->size ? buffer->size : 1;
    if (buffer->usage & KEEL_USAGE_EXPORT) {
        buffer->capacity = page_round(buffer->capacity);
        KEEL_TRY(alloc_file(buffer, &data));
    } else if (buffer->capacity >= LARGE) {
        buffer->capacity = page_round(buffer->capacity);
        KEEL_TRY(map_aligned(buffer->capacity, buffer->alignment, &data));
        buffer->handle = handle_make(MEMORY_MAPPED, FD_NONE);
    } else {
        data = mem_zalloc_aligned(buffer->capacity, buffer->alignment);
        if (!data) return status_no_memory();
        buffer->handle = handle_make(MEMORY_SMALL, FD_NONE);
    }
    buffer_attach(buffer, data);
    return NULL;
}

void cpu_buffer_free(keel_buffer_t *buffer)
{
    void *data = atomic_load(&buffer->data);
    memory_kind_t kind = (memory_kind_t)(buffer->handle & 0xff);
    if (kind == MEMORY_SMALL) {
        mem_free_aligned(data);
        return;
    }
    munmap(data, buffer->capacity);
    if (kind == MEMORY_FILE) close(handle_fd(buffer->handle));
}

static keel_status_t import_file(keel_buffer_t *buffer)
{
    const keel_external_buffer_t *external = &buffer->external;
    KEEL_TRY(shared_memory_check(external->handle.fd, external->offset, external->size));
    int protection = (buffer->access & KEEL_ACCESS_READ ? PROT_READ : 0) |
                     (buffer->access & KEEL_ACCESS_WRITE ? PROT_WRITE : 0);
    void *data = mmap(NULL, external->size, protection, MAP_SHARED, external->handle.fd,
                      (off_t)external->offset);
    if (data == MAP_FAILED)
        return status_from_errno(KEEL_PERMISSION_DENIED, errno, "mapping external->handle.fd");
    buffer->capacity = external->size;
    buffer_attach(buffer, data);
    return NULL;
}

// With memory=discrete as on a card: memory of the host, memory of the device, and what both use if
// that was asked for.
static uint32_t import_type(const keel_buffer_t *buffer)
{
    const uint32_t *types = buffer->device->caps.memory_types;
    const uint32_t both = KEEL_MEMORY_DEVICE_LOCAL | KEEL_MEMORY_HOST_VISIBLE;
    if (!types[1]) return types[0]; // unified
    switch (buffer->external.kind) {
    case KEEL_EXTERNAL_HOST: return types[1];
    case KEEL_EXTERNAL_DEVICE: return types[(buffer->memory & both) == both ? 2 : 0];
    case KEEL_EXTERNAL_FD:
    case KEEL_EXTERNAL_NATIVE: break;
    }
    return types[0];
}

keel_status_t cpu_buffer_import(keel_buffer_t *buffer)
{
    buffer->memory = import_type(buffer);
    if (buffer->external.kind == KEEL_EXTERNAL_FD) return import_file(buffer);
    void *data = buffer->external.kind == KEEL_EXTERNAL_HOST
                     ? buffer->external.handle.host
                     : (void *)(uintptr_t)buffer->external.handle.device;
    buffer_attach(buffer, data ? data : buffer); // nothing at all still needs an address
    return NULL;
}

void cpu_buffer_forget(keel_buffer_t *buffer)
{
    if (buffer->external.kind == KEEL_EXTERNAL_FD)
        munmap(atomic_load(&buffer->data), buffer->capacity);
    if (buffer->external.release) buffer->external.release(buffer->external.user);
}

keel_status_t cpu_buffer_export(keel_buffer_t *buffer, keel_external_buffer_t *external)
{
    return shared_memory_duplicate(handle_fd(buffer->root->handle), &external->handle.fd);
}
