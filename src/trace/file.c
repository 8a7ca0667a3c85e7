// SPDX-License-Identifier: Apache-2.0
// The whole file is mapped once, far beyond its end. A chunk is given its blocks on the disk before
// a thread may touch it: a store into a page for which the disk has no block would end the program.
#include "trace/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/system.h"

typedef struct trace_spare_t {
    _Atomic uint32_t next; // chunk and 1; 0: none
    uint32_t slot;         // the first that is free
} trace_spare_t;

enum {
    MOST_CHUNKS = 1 << 18, // 64 GiB
    LEAST_CHUNKS = 16,
    MOST_FILES = 1000, // of one process
};

static uint64_t file_size(uint32_t chunks)
{
    return TRACE_HEADER_SIZE + (uint64_t)chunks * TRACE_CHUNK;
}

static trace_record_t *chunk_at(const trace_file_t *file, uint32_t chunk)
{
    return (trace_record_t *)(void *)((char *)file->header + file_size(chunk));
}

static bool path_make(char *path, size_t size, const char *folder, uint32_t number)
{
    int length = snprintf(path, size, "%s/%ld-%u.trace", folder, (long)getpid(), number);
    return length >= 0 && (size_t)length < size;
}

static int file_know(trace_file_t *file)
{
    struct stat about;
    if (fstat(file->fd, &about) != 0) return errno;
    file->device = (uint64_t)about.st_dev;
    file->inode = (uint64_t)about.st_ino;
    return 0;
}

// The descriptor is of the file still, and not of one that the program has opened since.
static bool fd_is(const trace_file_t *file, int fd)
{
    struct stat about;
    return fd >= 0 && fstat(fd, &about) == 0 && (uint64_t)about.st_dev == file->device &&
           (uint64_t)about.st_ino == file->inode;
}

static int file_extend(const trace_file_t *file, uint64_t offset, uint64_t size)
{
    if (fd_is(file, file->fd)) return system_file_extend(file->fd, offset, size);
    int fd = open(file->path, O_RDWR | O_CLOEXEC);
    if (fd < 0) return errno;
    int error = fd_is(file, fd) ? system_file_extend(fd, offset, size) : ENOENT;
    close(fd);
    return error;
}

