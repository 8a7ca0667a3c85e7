// SPDX-License-Identifier: Apache-2.0
#include "cuda/call.h"

#include "cuda/capture.h"
#include "cuda/context.h"
#include "cuda/state.h"
#include "cuda/tool.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

static _Thread_local const char *name_now = "no call";
static _Thread_local bool is_forbidden;
static _Thread_local uint32_t correlation_now;

const char *call_name(void)
{
    return name_now;
}

uint32_t call_correlation(void)
{
    return correlation_now;
}

void call_forbid(bool forbidden)
{
    is_forbidden = forbidden;
}

// Functions carry the version of their signature at the end of their names; rules do not.
static bool names_match(const char *rule, const char *function)
{
    size_t length = strlen(rule);
    if (strncmp(rule, function, length) != 0) return false;
    const char *rest = function + length;
    return *rest == '\0' || (rest[0] == '_' && rest[1] == 'v' && strlen(rest) == 3);
}

static void tally(call_site_t *site)
{
    static size_t used;
    const settings_t *set = settings();
    if (site->count == 1 && used < set->tally_room) {
        site->tally = &set->counters->tallies[used++];
        snprintf(site->tally->symbol, sizeof site->tally->symbol, "%s", site->name);
    }
    if (site->tally) site->tally->calls = site->count;
}

// Whether a rule means this call: the `own`th of its function and the `any`th of all, 0 if it is
// not counted among those.
static bool strikes(const rule_t *rule, const call_site_t *site, uint64_t own, uint64_t any)
{
    bool is_any = rule->symbol[0] == '\0';
    if (is_any ? !any : !names_match(rule->symbol, site->name)) return false;
    uint64_t number = is_any ? any : own;
    return number == rule->number || (rule->onwards && number > rule->number);
}

// After these a context is of no more use; nor is it after an unknown error.
static bool is_final(CUresult code)
{
    switch (code) {
    case CUDA_ERROR_ECC_UNCORRECTABLE:
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_ASSERT:
    case CUDA_ERROR_UNKNOWN: return true;
    default: return code >= CUDA_ERROR_HARDWARE_STACK_ERROR && code <= CUDA_ERROR_LAUNCH_FAILED;
    }
}

// The code of the rule that strikes this call, or 0.
static CUresult injected(call_site_t *site, unsigned needs)
{
    const settings_t *set = settings();
    counters_t *counters = set->counters;
    uint64_t own = ++site->count, any = 0;
    tally(site);
    if (!(needs & CALL_UNCOUNTED)) any = __atomic_add_fetch(&counters->calls, 1, __ATOMIC_RELAXED);
    for (unsigned i = 0; i < set->rule_count; i++) {
        if (!strikes(&set->rules[i], site, own, any)) continue;
        __atomic_store_n(&counters->hit, 1, __ATOMIC_RELAXED);
        return set->rules[i].code;
    }
    if (set->lose.number && strikes(&set->lose, site, own, any)) {
        __atomic_store_n(&counters->hit, 1, __ATOMIC_RELAXED);
        devices_lose(set->lose.code);
    }
    return CUDA_SUCCESS;
}

static CUresult refusal(call_t *call, unsigned needs, CUstream stream)
{
    if (!(needs & CALL_BEFORE_INIT) && !state.initialised) return CUDA_ERROR_NOT_INITIALIZED;
    if (needs & CALL_BEFORE_INIT) return CUDA_SUCCESS;
    bool own = stream && stream != CU_STREAM_LEGACY && stream != CU_STREAM_PER_THREAD;
    if (own && !IS(stream, MAGIC_STREAM)) return CUDA_ERROR_INVALID_HANDLE;
    CUcontext context = call->context = own ? stream->context : context_current();
    if (needs & CALL_UNSAFE && capture_is_spoilt()) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    if (!(needs & CALL_CONTEXT)) return CUDA_SUCCESS;
    if (!context) return CUDA_ERROR_INVALID_CONTEXT;
    if (!context->alive) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    return context->noticed ? context->error : CUDA_SUCCESS;
}

static void watch_begin(call_t *call, const char *name)
{
    static _Atomic uint32_t calls;
    if (!tool_get()) return;
    call->name = name;
    call->start = clock_ns();
    call->correlation = correlation_now = atomic_fetch_add(&calls, 1) + 1;
    tool_get()->begin(
        &(sim_call_t){.name = name, .start = call->start, .correlation = call->correlation});
}

static void watch_end(const call_t *call)
{
    if (!call->name) return;
    tool_get()->call(&(sim_call_t){.name = call->name,
                                   .start = call->start,
                                   .end = clock_ns(),
                                   .correlation = call->correlation,
                                   .result = (int)call->result});
    correlation_now = 0;
}

call_t call_enter(call_site_t *site, unsigned needs, CUstream stream)
{
    call_t call = {.locked = true};
    watch_begin(&call, site->name);
    name_now = site->name;
    if (is_forbidden) {
        complain("%s: called by a host function, which may not call CUDA", site->name);
        return (call_t){.result = CUDA_ERROR_NOT_PERMITTED};
    }
    pthread_mutex_lock(&state.lock);
    if (settings()->log_calls) complain("call %s", site->name);
    CUresult failure = injected(site, needs), refused = refusal(&call, needs, stream);
    if (is_final(failure)) contexts_fail(call.context, failure);
    bool dead = call.context && call.context->alive && call.context->noticed;
    if (needs & CALL_RELEASE && (!refused || dead)) {
        call.late = failure ? failure : refused;
    } else {
        call.result = failure ? failure : refused;
    }
    return call;
}

// What threads are in calls on; with more of them than this the rest is not watched.
enum { USES_MAX = 64 };
static struct {
    const void *object;
    const char *name;
} uses[USES_MAX];
static pthread_mutex_t uses_lock = PTHREAD_MUTEX_INITIALIZER;

use_t use_begin(const void *object, const char *name)
{
    use_t use = {NULL, false};
    const char *other = NULL;
    if (!object) return use;
    pthread_mutex_lock(&uses_lock);
    int slot = -1;
    for (int i = 0; i < USES_MAX && !other; i++) {
        if (uses[i].object == object) other = uses[i].name;
        if (!uses[i].object && slot < 0) slot = i;
    }
    use.clashes = other != NULL;
    if (!other && slot >= 0) {
        uses[slot].object = use.object = object;
        uses[slot].name = name;
    }
    pthread_mutex_unlock(&uses_lock);
    if (other) {
        complain("%s: another thread is in %s with the same graph, and graphs are not safe to be "
                 "used by two threads at once",
                 name, other);
    } else {
        hold_back();
    }
    return use;
}

void use_end(use_t *use)
{
    if (!use->object) return;
    pthread_mutex_lock(&uses_lock);
    for (int i = 0; i < USES_MAX; i++) {
        if (uses[i].object == use->object) uses[i].object = NULL;
    }
    use->object = NULL;
    pthread_mutex_unlock(&uses_lock);
}

void call_leave(call_t *call)
{
    if (call->locked) pthread_mutex_unlock(&state.lock);
    watch_end(call);
}
