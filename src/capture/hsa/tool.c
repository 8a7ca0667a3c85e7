// SPDX-License-Identifier: Apache-2.0
// What ROCR calls of a library that HSA_TOOLS_LIB names.
#include "capture/hsa/tool.h"

#include <pthread.h>
#include <stdlib.h>

#include "capture/hip/reports.h"
#include "capture/hsa/agents.h"
#include "capture/hsa/clock.h"
#include "capture/hsa/collect.h"
#include "capture/hsa/copies.h"
#include "capture/hsa/flight.h"
#include "capture/hsa/kernels.h"
#include "capture/hsa/queue.h"
#include "capture/hsa/times.h"
#include "capture/hsa/watch.h"
#include "capture/mode.h"
#include "trace/trace.h"

__attribute__((visibility("default"))) bool
OnLoad(hsa_tables_t *tables, uint64_t version, uint64_t failed_count, const char *const *failed);
__attribute__((visibility("default"))) void OnUnload(void);

static _Atomic bool loaded;

bool hsa_is_recorded(void)
{
    return atomic_load(&loaded);
}

// Has everything recorded that is in flight, while the runtime is still there. Handlers that run
// after this one may launch more, which `shut_down` and OnUnload wait for.
static void finish(void)
{
    if (!atomic_load(&loaded)) return;
    queue_drain_all();
    watch_drain();
}

// ROCR 7 tells no times any more when it calls OnUnload. The program may have more references to
// the runtime, and go on after this one is gone.
static hsa_status_t shut_down(void)
{
    if (atomic_load(&loaded)) {
        queue_wait_all();
        (void)watch_wait();
    }
    return hsa.shut_down();
}

// The child of a fork has no GPU, and what is in flight is its parent's. Of its parent's threads it
// has one, so that no other gives back a lock.
static void forget(void)
{
    atomic_store(&loaded, false);
    watch_child();
    times_child();
    queue_child();
}

// The runtime closes a library that returns false, and this one may be in use otherwise.
bool OnLoad(hsa_tables_t *tables, uint64_t version, uint64_t failed_count,
            const char *const *failed)
{
    hsa_functions_t ours = {0};
    static bool again;
    if (!trace_is_on() || !table_read(tables)) return true;
    hsa_clock_read();
    agents_read();
    if (!collect_start(flight_collect, watch_collect)) return true;
    ours.shut_down = shut_down;
    ours.queue_create = queue_create;
    ours.queue_destroy = queue_destroy;
    ours.executable_freeze = kernels_freeze;
    ours.profiling_set_profiler_enabled = queue_set_profiler;
    ours.profiling_get_dispatch_time = times_get;
    if (capture_mode()->copies) {
        watch_replace(&ours);
        copies_replace(&ours);
    }
    table_replace(tables, &ours);
    atomic_store(&loaded, true);
    reports_ask(); // a HIP that uses the runtime is there by now
    // Most programs end without telling the runtime. This runs before libraries are taken down.
    if (!again) {
        atexit(finish);
        pthread_atfork(NULL, NULL, forget);
    }
    again = true;
    return true;
}

void OnUnload(void)
{
    finish();
    if (atomic_exchange(&loaded, false)) queue_forget_all();
}