// Opens a file that was not there before.
static int file_open(trace_file_t *file, const char *folder, uint32_t *number)
{
    for (*number = 0; *number < MOST_FILES; ++*number) {
        if (!path_make(file->path, sizeof file->path, folder, *number)) return ENAMETOOLONG;
        file->fd = open(file->path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (file->fd >= 0) return file_know(file);
        if (errno != EEXIST) return errno;
    }
    return EEXIST;
}

// How many chunks are tried first: of a process that may have but so much address space, a part.
static uint32_t most_chunks(void)
{
    enum { SHARE = 16 };
    struct rlimit limit;
    uint32_t chunks = MOST_CHUNKS;
    if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return chunks;
    while (chunks > LEAST_CHUNKS && file_size(chunks) > limit.rlim_cur / SHARE) chunks /= 2;
    return chunks;
}

// Maps as much as the process may.
static int file_map(trace_file_t *file)
{
    for (uint32_t chunks = most_chunks(); chunks >= LEAST_CHUNKS; chunks /= 2) {
        void *memory =
            mmap(NULL, file_size(chunks), PROT_READ | PROT_WRITE, MAP_SHARED, file->fd, 0);
        if (memory == MAP_FAILED) continue;
        file->header = memory;
        file->mapped = file_size(chunks);
        file->capacity = chunks;
        void *spares = mmap(NULL, chunks * sizeof(trace_spare_t), PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (spares == MAP_FAILED) return errno;
        file->spares = spares;
        return 0;
    }
    return errno;
}

int trace_file_create(trace_file_t *file, const char *folder, trace_clock_t clock)
{
    uint32_t number;
    *file = (trace_file_t){.fd = -1};
    int error = file_open(file, folder, &number);
    if (!error) error = system_file_extend(file->fd, 0, TRACE_HEADER_SIZE);
    if (!error) error = file_map(file);
    if (error) {
        if (file->fd >= 0) unlink(file->path); // one that cannot be begun
        trace_file_close(file);
        return error;
    }
    trace_header_t *header = file->header;
    header->version = TRACE_VERSION;
    header->slots = TRACE_SLOTS;
    header->clock = clock;
    header->pid = (uint32_t)getpid();
    header->parent = (uint32_t)getppid();
    header->number = number;
    system_command(header->command, sizeof header->command);
    system_boot_name(header->boot, sizeof header->boot);
    return 0;
}

void trace_file_publish(const trace_file_t *file)
{
    // For readers that look while the process runs, or after it was killed just here.
    atomic_thread_fence(memory_order_release);
    memcpy(file->header->magic, TRACE_MAGIC, sizeof TRACE_MAGIC);
}

static bool spare_take(trace_file_t *file, trace_room_t *room)
{
    // acquire: pairs with trace_file_return, for the slot and the records before it.
    uint64_t top = atomic_load_explicit(&file->spare, memory_order_acquire), below;
    uint32_t chunk;
    do {
        if (!(uint32_t)top) return false;
        chunk = (uint32_t)top - 1;
        // relaxed: if it has changed meanwhile, so has the count in `spare`.
        uint32_t next = atomic_load_explicit(&file->spares[chunk].next, memory_order_relaxed);
        below = ((top >> 32) + 1) << 32 | next;
    } while (!atomic_compare_exchange_weak_explicit(&file->spare, &top, below, memory_order_acquire,
                                                    memory_order_acquire));
    trace_record_t *first = chunk_at(file, chunk);
    *room = (trace_room_t){first + file->spares[chunk].slot, first + TRACE_SLOTS};
    return true;
}

bool trace_file_take(trace_file_t *file, trace_room_t *room)
{
    if (spare_take(file, room)) return true;
    // relaxed, both: nothing but the number counts, and a thread that does not see `full` asks once
    // more.
    if (atomic_load_explicit(&file->full, memory_order_relaxed)) return false;
    uint32_t chunk = atomic_fetch_add_explicit(&file->header->chunks, 1, memory_order_relaxed);
    if (chunk >= file->capacity || file_extend(file, file_size(chunk), TRACE_CHUNK) != 0) {
        atomic_store_explicit(&file->full, true, memory_order_relaxed);
        return false;
    }
    trace_record_t *first = chunk_at(file, chunk);
    *room = (trace_room_t){first, first + TRACE_SLOTS};
    return true;
}

void trace_file_return(trace_file_t *file, trace_room_t room)
{
    if (room.next == room.end) return;
    uint32_t chunk =
        (uint32_t)(((uint64_t)((char *)room.next - (char *)file->header) - TRACE_HEADER_SIZE) /
                   TRACE_CHUNK);
    trace_spare_t *spare = &file->spares[chunk];
    spare->slot = (uint32_t)(room.next - chunk_at(file, chunk));
    uint64_t top = atomic_load_explicit(&file->spare, memory_order_relaxed), mine;
    do {
        atomic_store_explicit(&spare->next, (uint32_t)top, memory_order_relaxed);
        mine = ((top >> 32) + 1) << 32 | (chunk + 1);
        // release: pairs with spare_take.
    } while (!atomic_compare_exchange_weak_explicit(&file->spare, &top, mine, memory_order_release,
                                                    memory_order_relaxed));
}

void trace_file_leave(trace_file_t *file)
{
    if (fd_is(file, file->fd)) close(file->fd);
    file->fd = -1;
}

void trace_file_close(trace_file_t *file)
{
    if (file->spares) munmap(file->spares, file->capacity * sizeof(trace_spare_t));
    if (file->header) munmap(file->header, file->mapped);
    trace_file_leave(file);
    *file = (trace_file_t){.fd = -1};
}
