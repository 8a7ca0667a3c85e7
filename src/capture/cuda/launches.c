// SPDX-License-Identifier: Apache-2.0
// Each thread has a table of its own: open addressing, at most half full.
#include "capture/cuda/launches.h"

#include <pthread.h>
#include <string.h>

#include "base/memory.h"
#include "capture/cuda/driver.h"
#include "trace/name.h"
#include "trace/trace.h"

typedef struct counted_t {
    const void *kernel;     // NULL: free
    trace_record_t *record; // in the file, which stays mapped
} counted_t;

typedef struct launches_t {
    counted_t *places;     // owned; NULL: there is no table
    uint32_t count, shift; // 1 << shift places
    uint32_t turn;         // of `turns`, that the addresses are of
} launches_t;

enum { FIRST_SHIFT = 6 };
static THREAD_LOCAL launches_t mine;
static _Atomic uint32_t turns;
static pthread_key_t key; // whose destructor gives the table of a thread that ends back
static bool has_key;

static size_t places_size(const launches_t *launches)
{
    return sizeof *launches->places << launches->shift;
}

static counted_t *place_find(const launches_t *launches, const void *kernel)
{
    uint64_t mask = ((uint64_t)1 << launches->shift) - 1;
    uint64_t i = ((uint64_t)(uintptr_t)kernel * 0x9e3779b97f4a7c15u) >> (64 - launches->shift);
    while (launches->places[i].kernel && launches->places[i].kernel != kernel) i = (i + 1) & mask;
    return &launches->places[i];
}

static bool table_grow(launches_t *launches)
{
    launches_t more = *launches;
    more.shift = launches->places ? launches->shift + 1 : FIRST_SHIFT;
    more.places = mem_zalloc(places_size(&more));
    if (!more.places) return false;
    for (uint64_t i = 0; launches->places && i < (uint64_t)1 << launches->shift; i++) {
        counted_t counted = launches->places[i];
        if (counted.kernel) *place_find(&more, counted.kernel) = counted;
    }
    mem_free(launches->places);
    *launches = more;
    return true;
}

static void thread_end(void *argument)
{
    launches_t *launches = argument;
    mem_free(launches->places);
    *launches = (launches_t){0};
}

static trace_record_t *count_begin(void *kernel)
{
    uint32_t name = trace_name(cuda_kernel_name(kernel));
    trace_record_t *record = trace_take_always();
    if (!record) return NULL; // it is counted as lost
    record->name = name;
    record->start = record->end = trace_now();
    record->a[0] = 1;
    trace_put(record, TRACE_LAUNCHES);
    return record;
}

// The first launch of a kernel by the thread.
__attribute__((noinline)) static void launches_begin(launches_t *launches, void *kernel)
{
    bool full = !launches->places || launches->count >= (uint32_t)1 << (launches->shift - 1);
    if (!has_key || (full && !table_grow(launches)) || pthread_setspecific(key, launches) != 0) {
        trace_lose_many(1);
        return;
    }
    trace_record_t *record = count_begin(kernel);
    if (!record) return;
    *place_find(launches, kernel) = (counted_t){kernel, record};
    launches->count++;
}

void launches_add(void *kernel)
{
    launches_t *launches = &mine;
    if (!kernel || trace_is_paused()) return;
    // relaxed: who launches a kernel knows by itself that it is there.
    uint32_t turn = atomic_load_explicit(&turns, memory_order_relaxed);
    if (__builtin_expect(launches->turn != turn, 0)) {
        if (launches->places) memset(launches->places, 0, places_size(launches));
        launches->count = 0;
        launches->turn = turn;
    }
    counted_t *counted = launches->places ? place_find(launches, kernel) : NULL;
    if (__builtin_expect(counted && counted->kernel, 1))
        counted->record->a[0]++;
    else
        launches_begin(launches, kernel);
}

void launches_forget(void)
{
    atomic_fetch_add_explicit(&turns, 1, memory_order_relaxed);
}

// The child of a fork has a file of its own.
__attribute__((constructor)) static void launches_load(void)
{
    has_key = pthread_key_create(&key, thread_end) == 0;
    pthread_atfork(NULL, NULL, launches_forget);
}
