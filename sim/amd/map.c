// SPDX-License-Identifier: Apache-2.0
#include "amd/map.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

// Which pieces of a span are filled.
enum { PIECE = 256 << 10 };
struct fresh {
    uint8_t value;
    size_t count;
    bool filled[];
};

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_mutex_t fill_lock = PTHREAD_MUTEX_INITIALIZER; // of all pieces; inside of the other
static span_t *spans;                                         // sorted by base, disjoint
static size_t span_count, span_room;
static uint64_t generation; // written under the lock, read without
static void (*_Atomic on_removal)(uint64_t base);

// The index of the first span that ends after the address.
static size_t span_index(uint64_t address)
{
    size_t low = 0, high = span_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (spans[middle].base + spans[middle].size <= address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static span_t *span_at(uint64_t base)
{
    size_t index = span_index(base);
    return index < span_count && spans[index].base == base ? &spans[index] : NULL;
}

// Release: pairs with map_generation; who sees the new number looks the span up anew.
static void generation_bump(void)
{
    __atomic_fetch_add(&generation, 1, __ATOMIC_RELEASE);
}

void map_on_removal(void (*leaves)(uint64_t base))
{
    on_removal = leaves;
}

static void leaving(uint64_t base)
{
    void (*leaves)(uint64_t) = on_removal;
    if (leaves) leaves(base);
}

// The first span that ends after an address.
static bool map_next(uint64_t address, span_t *out_span)
{
    pthread_rwlock_rdlock(&lock);
    size_t index = span_index(address);
    bool found = index < span_count;
    if (found) *out_span = spans[index];
    pthread_rwlock_unlock(&lock);
    return found;
}

// Room for so many spans; the lock is held.
static bool room_make(size_t count)
{
    size_t room = span_room ? span_room : 64;
    while (room < count) room *= 2;
    span_t *grown = room == span_room ? spans : realloc(spans, room * sizeof *grown);
    if (!grown) return false;
    spans = grown;
    span_room = room;
    return true;
}

// Puts spans in the place of those from first to before end; there is room.
static void spans_put(size_t first, size_t end, const span_t *put, size_t count)
{
    memmove(spans + first + count, spans + end, (span_count - end) * sizeof *spans);
    if (count) memcpy(spans + first, put, count * sizeof *spans);
    span_count += count - (end - first);
    generation_bump();
}

bool map_add(const span_t *span)
{
    pthread_rwlock_wrlock(&lock);
    size_t index = span_index(span->base);
    bool fits = span->size && (index == span_count || span->base + span->size <= spans[index].base);
    fits = fits && room_make(span_count + 1);
    if (fits) spans_put(index, index, span, 1);
    pthread_rwlock_unlock(&lock);
    return fits;
}

// The index behind the spans that begin before an address; all from first on are to be shared ones,
// else false.
static bool shared_end(size_t first, uint64_t address, size_t *out_end)
{
    size_t end = first;
    while (end < span_count && spans[end].base < address && spans[end].shared) end++;
    *out_end = end;
    return end == span_count || spans[end].base >= address;
}

bool map_shareable(uint64_t base, uint64_t size)
{
    size_t end;
    pthread_rwlock_rdlock(&lock);
    bool free = shared_end(span_index(base), base + size, &end);
    pthread_rwlock_unlock(&lock);
    return free;
}

bool map_share(uint64_t base, uint64_t size, const span_t *put, size_t count)
{
    size_t end;
    uint64_t at = base;
    span_t span;
    while (at - base < size && map_next(at, &span) && span.base - base < size) {
        leaving(span.base);
        at = span.base + span.size;
    }
    pthread_rwlock_wrlock(&lock);
    size_t first = span_index(base);
    bool done = shared_end(first, base + size, &end) && room_make(span_count + count);
    if (done) spans_put(first, end, put, count);
    pthread_rwlock_unlock(&lock);
    return done;
}

bool map_remove(uint64_t base)
{
    leaving(base);
    pthread_rwlock_wrlock(&lock);
    span_t *span = span_at(base);
    if (span) {
        free(span->fresh);
        span_count--;
        memmove(span, span + 1, (span_count - (size_t)(span - spans)) * sizeof *spans);
        generation_bump();
    }
    pthread_rwlock_unlock(&lock);
    return span != NULL;
}

// A span whose bytes are in a range; false when there is none.
static bool span_within(const uint8_t *host, uint64_t size, uint64_t *out_base)
{
    bool found = false;
    pthread_rwlock_rdlock(&lock);
    for (size_t k = 0; k < span_count && !found; k++) {
        found = (uintptr_t)spans[k].host - (uintptr_t)host < size;
        if (found) *out_base = spans[k].base;
    }
    pthread_rwlock_unlock(&lock);
    return found;
}

void map_drop(const uint8_t *host, uint64_t size)
{
    uint64_t base = 0;
    while (span_within(host, size, &base)) map_remove(base);
}

void map_hold(void)
{
    pthread_rwlock_wrlock(&lock);
}

void map_release(bool in_child)
{
    if (in_child) {
        pthread_rwlock_init(&lock, NULL);
    } else {
        pthread_rwlock_unlock(&lock);
    }
}

void map_forget(void)
{
    pthread_rwlock_wrlock(&lock);
    while (span_count) free(spans[--span_count].fresh);
    generation_bump();
    pthread_rwlock_unlock(&lock);
}

bool map_allow(uint64_t base, uint64_t nodes)
{
    span_t old;
    if (map_find(base, 0, &old) && old.nodes & ~nodes) leaving(base);
    pthread_rwlock_wrlock(&lock);
    span_t *span = span_at(base);
    if (span) {
        span->nodes = nodes;
        generation_bump();
    }
    pthread_rwlock_unlock(&lock);
    return span != NULL;
}

bool map_coarse(uint64_t base, unsigned home)
{
    pthread_rwlock_wrlock(&lock);
    span_t *span = span_at(base);
    if (span) {
        span->coarse = true;
        span->home = home;
        generation_bump();
    }
    pthread_rwlock_unlock(&lock);
    return span != NULL;
}

bool map_fresh(uint64_t base, uint8_t value)
{
    pthread_rwlock_wrlock(&lock);
    span_t *span = span_at(base);
    size_t count = span ? (span->size + PIECE - 1) / PIECE : 0;
    struct fresh *fresh = span ? calloc(1, sizeof *fresh + count * sizeof *fresh->filled) : NULL;
    if (fresh) {
        fresh->value = value;
        fresh->count = count;
        span->fresh = fresh;
        generation_bump();
    }
    pthread_rwlock_unlock(&lock);
    return fresh != NULL;
}

// The pieces from first to last; the lock of pieces is held.
static void pieces_fill(const span_t *span, size_t first, size_t last)
{
    for (size_t k = first; k <= last; k++) {
        uint64_t at = (uint64_t)k * PIECE, left = span->size - at;
        if (span->fresh->filled[k]) continue;
        memset(span->host + at, span->fresh->value, left < PIECE ? left : PIECE);
        span->fresh->filled[k] = true;
    }
}

// Fills bytes of a span, as far as they are in it, and makes it the filled part around them.
static void part_fill(span_t *span, uint64_t offset, uint64_t size)
{
    const struct fresh *fresh = span->fresh;
    if (size > span->size - offset) size = span->size - offset;
    size_t first = offset / PIECE, last = (offset + size - 1) / PIECE;
    pthread_mutex_lock(&fill_lock);
    pieces_fill(span, first, last);
    while (first > 0 && fresh->filled[first - 1]) first--;
    while (last + 1 < fresh->count && fresh->filled[last + 1]) last++;
    pthread_mutex_unlock(&fill_lock);
    uint64_t begin = (uint64_t)first * PIECE, end = (uint64_t)(last + 1) * PIECE;
    if (end > span->size) end = span->size;
    span->base += begin;
    span->host += begin;
    span->size = end - begin;
}

void map_fill(uint64_t base)
{
    span_t whole;
    if (map_find(base, 0, &whole) && whole.base == base) map_find(base, whole.size, &whole);
}

bool map_find(uint64_t address, uint64_t size, span_t *out_span)
{
    pthread_rwlock_rdlock(&lock);
    size_t index = span_index(address);
    bool found = index < span_count && spans[index].base <= address;
    if (found) *out_span = spans[index];
    if (found && size && out_span->fresh) part_fill(out_span, address - out_span->base, size);
    pthread_rwlock_unlock(&lock);
    return found;
}

// Acquire: pairs with generation_bump.
uint64_t map_generation(void)
{
    return __atomic_load_n(&generation, __ATOMIC_ACQUIRE);
}

void *map_bytes(uint64_t address, uint64_t size, unsigned node)
{
    span_t span;
    if (!map_find(address, size, &span) || !(span.nodes >> node & 1)) return NULL;
    uint64_t offset = address - span.base;
    return size <= span.size - offset ? span.host + offset : NULL;
}
