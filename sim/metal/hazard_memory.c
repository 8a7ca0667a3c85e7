// SPDX-License-Identifier: Apache-2.0
#include "metal/hazard_cells.h"
#include "metal/hazard_held.h"
#include "metal/hazard_order.h"
#include "metal/thread.h"

#include <stdlib.h>
#include <string.h>

enum { HOST_MOST = 1 << 16 }; // bytes of a buffer in which the host's writes are looked for
static const unsigned atomic_bit = 1u << 31; // of a work in a cell

// A byte as the GPU saw or left it; only if `is`.
typedef struct value_t {
    char byte;
    bool is;
} value_t;

typedef struct watched_t {
    const buffer_t *buffer;
    cells_t cells;   // owned
    value_t *values; // owned; NULL: what the host does is not looked at
    unsigned batch;  // the last one that uses it
} watched_t;

// A buffer of a command buffer, as it was at the commit.
typedef struct snapshot_t {
    struct snapshot_t *next;
    unsigned batch;
    const buffer_t *buffer; // NULL: it is gone
    char *bytes;            // owned; NULL: the command buffer is not committed yet
} snapshot_t;

static watched_t *all; // by address
static unsigned count, room;
static snapshot_t *snapshots;

// The last buffer that begins at or before an address.
static unsigned before(const char *at)
{
    unsigned low = 0, high = count;
    while (low < high) {
        unsigned middle = low + (high - low) / 2;
        if (all[middle].buffer->gpu <= at) low = middle + 1;
        if (all[middle].buffer->gpu > at) high = middle;
    }
    return low;
}

static watched_t *find(const char *at)
{
    unsigned place = before(at);
    if (!place) return NULL;
    watched_t *w = &all[place - 1];
    return at < w->buffer->gpu + w->buffer->length ? w : NULL;
}

void hazard_add(buffer_t *buffer)
{
    if (!settings()->hazards) return;
    watched_t fresh = {.buffer = buffer, .cells = cells_make(buffer->length)};
    if (buffer->mapped && buffer->storage == STORAGE_SHARED && buffer->length <= HOST_MOST)
        fresh.values = make(buffer->length * sizeof(value_t));
    hazard_lock();
    if (count == room) {
        room = room ? 2 * room : 64;
        all = realloc(all, room * sizeof *all);
        if (!all) die("no memory to look for hazards");
    }
    unsigned place = before(buffer->gpu);
    memmove(all + place + 1, all + place, (count - place) * sizeof *all);
    all[place] = fresh;
    count++;
    hazard_unlock();
}

void hazard_remove(buffer_t *buffer)
{
    if (!settings()->hazards) return;
    hazard_lock();
    for (snapshot_t *s = snapshots; s; s = s->next)
        if (s->buffer == buffer) s->buffer = NULL;
    unsigned place = 0;
    while (place < count && all[place].buffer != buffer) place++;
    if (place < count) {
        cells_free(&all[place].cells);
        free(all[place].values);
        memmove(all + place, all + place + 1, (--count - place) * sizeof *all);
    }
    hazard_unlock();
}

_Noreturn static void report(const watched_t *w, size_t at, unsigned work, const char *does,
                             const char *other, const char *did)
{
    die("a hazard: %s %s byte %zu of an untracked buffer of %lu bytes, which %s %s",
        work ? work_name(work) : "the host", does, at, w->buffer->length, other, did);
}

static const char *const words[] = {"reads", "writes", "reads", "writes"};

static void check(const watched_t *w, size_t at, unsigned other, bool wrote, access_t access)
{
    if (other & atomic_bit && access >= READS_ATOMIC) return;
    other &= ~atomic_bit;
    if (!other || work_is_before(other)) return;
    report(w, at, work_current(), words[access], work_name(other),
           wrote ? "writes: nothing orders the two" : "reads: nothing orders the two");
}

// The host has changed a byte. It must have seen the end of who touched it.
static void check_host(const watched_t *w, size_t at)
{
    const cell_t *cell = cell_at(&w->cells, at);
    unsigned touched[] = {cell->writer & ~atomic_bit, cell->reader & ~atomic_bit,
                          cell->other & ~atomic_bit};
    for (int i = 0; i < 3; i++)
        if (touched[i] && !work_is_seen(touched[i]))
            report(w, at, 0, "has written", work_name(touched[i]),
                   i ? "reads: the host has not seen its end"
                     : "writes: the host has not seen its "
                       "end");
}

