// SPDX-License-Identifier: Apache-2.0
#include "cuda/arena.h"

#include "cuda/call.h"
#include "cuda/engine.h"
#include "cuda/tool.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
    CANARY = 0xc9,    // in the parts of pages that no allocation has
    ALIGNMENT = 256,  // that CUDA promises for device memory
    CLOSED_MAX = 256, // with more ranges than this the arena stays open, for it takes too long
    GRAVES = 256,     // freed ranges that are remembered
};

typedef struct grave_t {
    uint64_t base, size, id;
    const char *maker, *killer;
} grave_t;

static struct {
    uint64_t base, limit, cursor; // addresses of allocations, and where the next one is tried
    uint64_t virtual_cursor, virtual_limit;
    uint8_t *view; // the byte at `base`
    uint64_t page;
    bool open;
    range_t **ranges; // by address
    size_t count, capacity;
    unsigned guarded; // ranges that the host may not touch
    grave_t graves[GRAVES];
    unsigned grave_count;
} arena;

static uint64_t round_up(uint64_t value, uint64_t unit)
{
    return (value + unit - 1) / unit * unit;
}

static bool is_guarded(const range_t *range)
{
    return range->kind == RANGE_DEVICE || range->kind == RANGE_POOL || range->kind == RANGE_VIRTUAL;
}

static bool is_ours(const range_t *range)
{
    return range->kind != RANGE_REGISTERED && range->kind != RANGE_GLOBAL;
}

