// SPDX-License-Identifier: Apache-2.0
// Events: flags that threads wait on. Each has a mailbox, a word that device code may write its
// number to before it sends an interrupt.
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "amd/engine/engine.h"

// No thread sleeps longer at a time. An event that is set before a thread
// waits is taken by the first that does, as in the kernel driver, and the runtime has two threads
// that wait for the errors of queues: the second would sleep for ever. It looks at its signals
// again whenever a wait ends, for whatever reason.
enum { EVENT_MAX = 4096, SLEEP_MAX_MS = 20 };

// Setting an event wakes every thread that waits for it at that moment. It stays
// set, for the next thread, only if none waits, or until it is reset by hand: the runtime relies on
// two threads that wait for the same event both waking up.
typedef struct {
    HsaEvent event;
    bool used, manual, set;
    unsigned waiters;
    uint64_t activations;
} slot_t;

static slot_t slots[EVENT_MAX]; // by number; 0 is none
static uint64_t *mailboxes;     // one per slot, in memory of all nodes
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void events_init(void)
{
    enum { BYTES = EVENT_MAX * sizeof(uint64_t) };
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&changed, &attributes);
    pthread_condattr_destroy(&attributes);
    void *memory = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return;
    mailboxes = memory;
    map_add(&(span_t){
        .base = (uint64_t)(uintptr_t)memory, .size = BYTES, .host = memory, .nodes = gpu_nodes()});
}

HSAKMT_STATUS hsaKmtCreateEvent(HsaEventDescriptor *wanted, bool manual, bool set, HsaEvent **out)
{
    pthread_once(&once, events_init);
    if (!mailboxes) return HSAKMT_STATUS_NO_MEMORY;
    pthread_mutex_lock(&lock);
    unsigned id = 1;
    while (id < EVENT_MAX && slots[id].used) id++;
    if (id < EVENT_MAX) {
        slot_t *slot = &slots[id];
        // Waiters of the event that was here before may not have left yet.
        slot->used = true;
        slot->manual = manual;
        slot->set = set;
        memset(&slot->event, 0, sizeof slot->event);
        slot->event.EventId = id;
        slot->event.EventData.EventType = wanted->EventType;
        if (wanted->EventType == HSA_EVENTTYPE_SIGNAL) {
            slot->event.EventData.EventData.SyncVar = wanted->SyncVar;
        }
        slot->event.EventData.HWData1 = id;
        slot->event.EventData.HWData2 = (HSAuint64)(uintptr_t)&mailboxes[id];
        slot->event.EventData.HWData3 = id;
        *out = &slot->event;
    }
    pthread_mutex_unlock(&lock);
    return id < EVENT_MAX ? HSAKMT_STATUS_SUCCESS : HSAKMT_STATUS_OUT_OF_RESOURCES;
}

// The lock is held.
static void slot_set(slot_t *slot)
{
    if (!slot->used) return;
    slot->activations++;
    slot->set = slot->manual || slot->waiters == 0;
    pthread_cond_broadcast(&changed);
}

static void event_set(unsigned id)
{
    pthread_mutex_lock(&lock);
    slot_set(&slots[id]);
    pthread_mutex_unlock(&lock);
}

void event_interrupt(uint32_t id)
{
    pthread_once(&once, events_init);
    if (id > 0 && id < EVENT_MAX) event_set(id);
}

bool event_memory_fault(unsigned node, uint64_t address)
{
    bool told = false;
    pthread_mutex_lock(&lock);
    for (unsigned id = 1; id < EVENT_MAX; id++) {
        slot_t *slot = &slots[id];
        if (!slot->used || slot->event.EventData.EventType != HSA_EVENTTYPE_MEMORY) continue;
        HsaMemoryAccessFault *fault = &slot->event.EventData.EventData.MemoryAccessFault;
        *fault = (HsaMemoryAccessFault){.NodeId = node,
                                        .VirtualAddress = address & ~(uint64_t)4095,
                                        .Flags = HSA_EVENTID_MEMORY_FATAL_PROCESS};
        fault->Failure.NotPresent = 1;
        slot_set(slot);
        told = true;
    }
    pthread_mutex_unlock(&lock);
    return told;
}

HSAKMT_STATUS hsaKmtDestroyEvent(HsaEvent *event)
{
    if (!event) return HSAKMT_STATUS_INVALID_HANDLE;
    pthread_mutex_lock(&lock);
    slot_set(&slots[event->EventId]); // who still waits shall not wait for ever
    slots[event->EventId].used = false;
    pthread_mutex_unlock(&lock);
    return HSAKMT_STATUS_SUCCESS;
}

HSAKMT_STATUS hsaKmtSetEvent(HsaEvent *event)
{
    if (!event) return HSAKMT_STATUS_INVALID_HANDLE;
    event_set(event->EventId);
    return HSAKMT_STATUS_SUCCESS;
}

static struct timespec deadline_in(uint32_t milliseconds)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    time.tv_sec += milliseconds / 1000;
    time.tv_nsec += (long)(milliseconds % 1000) * 1000000;
    if (time.tv_nsec >= 1000000000) {
        time.tv_nsec -= 1000000000;
        time.tv_sec++;
    }
    return time;
}

static slot_t *slot_of(const HsaEvent *event)
{
    return event ? &slots[event->EventId] : NULL;
}

// Begins to wait: remembers how often each event was activated before. An event that is set counts
// as activated now, and is taken back unless it stays set.
static void wait_begin(HsaEvent **events, unsigned count, uint64_t *seen)
{
    for (unsigned k = 0; k < count; k++) {
        slot_t *slot = slot_of(events[k]);
        if (!slot) continue;
        slot->waiters++;
        seen[k] = slot->activations - (slot->set ? 1 : 0);
        if (!slot->manual) slot->set = false;
    }
}

static bool wait_over(HsaEvent **events, unsigned count, bool all, const uint64_t *seen)
{
    unsigned activated = 0;
    for (unsigned k = 0; k < count; k++) {
        const slot_t *slot = slot_of(events[k]);
        activated += slot && slot->activations != seen[k];
    }
    return all ? activated == count : activated > 0;
}

static void wait_end(HsaEvent **events, unsigned count)
{
    for (unsigned k = 0; k < count; k++) {
        slot_t *slot = slot_of(events[k]);
        if (slot) slot->waiters--;
    }
}

HSAKMT_STATUS hsaKmtWaitOnMultipleEvents(HsaEvent *events[], HSAuint32 count, bool all,
                                         HSAuint32 milliseconds)
{
    struct timespec deadline =
        deadline_in(milliseconds < SLEEP_MAX_MS ? milliseconds : SLEEP_MAX_MS);
    uint64_t *seen = calloc(count, sizeof *seen);
    int waited = 0;
    if (!seen) return HSAKMT_STATUS_NO_MEMORY;
    pthread_once(&once, events_init);
    pthread_mutex_lock(&lock);
    wait_begin(events, count, seen);
    while (!wait_over(events, count, all, seen) && waited != ETIMEDOUT) {
        waited = pthread_cond_timedwait(&changed, &lock, &deadline);
    }
    wait_end(events, count);
    pthread_mutex_unlock(&lock);
    free(seen);
    return waited == ETIMEDOUT ? HSAKMT_STATUS_WAIT_TIMEOUT : HSAKMT_STATUS_SUCCESS;
}

HSAKMT_STATUS hsaKmtWaitOnEvent(HsaEvent *event, HSAuint32 milliseconds)
{
    if (!event) return HSAKMT_STATUS_INVALID_HANDLE;
    return hsaKmtWaitOnMultipleEvents(&event, 1, false, milliseconds);
}
