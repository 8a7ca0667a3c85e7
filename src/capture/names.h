// SPDX-License-Identifier: Apache-2.0
// Names of kernels by the address that a launch or a packet has: of a function of the host, of a
// runtime's object, or of the kernel on the device.
#ifndef KEEL_SRC_CAPTURE_NAMES_H_
#define KEEL_SRC_CAPTURE_NAMES_H_

#include <stdatomic.h>
#include <stdint.h>

#include "trace/name.h"

typedef struct names_entry_t {
    _Atomic(const void *) address; // NULL: free
    _Atomic(const char *) text;
    _Atomic uint32_t number; // 0: to be made of the text
} names_entry_t;

typedef struct names_table_t {
    uint32_t count, shift; // 1 << shift entries
    names_entry_t entries[];
} names_table_t;

// Zeroed, it is empty.
typedef struct names_t {
    _Atomic(names_table_t *) table; // NULL: empty; owned, and kept when a larger one is made
} names_t;

// The entry of an address, or a free one.
static inline names_entry_t *names_find(names_table_t *table, const void *address)
{
    uint64_t i = ((uint64_t)(uintptr_t)address * 0x9e3779b97f4a7c15u) >> (64 - table->shift);
    for (;; i = (i + 1) & (((uint64_t)1 << table->shift) - 1)) {
        // acquire: pairs with names_put.
        const void *there = atomic_load_explicit(&table->entries[i].address, memory_order_acquire);
        if (there == address || !there) return &table->entries[i];
    }
}

// Names an address, also anew. The text is borrowed for ever and becomes a name of the trace with
// its first use; or it is NULL and `number` is that of the name. Without memory there is no name
// then. Any thread.
void names_put(names_t *names, const void *address, const char *text, uint32_t number);

// The number of an address's name in the trace; 0: none. Takes no lock. Any thread.
static inline uint32_t names_get(names_t *names, const void *address)
{
    // acquire: pairs with names_put.
    names_table_t *table = atomic_load_explicit(&names->table, memory_order_acquire);
    if (!table) return 0;
    names_entry_t *entry = names_find(table, address); // a free one has neither
    uint32_t number = atomic_load_explicit(&entry->number, memory_order_relaxed);
    if (__builtin_expect(number != 0, 1)) return number;
    const char *text = atomic_load_explicit(&entry->text, memory_order_relaxed);
    return text ? trace_name_keep(&entry->number, text) : 0;
}

#endif
