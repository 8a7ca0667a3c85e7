// SPDX-License-Identifier: Apache-2.0
// A table by the handles of signals. Handles are used anew by the runtime, so it grows no larger
// than the largest number of signals that there were at a time.
#include "capture/hsa/times.h"

#include <pthread.h>

#include "base/memory.h"

typedef struct entry_t {
    hsa_signal_t own;       // 0: free
    const flight_t *flight; // NULL: it has ended, or the signal is not one of a dispatch
    bool has_time;
    hsa_time_t time;
} entry_t;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static entry_t *entries; // owned
static uint32_t count, shift;

enum { FIRST_SHIFT = 6 };

static entry_t *entry_at(hsa_signal_t own)
{
    uint64_t mask = ((uint64_t)1 << shift) - 1;
    uint64_t i = (own * 0x9e3779b97f4a7c15u) >> (64 - shift);
    while (entries[i].own && entries[i].own != own) i = (i + 1) & mask;
    return &entries[i];
}

// The entry of a signal; NULL: it has none.
static entry_t *entry_find(hsa_signal_t own)
{
    if (!entries) return NULL;
    entry_t *entry = entry_at(own);
    return entry->own ? entry : NULL;
}

// Makes room for one more.
static bool entries_grow(void)
{
    if (entries && count < (uint32_t)1 << (shift - 1)) return true;
    entry_t *old = entries;
    uint32_t old_shift = shift, new_shift = entries ? shift + 1 : FIRST_SHIFT;
    entry_t *grown = mem_zalloc(sizeof *grown << new_shift);
    if (!grown) return false;
    entries = grown;
    shift = new_shift;
    for (uint64_t i = 0; old && i < (uint64_t)1 << old_shift; i++)
        if (old[i].own) *entry_at(old[i].own) = old[i];
    mem_free(old);
    return true;
}

bool times_expect(hsa_signal_t own, const flight_t *flight)
{
    pthread_mutex_lock(&lock);
    bool room = entries_grow();
    if (room) {
        entry_t *entry = entry_at(own);
        count += !entry->own;
        *entry = (entry_t){.own = own, .flight = flight};
    }
    pthread_mutex_unlock(&lock);
    return room;
}

void times_settle(hsa_signal_t own, const flight_t *flight, hsa_time_t time)
{
    pthread_mutex_lock(&lock);
    entry_t *entry = entry_find(own);
    if (entry && entry->flight == flight)
        *entry = (entry_t){.own = own, .has_time = true, .time = time};
    pthread_mutex_unlock(&lock);
}

void times_forget(hsa_signal_t own, const flight_t *flight)
{
    pthread_mutex_lock(&lock);
    entry_t *entry = entry_find(own);
    if (entry && (!flight || entry->flight == flight)) *entry = (entry_t){.own = own};
    pthread_mutex_unlock(&lock);
}

hsa_status_t times_get(hsa_agent_t agent, hsa_signal_t signal, hsa_time_t *time)
{
    hsa_status_t status = 0;
    pthread_mutex_lock(&lock);
    entry_t *entry = entry_find(signal);
    bool known = entry && entry->has_time;
    if (known)
        *time = entry->time;
    else
        // Under the lock: until then the flight keeps its signal.
        status = hsa.profiling_get_dispatch_time(
            agent, entry && entry->flight ? entry->flight->signal : signal, time);
    pthread_mutex_unlock(&lock);
    return status;
}