// Of the command buffer that runs on this thread. It has its snapshots until it has ended.
static const snapshot_t *snapshot_of(const watched_t *w)
{
    static PER_THREAD const buffer_t *buffer;
    static PER_THREAD unsigned batch;
    static PER_THREAD const snapshot_t *latest;
    unsigned running = work_batch(work_current());
    if (w->buffer == buffer && running == batch) return latest;
    const snapshot_t *at = snapshots;
    while (at && (at->batch != running || at->buffer != w->buffer)) at = at->next;
    buffer = w->buffer;
    batch = running;
    return latest = at;
}

// The work's command buffer finds a byte that the host has written since the commit. What another
// work may have written since is not looked at, nor what the host may have told of by an event.
static void check_commit(const watched_t *w, size_t at, const snapshot_t *snapshot, access_t access)
{
    unsigned writer = cell_at(&w->cells, at)->writer;
    if (!snapshot || snapshot->bytes[at] == w->buffer->host[at] || writer & atomic_bit) return;
    if (writer && !work_is_older(writer, snapshot->batch)) return;
    if (batch_is_told(snapshot->batch)) return;
    report(w, at, work_current(), words[access], "the host",
           "has written since the command buffer was committed");
}

static void look(const watched_t *w, size_t at, access_t access)
{
    value_t *value = &w->values[at];
    char now = w->buffer->host[at];
    if (value->is && value->byte != now) check_host(w, at);
    check_commit(w, at, snapshot_of(w), access);
    *value = (value_t){now, access == READS};
}

static void touch(const watched_t *w, size_t at, cell_t *cell, access_t access)
{
    unsigned self = work_current(), last = cell->reader & ~atomic_bit;
    bool atomic = access >= READS_ATOMIC, writes = access == WRITES || access == WRITES_ATOMIC;
    if ((cell->writer & ~atomic_bit) == self) return;
    if (!writes && last == self && (atomic || last == cell->reader)) return;
    if (w->values) look(w, at, access);
    check(w, at, cell->writer, true, access);
    if (writes) {
        check(w, at, cell->reader, false, access);
        check(w, at, cell->other, false, access);
        *cell = (cell_t){self | (atomic ? atomic_bit : 0), 0, 0};
    } else {
        bool plain = atomic && last == cell->reader;
        if (last && (plain || !work_is_before(last))) cell->other = cell->reader;
        cell->reader = self | (atomic ? atomic_bit : 0);
    }
}

// Bytes whose values are looked at are touched one by one.
static void touch_all(watched_t *w, size_t begin, size_t end, access_t access)
{
    size_t same;
    if (end > w->buffer->length) end = w->buffer->length;
    for (size_t at = begin; at < end; at += same)
        touch(w, at, cell_need(&w->cells, at, w->values ? at + 1 : end, &same), access);
}

static void touch_now(const char *at, size_t size, access_t access)
{
    watched_t *w = find(at);
    size_t begin = w ? (size_t)(at - w->buffer->gpu) : 0;
    if (w) touch_all(w, begin, begin + size, access);
}

void touches_settle(void)
{
    held_settle_all(touch_now);
}

// A line that a buffer has all of, or nothing of. Not where the host's writes are looked for: these
// must be found before the work writes.
static bool can_hold(const watched_t *w, const char *at)
{
    const char *begin = at - (uintptr_t)at % HELD_LINE, *last = begin + HELD_LINE - 1;
    if (find(begin) != w || find(last) != w) return false;
    return !w || (!w->values && w->buffer->storage != STORAGE_MANAGED);
}

void hazard_touch(const void *address, size_t size, access_t access)
{
    const char *at = address;
    if (!work_current() || held_add(at, size, access) || grid_is_own(at)) return;
    hazard_lock();
    bool holds = access <= WRITES && can_hold(find(at), at);
    if (holds) held_open(at, touch_now);
    holds = holds && held_add(at, size, access); // it may reach into the next line
    if (!holds) held_settle(at, touch_now);      // plain accesses of the same bytes came first
    if (!holds) touch_now(at, size, access);
    hazard_unlock();
}

void hazard_flush(const buffer_t *buffer, range_t range)
{
    if (!settings()->hazards) return;
    hazard_lock();
    const watched_t *w = find(buffer->gpu);
    for (size_t i = range.location; w && i < range.location + range.length; i++)
        if (buffer->gpu[i] != buffer->host[i]) check_host(w, i);
    hazard_unlock();
}

void hazard_uses(unsigned batch, const void *object)
{
    const buffer_t *buffer = object;
    if (!batch || buffer->object.isa != &MTLBuffer) return;
    hazard_lock();
    watched_t *w = find(buffer->gpu);
    if (w && w->buffer == buffer && w->values && w->batch != batch) {
        snapshot_t *made = make(sizeof *made);
        *made = (snapshot_t){snapshots, batch, buffer, NULL};
        snapshots = made;
        w->batch = batch;
    }
    hazard_unlock();
}

