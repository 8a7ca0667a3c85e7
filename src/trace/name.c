// SPDX-License-Identifier: Apache-2.0
// A table of hashes, in which a name's place is its number. Two texts with the same hash of 62 bits
// would have one name: of a million texts that is one chance in nine million.
#include "trace/name.h"

#include <stdbool.h>
#include <string.h>

#include "trace/trace.h"

enum {
    FOR_TEXTS = TRACE_NAMES / 4 * 3, // the rest is kept for other names
    // A table that is three quarters full has a free place among so many, but for one name in a
    // hundred million.
    TRIES = 64,
};

// 0: free; pages that are not used cost nothing. The lower bits are those of a state_t.
static _Atomic uint64_t table[TRACE_NAMES];
static _Atomic uint32_t used;

typedef enum state_t {
    WRITING,
    FAILED, // there was no room for the text; the next one that has it tries again
    WRITTEN,
    STATES,
} state_t;

// FNV-1a, with its bits mixed once more, since the lower ones choose the place.
static uint64_t text_hash(const char *text)
{
    uint64_t hash = 0xcbf29ce484222325u;
    for (; *text; text++) hash = (hash ^ (unsigned char)*text) * 0x100000001b3u;
    hash = (hash ^ hash >> 32) * 0x9e3779b97f4a7c15u;
    hash = (hash ^ hash >> 32) & ~(uint64_t)STATES;
    return hash ? hash : STATES + 1;
}

// relaxed, all: the hash and its state are all there is to see.
static bool place_change(uint32_t place, uint64_t from, uint64_t to)
{
    return atomic_compare_exchange_strong_explicit(&table[place], &from, to, memory_order_relaxed,
                                                   memory_order_relaxed);
}

// Finds the place of a name, or gives it one among `most`; *writes: the caller is to write the
// text. TRACE_NAMES: there is no room.
static uint32_t place_find(uint64_t hash, uint32_t most, bool *writes)
{
    *writes = false;
    for (uint32_t i = 0; i < TRIES; i++) {
        uint32_t place = (uint32_t)((hash >> 2) + i * (hash >> 32 | 1)) % TRACE_NAMES;
        uint64_t there = atomic_load_explicit(&table[place], memory_order_relaxed);
        if (!there) {
            if (atomic_load_explicit(&used, memory_order_relaxed) >= most) return TRACE_NAMES;
            *writes = place_change(place, 0, hash | WRITING);
            if (*writes) {
                atomic_fetch_add_explicit(&used, 1, memory_order_relaxed);
                return place;
            }
            there = atomic_load_explicit(&table[place], memory_order_relaxed);
        }
        if ((there & ~(uint64_t)STATES) != hash) continue;
        if (there == (hash | FAILED)) *writes = place_change(place, there, hash | WRITING);
        return place;
    }
    return TRACE_NAMES;
}

static bool name_write(uint32_t name, const char *text)
{
    size_t left = strlen(text) + 1;
    for (uint16_t part = 0; left; part++) {
        trace_record_t *record = trace_take_always();
        if (!record) return false;
        trace_name_part_t *into = (trace_name_part_t *)(void *)record;
        size_t size = left < TRACE_PART ? left : TRACE_PART;
        into->part = part;
        into->name = name;
        memcpy(into->text, text, size);
        text += size;
        left -= size;
        trace_put(record, TRACE_NAME);
    }
    return true;
}

static uint32_t name_find(const char *text, uint32_t most, bool *failed)
{
    bool writes;
    uint64_t hash = text_hash(text);
    uint32_t place = place_find(hash, most, &writes);
    *failed = place == TRACE_NAMES;
    if (*failed) {
        trace_lose();
        return 0;
    }
    if (writes) {
        *failed = !name_write(place + 1, text);
        place_change(place, hash | WRITING, hash | (*failed ? FAILED : WRITTEN));
    }
    return place + 1;
}

uint32_t trace_name(const char *text)
{
    bool failed;
    return name_find(text, TRACE_NAMES, &failed);
}

uint32_t trace_text(const char *text)
{
    bool failed;
    return name_find(text, FOR_TEXTS, &failed);
}

uint32_t trace_name_keep(_Atomic uint32_t *place, const char *text)
{
    bool failed;
    uint32_t name = name_find(text, TRACE_NAMES, &failed);
    // relaxed: all threads find the same number.
    if (!failed) atomic_store_explicit(place, name, memory_order_relaxed);
    return name;
}
