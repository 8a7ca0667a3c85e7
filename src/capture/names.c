// SPDX-License-Identifier: Apache-2.0
// Open addressing. A table that is a quarter full is copied into one of twice the size, so that few
// entries are looked at. Threads that still look into the old one find what it had.
#include "capture/names.h"

#include "base/memory.h"
#include "capture/guard.h"

enum { FIRST_SHIFT = 8 };

static void entry_write(names_table_t *table, const void *address, const char *text,
                        uint32_t number)
{
    names_entry_t *entry = names_find(table, address);
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
    if (old && old->count < (uint32_t)1 << (old->shift - 2)) return old;
    names_table_t *table = table_make(old ? old->shift + 1 : FIRST_SHIFT);
    if (!table) return NULL;
    for (uint64_t i = 0; old && i < (uint64_t)1 << old->shift; i++) {
        names_entry_t *entry = &old->entries[i];
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