// Maps `whole` bytes twice, once out of reach.
static bool arena_map_views(uint64_t whole)
{
    int fd = memfd_create("device memory", MFD_CLOEXEC);
    if (fd < 0) return false;
    void *base = MAP_FAILED, *view = MAP_FAILED;
    if (ftruncate(fd, (off_t)whole) == 0) {
        base = mmap(NULL, whole, PROT_NONE, MAP_SHARED | MAP_NORESERVE, fd, 0);
        view = mmap(NULL, whole, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
    }
    close(fd);
    if (base == MAP_FAILED || view == MAP_FAILED) {
        if (base != MAP_FAILED) munmap(base, whole);
        if (view != MAP_FAILED) munmap(view, whole);
        return false;
    }
    // A child of fork has no business with a device, and would write to its parent's memory.
    madvise(base, whole, MADV_DONTFORK);
    madvise(view, whole, MADV_DONTFORK);
    arena.base = arena.cursor = (uint64_t)(uintptr_t)base;
    arena.view = view;
    return true;
}

bool arena_init(uint64_t memory)
{
    // The more addresses, the longer it takes until one is used again.
    uint64_t size = memory * 4;
    arena.page = (uint64_t)sysconf(_SC_PAGESIZE);
    while (!arena_map_views(size * 2)) {
        size /= 2;
        if (size < memory) return false;
    }
    arena.limit = arena.virtual_cursor = arena.base + size;
    arena.virtual_limit = arena.base + size * 2;
    return true;
}

bool arena_owns(uint64_t address)
{
    return address - arena.base < arena.virtual_limit - arena.base;
}

void *arena_bytes(uint64_t address)
{
    if (arena_owns(address)) return arena.view + (address - arena.base);
    return (void *)(uintptr_t)address;
}

// The index of the first range that begins above an address.
static size_t index_above(uint64_t address)
{
    size_t low = 0, high = arena.count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (arena.ranges[middle]->span > address)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static bool index_insert(range_t *range)
{
    if (arena.count == arena.capacity) {
        size_t capacity = arena.capacity ? arena.capacity * 2 : 64;
        range_t **ranges = realloc(arena.ranges, capacity * sizeof *ranges);
        if (!ranges) return false;
        arena.ranges = ranges;
        arena.capacity = capacity;
    }
    size_t index = index_above(range->span);
    memmove(&arena.ranges[index + 1], &arena.ranges[index],
            (arena.count - index) * sizeof *arena.ranges);
    arena.ranges[index] = range;
    arena.count++;
    return true;
}

static void index_remove(range_t *range)
{
    size_t index = index_above(range->span) - 1;
    arena.count--;
    memmove(&arena.ranges[index], &arena.ranges[index + 1],
            (arena.count - index) * sizeof *arena.ranges);
}

// Addresses for `size` bytes with a guard at each end, as late after their last use as may be.
static uint64_t span_find(uint64_t size)
{
    uint64_t needed = size + 2 * arena.page;
    for (int pass = 0; pass < 2; pass++) {
        for (size_t index = index_above(arena.cursor);; index++) {
            bool last = index >= arena.count || arena.ranges[index]->span >= arena.limit ||
                        arena.ranges[index]->span < arena.base;
            uint64_t end = last ? arena.limit : arena.ranges[index]->span;
            if (end >= arena.cursor && end - arena.cursor >= needed) {
                uint64_t span = arena.cursor + arena.page;
                arena.cursor = span + size;
                return span;
            }
            if (last) break;
            arena.cursor = end + arena.ranges[index]->span_size;
        }
        arena.cursor = arena.base;
    }
    return 0;
}

static void range_protect(const range_t *range)
{
    bool usable = range->state != RANGE_PROMISED && (!is_guarded(range) || arena.open);
    if (range->kind == RANGE_VIRTUAL && !range->flags) usable = false;
    int access = usable ? range->writable ? PROT_READ | PROT_WRITE : PROT_READ : PROT_NONE;
    mprotect((void *)(uintptr_t)range->span, range->span_size, access);
}

static range_t *range_create(range_kind_t kind, uint64_t base, uint64_t size, CUcontext context)
{
    range_t *range = calloc(1, sizeof *range);
    if (!range) return NULL;
    *range = (range_t){.base = base,
                       .size = size,
                       .span = base,
                       .span_size = size,
                       .whole = base,
                       .whole_size = size,
                       .kind = kind,
                       .context = context,
                       .device = context ? context->device : NULL,
                       .writable = true,
                       .id = ++state.serial,
                       .maker = call_name()};
    return range;
}

static void range_tell(const range_t *range, bool allocated)
{
    const sim_tool_t *tool = tool_get();
    if (!tool) return;
    tool->memory(&(sim_memory_t){
        .allocated = allocated,
        .device = (uint32_t)range->device->ordinal,
        .context = range->context ? (uint32_t)range->context->id : 0,
        .correlation = call_correlation(),
        .address = range->base,
        .bytes = range->size,
        .time = clock_ns(),
    });
}

static void range_dress(const range_t *range)
{
    uint8_t *bytes = arena_bytes(range->span);
    uint64_t before = range->base - range->span;
    memset(bytes, CANARY, before);
    memset(bytes + before + range->size, CANARY, range->span_size - before - range->size);
    if (settings()->poison >= 0) memset(bytes + before, settings()->poison, range->size);
}

range_t *arena_alloc(range_kind_t kind, uint64_t size, device_t *device, CUcontext context)
{
    if (size > arena.limit - arena.base) return NULL;
    uint64_t span_size = round_up(size, arena.page), span = span_find(span_size);
    range_t *range = span ? range_create(kind, span, size, context) : NULL;
    if (!range) return NULL;
    range->span_size = span_size;
    range->device = device;
    range->state = kind == RANGE_POOL ? RANGE_PROMISED : RANGE_LIVE;
    // Device memory ends where its last page does, as nearly as alignment allows, so that what runs
    // past the end runs into the guard.
    if (is_guarded(range)) range->base = span + span_size - round_up(size, ALIGNMENT);
    range->whole = range->base;
    if (!index_insert(range)) {
        free(range);
        return NULL;
    }
    arena.guarded += is_guarded(range);
    if (kind == RANGE_DEVICE) {
        device->used += size;
        range_tell(range, true);
    }
    range_dress(range);
    range_protect(range);
    return range;
}

range_t *arena_adopt(range_kind_t kind, uint64_t base, uint64_t size, CUcontext context)
{
    range_t *range = range_create(kind, base, size, context);
    if (range && index_insert(range)) return range;
    free(range);
    return NULL;
}

uint64_t arena_reserve(uint64_t size, uint64_t align)
{
    uint64_t address = round_up(arena.virtual_cursor + arena.page, align);
    if (size > arena.virtual_limit || address > arena.virtual_limit - size) return 0;
    arena.virtual_cursor = address + size;
    return address;
}

bool arena_map(uint64_t address, uint64_t size, int fd, uint64_t offset)
{
    void *front = (void *)(uintptr_t)address, *back = arena_bytes(address);
    int flags = MAP_FIXED | MAP_NORESERVE | (fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED);
    int access = fd < 0 ? PROT_NONE : PROT_READ | PROT_WRITE;
    bool done = mmap(back, size, access, flags, fd, (off_t)offset) != MAP_FAILED &&
                mmap(front, size, PROT_NONE, flags, fd, (off_t)offset) != MAP_FAILED;
    madvise(back, size, MADV_DONTFORK);
    madvise(front, size, MADV_DONTFORK);
    return done;
}

range_t *arena_track(uint64_t address, uint64_t size, device_t *device)
{
    range_t *range = range_create(RANGE_VIRTUAL, address, size, NULL);
    if (!range || !index_insert(range)) {
        free(range);
        return NULL;
    }
    range->device = device;
    arena.guarded++;
    return range;
}

void arena_begin(range_t *range)
{
    range->state = RANGE_LIVE;
    range_protect(range);
}

static void canary_check(const range_t *range)
{
    const uint8_t *bytes = arena_bytes(range->span);
    uint64_t before = range->base - range->span;
    for (uint64_t i = 0; i < range->span_size; i++) {
        if (i == before) i += range->size;
        if (i >= range->span_size || bytes[i] == CANARY) continue;
        complain(
            "%s: allocation %llu (%s, %llu bytes): the byte at offset %lld, outside of it, was "
            "overwritten",
            call_name(), (unsigned long long)range->id, range->maker,
            (unsigned long long)range->size, (long long)(i - before));
        if (range->context) context_fail(range->context, CUDA_ERROR_ILLEGAL_ADDRESS);
        return;
    }
}

void arena_free(range_t *range)
{
    index_remove(range);
    arena.guarded -= is_guarded(range);
    if (range->kind == RANGE_DEVICE) {
        range->device->used -= range->size;
        range_tell(range, false);
    }
    if (is_ours(range) && range->kind != RANGE_VIRTUAL) {
        canary_check(range);
        mprotect((void *)(uintptr_t)range->span, range->span_size, PROT_NONE);
        madvise(arena_bytes(range->span), range->span_size, MADV_REMOVE);
    }
    grave_t *grave = &arena.graves[arena.grave_count++ % GRAVES];
    *grave = (grave_t){range->base, range->size, range->id, range->maker, call_name()};
    free(range);
}

void arena_free_all(CUcontext context)
{
    for (size_t i = arena.count; i-- > 0;) {
        if (arena.ranges[i]->context == context) arena_free(arena.ranges[i]);
    }
}

range_t *arena_find(uint64_t address)
{
    size_t index = index_above(address);
    if (index == 0) return NULL;
    range_t *range = arena.ranges[index - 1];
    return address >= range->base && address - range->base < range->size ? range : NULL;
}

range_t *arena_find_base(uint64_t address)
{
    range_t *range = arena_find(address);
    return range && range->base == address ? range : NULL;
}

bool arena_overlaps(uint64_t address, uint64_t size)
{
    size_t index = index_above(address);
    if (index > 0) {
        const range_t *below = arena.ranges[index - 1];
        if (address - below->span < below->span_size) return true;
    }
    return index < arena.count && arena.ranges[index]->span - address < size;
}

range_t *arena_first(CUcontext context, range_kind_t kind)
{
    for (size_t i = 0; i < arena.count; i++) {
        range_t *range = arena.ranges[i];
        if (range->context == context && range->kind == kind) return range;
    }
    return NULL;
}

unsigned arena_count(CUcontext context)
{
    unsigned count = 0;
    for (size_t i = 0; i < arena.count; i++) {
        count += arena.ranges[i]->context == context && arena.ranges[i]->kind != RANGE_GLOBAL;
    }
    return count;
}

bool arena_check(uint64_t address, uint64_t size, moment_t moment, const char *maker)
{
    if (size == 0) return true;
    const range_t *range = arena_find(address);
    if (range && range->state == RANGE_PROMISED && moment == WHEN_RUN) {
        complain("%s: %llu bytes at offset %llu of allocation %llu (%s, %llu bytes), which its "
                 "stream has not come to yet",
                 maker, (unsigned long long)size, (unsigned long long)(address - range->base),
                 (unsigned long long)range->id, range->maker, (unsigned long long)range->size);
        return false;
    }
    bool mapped = range && (range->kind != RANGE_VIRTUAL || range->flags);
    if (mapped && size <= range->size - (address - range->base)) return true;
    char text[256];
    arena_describe(address, text, sizeof text);
    complain("%s: %llu bytes at %#llx: %s", maker, (unsigned long long)size,
             (unsigned long long)address, text);
    return false;
}

// Whether a work touches a range; of a kernel, whether one of its parameters is such an address.
static bool work_uses(const work_t *work, const void *what)
{
    const range_t *range = what;
    uint64_t base = range->base, size = range->size;
    const copy_work_t *copy = &work->copy;
    const kernel_work_t *kernel = &work->kernel;
    switch (work->kind) {
    case WORK_COPY:
        return (!copy->staged && copy->from.address - base < size) ||
               copy->to.address - base < size;
    case WORK_FILL: return work->fill.address - base < size;
    case WORK_MEMOPS:
        for (unsigned i = 0; i < work->memops.count; i++) {
            if (work->memops.ops[i].waitValue.address - base < size) return true;
        }
        return false;
    case WORK_KERNEL:
        for (size_t i = 0; i < kernel->size / 8; i++) {
            if (((const uint64_t *)kernel->params)[i] - base < size) return true;
        }
        return false;
    default: return false;
    }
}

bool arena_is_busy(const range_t *range)
{
    const char *maker = work_find(work_uses, range);
    if (!maker) return false;
    complain("%s: allocation %llu (%s, %llu bytes) is still used by what %s has enqueued",
             call_name(), (unsigned long long)range->id, range->maker,
             (unsigned long long)range->size, maker);
    return true;
}

static void arena_protect(bool open)
{
    arena.open = open;
    for (size_t i = 0; i < arena.count; i++) {
        if (is_guarded(arena.ranges[i])) range_protect(arena.ranges[i]);
    }
}

void arena_open(void)
{
    if (!arena.open) arena_protect(true);
}

void arena_close(void)
{
    if (arena.open && state.kernels == 0 && arena.guarded <= CLOSED_MAX) arena_protect(false);
}

static const range_t *nearest(uint64_t address)
{
    const range_t *best = NULL;
    uint64_t distance = UINT64_C(1) << 20;
    for (size_t i = 0; i < arena.count; i++) {
        const range_t *range = arena.ranges[i];
        uint64_t away = address < range->base                 ? range->base - address
                        : address - range->base < range->size ? 0
                                                              : address - range->base - range->size;
        if (away >= distance) continue;
        distance = away;
        best = range;
    }
    return best;
}

void arena_describe(uint64_t address, char *text, size_t size)
{
    for (unsigned i = 0; i < GRAVES && i < arena.grave_count; i++) {
        const grave_t *grave = &arena.graves[(arena.grave_count - 1 - i) % GRAVES];
        if (address - grave->base >= grave->size || arena_find(address)) continue;
        snprintf(text, size,
                 "offset %llu of allocation %llu (%s, %llu bytes), which has been freed (%s)",
                 (unsigned long long)(address - grave->base), (unsigned long long)grave->id,
                 grave->maker, (unsigned long long)grave->size, grave->killer);
        return;
    }
    const range_t *range = nearest(address);
    if (!range) {
        snprintf(text, size, "no memory of CUDA's, and none near");
        return;
    }
    snprintf(text, size, "offset %lld of allocation %llu (%s, %llu bytes)",
             (long long)(address - range->base), (unsigned long long)range->id, range->maker,
             (unsigned long long)range->size);
}
