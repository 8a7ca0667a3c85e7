// SPDX-License-Identifier: Apache-2.0
#include "capture/cuda/calls.h"

#include <stdio.h>
#include <string.h>

#include "base/thread.h"
#include "capture/cuda/cupti.h"
#include "capture/mode.h"
#include "trace/name.h"
#include "trace/trace.h"

enum { FUNCTIONS = 1200 }; // of a domain, more than there are

// The call that a thread is in, which CUDA may make others in.
typedef struct call_t {
    uint64_t start;
    uint32_t correlation, function; // and its domain
    uint32_t turn; // of `turns`, when it began; 0: there is none; LEFT_OUT: of this thread
} call_t;
enum { LEFT_OUT = UINT32_MAX };
static THREAD_LOCAL call_t current;

// How often recording was started. The end of a call is not told if recording was stopped in it, so
// that a call of an earlier turn is over.
static _Atomic uint32_t turns;

static _Atomic uint32_t names[2][FUNCTIONS]; // of the trace
static _Atomic uint32_t domains[2];

static const char *function_find(cupti_domain_t domain, uint32_t function)
{
    const char *name = NULL;
    return cupti.callback_name(domain, function, &name) == CUPTI_SUCCESS ? name : NULL;
}

// The runtime's functions have the version of CUDA that they came with in their names here.
static uint32_t name_without_version(const char *name)
{
    char text[128];
    snprintf(text, sizeof text, "%s", name);
    char *version = strrchr(text, '_');
    if (version && version[1] == 'v' && version[2] >= '0' && version[2] <= '9' &&
        strlen(version) >= 6)
        *version = 0;
    return trace_name(text);
}

static uint32_t function_name(cupti_domain_t domain, uint32_t function)
{
    bool runtime = domain == CUPTI_RUNTIME_API, fits = function < FUNCTIONS;
    uint32_t known = fits ? atomic_load(&names[runtime][function]) : 0;
    if (known) return known;
    const char *name = function_find(domain, function);
    if (!name) name = runtime ? "a call of the runtime" : "a call of the driver";
    known = name_without_version(name);
    if (fits) atomic_store(&names[runtime][function], known);
    return known;
}

static void call_end(cupti_domain_t domain, uint32_t function, const cupti_call_t *call)
{
    bool runtime = domain == CUPTI_RUNTIME_API;
    uint64_t end = trace_now();
    uint32_t name = function_name(domain, function);
    uint32_t of = trace_name_at(&domains[runtime], runtime ? "cuda runtime" : "cuda driver");
    trace_record_t *record = trace_take();
    if (!record) return;
    record->name = name;
    record->start = current.start;
    record->end = end;
    record->id = calls_number(call->correlation);
    record->a[0] = call->result ? (uint64_t)(uint32_t)*call->result : 0;
    record->a[2] = of;
    trace_put(record, TRACE_CALL);
}

// A function of either domain.
static uint32_t function_key(uint32_t domain, uint32_t function)
{
    return domain << 24 | function;
}

void calls_seen(void *user, uint32_t domain, uint32_t function, const cupti_call_t *call)
{
    (void)user;
    uint32_t turn = atomic_load_explicit(&turns, memory_order_relaxed); // any one will do
    if ((domain != CUPTI_RUNTIME_API && domain != CUPTI_DRIVER_API) || current.turn == LEFT_OUT)
        return;
    bool within = current.turn == turn;
    uint32_t key = function_key(domain, function);
    if (call->site == CUPTI_CALL_BEGINS && !within)
        current = (call_t){trace_now(), call->correlation, key, turn};
    // What CUDA calls of itself is a part of the call that it is in, and may have its number.
    bool mine = within && current.function == key && current.correlation == call->correlation;
    if (call->site != CUPTI_CALL_ENDS || !mine) return;
    call_end((cupti_domain_t)domain, function, call);
    current.turn = 0;
}

// Calls that only tell something are many and short: they are not recorded.
static bool function_tells(const char *name)
{
    static const char *const words[] = {
        "Get",    "Peek",    "IsCapturing", "Occupancy", "SetDevice",
        "CtxSet", "CtxPush", "CtxPop",      "Query",     "CallConfiguration"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strstr(name, words[i])) return true;
    return false;
}

// Each function by itself, so that CUPTI has nothing to do with the others.
static bool functions_set(void *subscriber, cupti_domain_t domain, bool on)
{
    bool any = false;
    for (uint32_t i = 1; i < FUNCTIONS; i++) {
        const char *name = function_find(domain, i);
        if (!name || (!capture_mode()->all_calls && function_tells(name))) continue;
        any |= cupti.enable_callback(on, subscriber, domain, i) == CUPTI_SUCCESS;
    }
    return any;
}

bool calls_set(void *subscriber, bool on)
{
    if (on) atomic_fetch_add(&turns, 1);
    bool any = functions_set(subscriber, CUPTI_RUNTIME_API, on);
    any |= functions_set(subscriber, CUPTI_DRIVER_API, on);
    return any;
}

void calls_leave_out(void)
{
    current.turn = LEFT_OUT;
}
