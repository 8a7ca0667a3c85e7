// SPDX-License-Identifier: Apache-2.0
// Open addressing. A table that is half full is copied into one of twice the size; threads that
// still look into the old one find what it had.
#include "capture/names.h"

#include "base/memory.h"
#include "capture/guard.h"
#include "trace/name.h"

typedef struct entry_t {
    _Atomic(const void *) address; // NULL: free
    _Atomic(const char *) text;
    _Atomic uint32_t number; // 0: to be made of the text
} entry_t;

typedef struct names_table_t {
    uint32_t count, shift; // 1 << shift entries
    entry_t entries[];
} names_table_t;

enum { FIRST_SHIFT = 8 };

static entry_t *entry_find(names_table_t *table, const void *address)
{
    uint64_t mask = ((uint64_t)1 << table->shift) - 1;
    uint64_t i = ((uint64_t)(uintptr_t)address * 0x9e3779b97f4a7c15u) >> (64 - table->shift);
    for (;; i = (i + 1) & mask) {
        // acquire: pairs with entry_write.
        const void *there = atomic_load_explicit(&table->entries[i].address, memory_order_acquire);
        if (!there || there == address) return &table->entries[i];
    }
}

static void entry_write(names_table_t *table, const void *address, const char *text,
                        uint32_t number)
{
    entry_t *entry = entry_find(table, address);
    if (!atomic_load_explicit(&entry->address, memory_order_relaxed)) table->count++;
    atomic_store_explicit(&entry->text, text, memory_order_relaxed);
    atomic_store_explicit(&entry->number, number, memory_order_relaxed);
    atomic_store_explicit(&entry->address, address, memory_order_release);
}

static names_table_t *table_make(uint32_t shift)
{
    names_table_t *table = mem_zalloc(sizeof *table + (sizeof *table->entries << shift));
    if (table) table->shift = shift;
    return table;
}

// The table, with room for one more; NULL: no memory.
static names_table_t *table_grow(names_t *names)
{
    names_table_t *old = atomic_load_explicit(&names->table, memory_order_relaxed);
    if (old && old->count < (uint32_t)1 << (old->shift - 1)) return old;
    names_table_t *table = table_make(old ? old->shift + 1 : FIRST_SHIFT);
    if (!table) return NULL;
    for (uint64_t i = 0; old && i < (uint64_t)1 << old->shift; i++) {
        entry_t *entry = &old->entries[i];
        const void *address = atomic_load_explicit(&entry->address, memory_order_relaxed);
        if (address) entry_write(table, address, entry->text, entry->number);
    }
    // release: pairs with names_get.
    atomic_store_explicit(&names->table, table, memory_order_release);
    return table;
}

void names_put(names_t *names, const void *address, const char *text, uint32_t number)
{
    if (!address) return;
    guard_enter();
    names_table_t *table = table_grow(names);
    if (table) entry_write(table, address, text, number);
    guard_leave();
}

uint32_t names_get(names_t *names, const void *address)
{
    names_table_t *table = atomic_load_explicit(&names->table, memory_order_acquire);
    if (!table || !address) return 0;
    entry_t *entry = entry_find(table, address);
    if (!atomic_load_explicit(&entry->address, memory_order_relaxed)) return 0;
    const char *text = atomic_load_explicit(&entry->text, memory_order_relaxed);
    return text ? trace_name_at(&entry->number, text)
                : atomic_load_explicit(&entry->number, memory_order_relaxed);
}
