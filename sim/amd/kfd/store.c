// SPDX-License-Identifier: Apache-2.0
#include "amd/kfd/store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PAGE = 4096, LARGE_PAGE = 2 << 20, ENTRY_MAX = 1 << 20 };

// The file is sparse, and no place in it is used twice, so it is as large as a file can be.
#define FILE_SIZE (1ull << 60)

typedef struct {
    uint64_t offset, size;
    uint32_t flags, gpu_id;
    uint32_t holders; // processes, and buffers of one; 0: the entry is free
    uint32_t pad;
} entry_t;

typedef struct {
    char magic[8];
    uint32_t secret; // random, so that a handle of another file does not fit
    uint32_t pad;
    entry_t entries[ENTRY_MAX];
} ledger_t;

static const char magic[8] = "keelsim";

struct store {
    store_t *next;
    int file;
    ledger_t *ledger;
    dev_t device;
    ino_t inode;
    unsigned uses; // places
};

static store_t *stores; // the first to be made is that of this process
static store_t *own;
static uint64_t next_offset;
static uint32_t free_hint; // no free entry is below

// Takes the file; NULL when it is none of these, or memory is short.
static store_t *store_make(int file)
{
    struct stat facts;
    store_t *store = calloc(1, sizeof *store);
    bool good = store && !fstat(file, &facts) && facts.st_size >= (off_t)sizeof(ledger_t);
    void *ledger = good ? mmap(NULL, sizeof(ledger_t), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0)
                        : MAP_FAILED;
    if (ledger == MAP_FAILED) {
        free(store);
        return NULL;
    }
    *store = (store_t){stores, file, ledger, facts.st_dev, facts.st_ino, 0};
    stores = store;
    return store;
}

static void store_close(store_t *store)
{
    store_t **link = &stores;
    while (*link != store) link = &(*link)->next;
    *link = store->next;
    munmap(store->ledger, sizeof *store->ledger);
    close(store->file);
    free(store);
}

static store_t *store_mine(void)
{
    if (own) return own;
    int file = memfd_create("gpu memory", MFD_CLOEXEC);
    if (file < 0) return NULL;
    if (ftruncate(file, (off_t)FILE_SIZE) || !(own = store_make(file))) {
        close(file);
        return NULL;
    }
    memcpy(own->ledger->magic, magic, sizeof magic);
    if (getrandom(&own->ledger->secret, sizeof own->ledger->secret, 0) < 0) {
        own->ledger->secret = (uint32_t)getpid();
    }
    next_offset = (sizeof(ledger_t) + LARGE_PAGE - 1) & ~(uint64_t)(LARGE_PAGE - 1);
    return own;
}

int store_own(void)
{
    return store_mine() ? own->file : -1;
}

static entry_t *entry_of(place_t place)
{
    return &place.store->ledger->entries[place.entry];
}

// Relaxed: the entries of a file are written by one thread at a time, and read by others only after
// this process has given them a handle. holders alone changes on all sides.
static uint32_t holders(const entry_t *entry)
{
    return __atomic_load_n(&entry->holders, __ATOMIC_RELAXED);
}

place_t store_add(const content_t *content)
{
    if (!store_mine()) return (place_t){0};
    uint32_t index = free_hint;
    while (index < ENTRY_MAX && holders(&own->ledger->entries[index])) index++;
    free_hint = index;
    uint64_t room = (content->size + LARGE_PAGE - 1) & ~(uint64_t)(LARGE_PAGE - 1);
    if (index == ENTRY_MAX || room > FILE_SIZE - next_offset) return (place_t){0};
    entry_t *entry = &own->ledger->entries[index];
    *entry = (entry_t){next_offset, content->size, content->flags, content->gpu_id, 1, 0};
    next_offset += room;
    own->uses++;
    return (place_t){own, index};
}