void watch_begin(unsigned batch)
{
    for (snapshot_t *at = snapshots; at; at = at->next) {
        if (at->batch != batch || !at->buffer) continue;
        at->bytes = make(at->buffer->length);
        memcpy(at->bytes, at->buffer->host, at->buffer->length);
    }
}

static const watched_t *watched_by(const snapshot_t *snapshot, unsigned batch)
{
    return snapshot->batch == batch && snapshot->buffer ? find(snapshot->buffer->gpu) : NULL;
}

static bool is_of(unsigned work, unsigned batch)
{
    return work && !(work & atomic_bit) && work_batch(work) == batch;
}

// What the works of the command buffer have left is what they leave to others.
void watch_settle(unsigned batch)
{
    for (const snapshot_t *s = snapshots; s; s = s->next) {
        const watched_t *w = watched_by(s, batch);
        if (!w) continue;
        for (size_t i = 0; (i = cells_next(&w->cells, i)) < w->buffer->length; i++)
            if (is_of(cell_at(&w->cells, i)->writer, batch) && !w->values[i].is)
                w->values[i] = (value_t){w->buffer->host[i], true};
    }
}

void watch_check(unsigned batch)
{
    for (const snapshot_t *s = snapshots; s; s = s->next) {
        const watched_t *w = watched_by(s, batch);
        if (!w) continue;
        for (size_t i = 0; (i = cells_next(&w->cells, i)) < w->buffer->length; i++) {
            const cell_t *cell = cell_at(&w->cells, i);
            const value_t *value = &w->values[i];
            bool touched = is_of(cell->writer, batch) || is_of(cell->reader, batch);
            if (touched && value->is && value->byte != w->buffer->host[i]) check_host(w, i);
        }
    }
}

void watch_end(unsigned batch)
{
    for (snapshot_t **link = &snapshots; *link;) {
        snapshot_t *at = *link;
        if (at->batch != batch) {
            link = &at->next;
            continue;
        }
        *link = at->next;
        free(at->bytes);
        free(at);
    }
}

// The last atomic operation of a work on this thread: metal_stdlib tells of it, and then clang of
// the load or the store in it.
static PER_THREAD struct {
    const void *at;
    unsigned work;
} told;

static void tell(const void *at, size_t size, access_t access)
{
    bool again = at == told.at && told.work == work_current();
    told.at = NULL;
    if (!again) hazard_touch(at, size, access);
}

// What kernels call before each load and store: clang has them do it (-fsanitize-coverage), by
// names that compile.c has the linker change, and before atomic operations metal_stdlib.
#define TELLS(size)                                                                                \
    EXPORT void __wrap___sanitizer_cov_load##size(const void *at);                                 \
    void __wrap___sanitizer_cov_load##size(const void *at)                                         \
    {                                                                                              \
        tell(at, size, READS);                                                                     \
    }                                                                                              \
    EXPORT void __wrap___sanitizer_cov_store##size(const void *at);                                \
    void __wrap___sanitizer_cov_store##size(const void *at)                                        \
    {                                                                                              \
        tell(at, size, WRITES);                                                                    \
    }
TELLS(1)
TELLS(2)
TELLS(4)
TELLS(8)
TELLS(16)

// In the place of LLVM's own: the last argument tells whether it is volatile.
EXPORT void simMetalSet(void *to, uint8_t value, uint64_t size, bool always);
void simMetalSet(void *to, uint8_t value, uint64_t size, bool always)
{
    hazard_touch(to, size, WRITES);
    memset(to, value, size);
}

EXPORT void simMetalMove(void *to, const void *from, uint64_t size, bool always);
void simMetalMove(void *to, const void *from, uint64_t size, bool always)
{
    hazard_touch(from, size, READS);
    hazard_touch(to, size, WRITES);
    memmove(to, from, size);
}

EXPORT void simMetalCopy(void *to, const void *from, uint64_t size, bool always);
void simMetalCopy(void *to, const void *from, uint64_t size, bool always)
{
    simMetalMove(to, from, size, always);
}

EXPORT void simMetalAtomic(uint64_t at, uint32_t size, uint32_t writes);
void simMetalAtomic(uint64_t at, uint32_t size, uint32_t writes)
{
    told.at = (const void *)(uintptr_t)at;
    told.work = work_current();
    hazard_touch(told.at, size, writes ? WRITES_ATOMIC : READS_ATOMIC);
}
