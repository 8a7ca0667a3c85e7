// SPDX-License-Identifier: Apache-2.0
// What the CUDA driver calls, in cuInit, of a library that CUDA_INJECTION64_PATH names.
#include "capture/cuda/tool.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/thread.h"
#include "capture/cuda/buffers.h"
#include "capture/cuda/calls.h"
#include "capture/cuda/cupti.h"
#include "capture/cuda/driver.h"
#include "capture/cuda/records.h"
#include "capture/cuda/streams.h"
#include "capture/library.h"
#include "capture/mode.h"
#include "trace/event.h"

__attribute__((visibility("default"))) int InitializeInjection(void);

enum { LOOK_NS = 50000000, FLUSH_NS = 500000000, PAIR_NS = 1000000000 };

static _Atomic bool loaded;
// Who looks at buffers. All that follows is under it.
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint32_t clock_number;
static uint64_t paired_ns; // 0: not yet
static bool enabled;
static void *subscriber;

bool cuda_is_recorded(void)
{
    return atomic_load(&loaded) || (trace_is_on() && capture_mode()->launches);
}

// Turns on, or off, what the mode wants. False if CUPTI refuses all of it.
static bool kinds_set(bool on)
{
    const capture_mode_t *mode = capture_mode();
    bool any = mode->calls && (on || enabled) && calls_set(subscriber, on);
    const struct {
        cupti_kind_t kind;
        bool wanted;
        const char *name;
    } kinds[] = {
        {CUPTI_KIND_KERNEL, mode->kernels, "kernels"},
        {CUPTI_KIND_COPY, mode->copies, "copies"},
        {CUPTI_KIND_PEER_COPY, mode->copies, "copies between devices"},
        {CUPTI_KIND_SET, mode->copies, "sets"},
        {CUPTI_KIND_MEMORY, mode->calls, "memory"},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (!kinds[i].wanted) continue;
        if (on)
            any |= cupti_check(cupti.enable(kinds[i].kind), kinds[i].name);
        else
            cupti.disable(kinds[i].kind);
    }
    enabled = on;
    return any || !on;
}

// CUPTI's clock and the host's at one moment: of some tries that which took least. Its clock is
// looked at only when there are records: earlier it may not have settled.
static void clock_pair(void)
{
    enum { TRIES = 32 };
    uint64_t least = UINT64_MAX, at = 0, told = 0;
    for (int i = 0; i < TRIES; i++) {
        uint64_t says = 0, before = keel_now_ns();
        if (cupti.timestamp(&says) != CUPTI_SUCCESS) return;
        uint64_t took = keel_now_ns() - before;
        if (took >= least) continue;
        least = took;
        at = before + took / 2;
        told = says;
    }
    trace_pair(clock_number, told, at, least / 2);
    paired_ns = at;
}

// Records what CUPTI has given back. Under the lock.
static void buffers_look(void)
{
    for (buffer_t *buffer; (buffer = buffers_take()); buffers_return(buffer)) {
        if (!paired_ns) streams_name_devices();
        if (!paired_ns || keel_now_ns() - paired_ns > PAIR_NS) clock_pair();
        records_add(buffer);
    }
}

// Nothing is asked of CUPTI once `finish` was here: it may be taken down.
static void look(bool flush)
{
    pthread_mutex_lock(&lock);
    if (atomic_load(&loaded)) {
        if (flush) cupti.flush(0);
        buffers_look();
        // What is stopped from outside costs nothing.
        if (enabled == trace_is_paused()) kinds_set(!enabled);
    }
    pthread_mutex_unlock(&lock);
}

static void *work(void *unused)
{
    uint64_t flushed = keel_now_ns();
    calls_leave_out();
    while (atomic_load(&loaded)) {
        buffers_wait(LOOK_NS);
        uint64_t now = keel_now_ns();
        bool flush = now - flushed > FLUSH_NS || enabled == trace_is_paused();
        look(flush);
        if (flush) flushed = now;
    }
    return unused;
}

// Before libraries are taken down.
static void finish(void)
{
    size_t dropped = 0;
    if (!atomic_exchange(&loaded, false)) return;
    pthread_mutex_lock(&lock);
    cupti.flush(CUPTI_FLUSH_FORCED);
    buffers_look();
    // What no buffer has told of.
    if (cupti.dropped(NULL, 0, &dropped) == CUPTI_SUCCESS && dropped) trace_lose_many(dropped);
    if (paired_ns) clock_pair();
    pthread_mutex_unlock(&lock);
}

// The child of a fork cannot use CUDA if its parent did, and what is in flight is its parent's.
static void forget(void)
{
    atomic_store(&loaded, false);
    lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    buffers_forget();
}

static bool tool_start(void)
{
    pthread_t thread;
    int result = cupti.subscribe(&subscriber, calls_seen, NULL);
    if (result == CUPTI_TAKEN) {
        log_say(KEEL_LOG_WARNING, "CUDA is not traced: another profiler of this process has CUPTI, "
                                  "which serves one at a time");
        return false;
    }
    if (!cupti_check(result, "cuptiSubscribe") ||
        !cupti_check(cupti.register_callbacks(buffers_request, buffers_complete),
                     "cuptiActivityRegisterCallbacks"))
        return false;
    clock_number = trace_clock_make();
    records_begin(clock_number);
    if (!trace_is_paused() && !kinds_set(true)) return false; // Keel's own times are recorded then
    atomic_store(&loaded, true);
    int error = thread_start(&thread, "keel-trace", work, NULL);
    if (error) {
        log_say(KEEL_LOG_WARNING, "CUDA is not traced: no thread: %s", strerror(error));
        atomic_store(&loaded, false);
        kinds_set(false);
        return false;
    }
    pthread_detach(thread);
    return true;
}

// Launches are counted by functions of ours, which the program must call.
static void launches_check(void)
{
    dlsym_find();
    void *called = dlsym_real ? dlsym_real(RTLD_DEFAULT, cuda_names[CUDA_cuLaunchKernel]) : NULL;
    if ((cuda_fn)called != cuda_ours[CUDA_cuLaunchKernel])
        log_say(KEEL_LOG_WARNING, "CUDA is not traced: in the mode lite libkeeltrace.so must be in "
                                  "LD_PRELOAD");
}

// The driver does not care what it returns: 1 is success.
int InitializeInjection(void)
{
    static _Atomic bool again;
    if (!trace_is_on() || atomic_exchange(&again, true)) return 1;
    if (capture_mode()->launches) {
        launches_check();
        return 1;
    }
    if (!cupti_open() || !tool_start()) return 1;
    atexit(finish);
    pthread_atfork(NULL, NULL, forget);
    return 1;
}