// One more holder, unless there is none.
static bool entry_hold(entry_t *entry)
{
    uint32_t count = holders(entry);
    // Acquire and release: the last holder to go must see what the others have done.
    while (count && !__atomic_compare_exchange_n(&entry->holders, &count, count + 1, true,
                                                 __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
    }
    return count > 0;
}

static bool begins_as_store(int descriptor)
{
    char begin[sizeof magic];
    return pread(descriptor, begin, sizeof begin, 0) == (ssize_t)sizeof begin &&
           !memcmp(begin, magic, sizeof magic);
}

bool store_is(int descriptor)
{
    struct stat facts;
    return !fstat(descriptor, &facts) && facts.st_size == (off_t)FILE_SIZE &&
           begins_as_store(descriptor);
}

int64_t store_seek(int descriptor, int64_t offset, int whence)
{
    return syscall(SYS_lseek, descriptor, offset, whence);
}

// The store of a descriptor, which is not kept; NULL when it is none.
static store_t *store_of(int descriptor)
{
    struct stat facts;
    if (fstat(descriptor, &facts)) return NULL;
    for (store_t *store = stores; store; store = store->next) {
        if (store->inode == facts.st_ino && store->device == facts.st_dev) return store;
    }
    if (!begins_as_store(descriptor)) return NULL;
    int file = fcntl(descriptor, F_DUPFD_CLOEXEC, 3);
    store_t *store = file < 0 ? NULL : store_make(file);
    if (!store && file >= 0) close(file);
    return store;
}

static place_t place_hold(store_t *store, uint64_t index)
{
    place_t place = {store, (uint32_t)index};
    if (!store) return place;
    if (index < ENTRY_MAX && entry_hold(entry_of(place))) {
        store->uses++;
        return place;
    }
    if (store != own && !store->uses) store_close(store);
    return (place_t){0};
}

place_t store_import(int descriptor)
{
    int64_t position = store_seek(descriptor, 0, SEEK_CUR);
    if (position < 0) return (place_t){0};
    return place_hold(store_of(descriptor), (uint64_t)position);
}

place_t store_open(const uint32_t handle[4])
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%u/fd/%u", handle[0], handle[1]);
    int file = open(path, O_RDWR | O_CLOEXEC);
    if (file < 0) return (place_t){0};
    store_t *store = store_of(file);
    close(file);
    if (!store || store->ledger->secret != handle[3]) {
        if (store && store != own && !store->uses) store_close(store);
        return (place_t){0};
    }
    return place_hold(store, handle[2]);
}

void store_drop(place_t place)
{
    if (!place.store) return;
    entry_t *entry = entry_of(place);
    uint64_t offset = entry->offset, size = entry->size;
    // The bytes go before the entry is free for others.
    if (holders(entry) == 1) {
        fallocate(place.store->file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)offset,
                  (off_t)size);
    }
    __atomic_fetch_sub(&entry->holders, 1, __ATOMIC_ACQ_REL); // pairs with entry_hold
    place.store->uses--;
    if (place.store == own) {
        if (place.entry < free_hint) free_hint = place.entry;
    } else if (!place.store->uses) {
        store_close(place.store);
    }
}

content_t store_content(place_t place)
{
    const entry_t *entry = entry_of(place);
    return (content_t){entry->size, entry->flags, entry->gpu_id};
}

// A descriptor with a position of its own, which says what it is for.
int store_export(place_t place)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", place.store->file);
    int descriptor = open(path, O_RDWR | O_CLOEXEC);
    if (descriptor >= 0 && store_seek(descriptor, place.entry, SEEK_SET) < 0) {
        close(descriptor);
        return -1;
    }
    return descriptor;
}

void store_handle(place_t place, uint32_t handle[4])
{
    handle[0] = (uint32_t)getpid();
    handle[1] = (uint32_t)place.store->file;
    handle[2] = place.entry;
    handle[3] = place.store->ledger->secret;
}

int store_file(place_t place, uint64_t *out_offset)
{
    *out_offset = entry_of(place)->offset;
    return place.store->file;
}

void store_forget(void)
{
    stores = own = NULL;
    free_hint = 0;
}
