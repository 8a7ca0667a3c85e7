// SPDX-License-Identifier: Apache-2.0
// Tables by the handles of signals. Handles are used anew by the runtime, so they grow no larger
// than the largest number of signals that there were at a time. Each has a lock of its own, so that
// threads that dispatch at once seldom meet.
#include "capture/hsa/times.h"

#include <pthread.h>

#include "base/memory.h"

typedef struct entry_t {
    hsa_signal_t own;       // 0: free
    const flight_t *flight; // NULL: it has ended, or the signal is not one of a dispatch
    bool has_time;
    hsa_time_t time;
} entry_t;

typedef struct table_t {
    _Alignas(64) pthread_mutex_t lock; // for the rest
    entry_t *entries;                  // owned
    uint32_t count, shift;
} table_t;

enum { FIRST_SHIFT = 6, TABLES_SHIFT = 4, TABLES = 1 << TABLES_SHIFT };

#define FREE {.lock = PTHREAD_MUTEX_INITIALIZER}
static table_t tables[TABLES] = {FREE, FREE, FREE, FREE, FREE, FREE, FREE, FREE,
                                 FREE, FREE, FREE, FREE, FREE, FREE, FREE, FREE};

static uint64_t hash_of(hsa_signal_t own)
{
    return own * 0x9e3779b97f4a7c15u;
}

static table_t *table_enter(hsa_signal_t own)
{
    table_t *table = &tables[hash_of(own) >> (64 - TABLES_SHIFT)];
    pthread_mutex_lock(&table->lock);
    return table;
}

static void table_leave(table_t *table)
{
    pthread_mutex_unlock(&table->lock);
}

static entry_t *entry_at(const table_t *table, hsa_signal_t own)
{
    uint64_t mask = ((uint64_t)1 << table->shift) - 1;
    uint64_t i = (hash_of(own) << TABLES_SHIFT) >> (64 - table->shift);
    while (table->entries[i].own && table->entries[i].own != own) i = (i + 1) & mask;
    return &table->entries[i];
}

// The entry of a signal; NULL: it has none.
static entry_t *entry_find(const table_t *table, hsa_signal_t own)
{
    if (!table->entries) return NULL;
    entry_t *entry = entry_at(table, own);
    return entry->own ? entry : NULL;
}

// Makes room for one more.
static bool entries_grow(table_t *table)
{
    if (table->entries && table->count < (uint32_t)1 << (table->shift - 1)) return true;
    table_t old = *table;
    uint32_t shift = old.entries ? old.shift + 1 : FIRST_SHIFT;
    entry_t *grown = mem_zalloc(sizeof *grown << shift);
    if (!grown) return false;
    table->entries = grown;
    table->shift = shift;
    for (uint64_t i = 0; old.entries && i < (uint64_t)1 << old.shift; i++)
        if (old.entries[i].own) *entry_at(table, old.entries[i].own) = old.entries[i];
    mem_free(old.entries);
    return true;
}

bool times_expect(hsa_signal_t own, const flight_t *flight)
{
    table_t *table = table_enter(own);
    bool room = entries_grow(table);
    if (room) {
        entry_t *entry = entry_at(table, own);
        table->count += !entry->own;
        *entry = (entry_t){.own = own, .flight = flight};
    }
    table_leave(table);
    return room;
}

void times_settle(hsa_signal_t own, const flight_t *flight, hsa_time_t time)
{
    table_t *table = table_enter(own);
    entry_t *entry = entry_find(table, own);
    if (entry && entry->flight == flight)
        *entry = (entry_t){.own = own, .has_time = true, .time = time};
    table_leave(table);
}

void times_forget(hsa_signal_t own, const flight_t *flight)
{
    table_t *table = table_enter(own);
    entry_t *entry = entry_find(table, own);
    if (entry && (!flight || entry->flight == flight)) *entry = (entry_t){.own = own};
    table_leave(table);
}

void times_child(void)
{
    for (int i = 0; i < TABLES; i++) {
        tables[i] = (table_t){0};
        pthread_mutex_init(&tables[i].lock, NULL);
    }
}

hsa_status_t times_get(hsa_agent_t agent, hsa_signal_t signal, hsa_time_t *time)
{
    hsa_status_t status = 0;
    table_t *table = table_enter(signal);
    entry_t *entry = entry_find(table, signal);
    bool known = entry && entry->has_time;
    if (known)
        *time = entry->time;
    else
        // Under the lock: until then the flight keeps its signal.
        status = hsa.profiling_get_dispatch_time(
            agent, entry && entry->flight ? entry->flight->signal : signal, time);
    table_leave(table);
    return status;
}
