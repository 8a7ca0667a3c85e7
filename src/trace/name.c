// SPDX-License-Identifier: Apache-2.0
// A table of hashes, in which a name's place is its number. Two texts with the same hash of 64 bits
// would have one name: of a million texts that is one chance in 37 million.
#include "trace/name.h"

#include <stdbool.h>
#include <string.h>

#include "trace/trace.h"

enum { PLACES = 1 << 17 };
static _Atomic uint64_t table[PLACES]; // 0: free; pages that are not used cost nothing

// FNV-1a, with its bits mixed once more, since the lower ones choose the place.
static uint64_t text_hash(const char *text)
{
    uint64_t hash = 0xcbf29ce484222325u;
    for (; *text; text++) hash = (hash ^ (unsigned char)*text) * 0x100000001b3u;
    hash = (hash ^ hash >> 32) * 0x9e3779b97f4a7c15u;
    hash ^= hash >> 32;
    return hash ? hash : 1;
}

// Finds the place of a name, or gives it one: then *is_new. PLACES: the table is full.
static uint32_t place_find(uint64_t hash, bool *is_new)
{
    *is_new = false;
    for (uint32_t i = 0; i < PLACES; i++) {
        uint32_t place = (uint32_t)(hash + i) % PLACES;
        // relaxed: the hash is all there is to see.
        uint64_t there = atomic_load_explicit(&table[place], memory_order_relaxed);
        if (!there &&
            atomic_compare_exchange_strong_explicit(&table[place], &there, hash,
                                                    memory_order_relaxed, memory_order_relaxed)) {
            *is_new = true;
            return place;
        }
        if (there == hash) return place;
    }
    return PLACES;
}

static void name_write(uint32_t name, const char *text)
{
    size_t left = strlen(text) + 1;
    for (uint16_t part = 0; left; part++) {
        trace_record_t *record = trace_take_always();
        if (!record) return;
        trace_name_part_t *into = (trace_name_part_t *)(void *)record;
        size_t size = left < TRACE_PART ? left : TRACE_PART;
        into->part = part;
        into->name = name;
        memcpy(into->text, text, size);
        text += size;
        left -= size;
        trace_put(record, TRACE_NAME);
    }
}

uint32_t trace_name(const char *text)
{
    bool is_new;
    uint32_t place = place_find(text_hash(text), &is_new);
    if (place == PLACES) return 0;
    if (is_new) name_write(place + 1, text);
    return place + 1;
}
