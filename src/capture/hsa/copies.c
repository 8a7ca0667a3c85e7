// SPDX-License-Identifier: Apache-2.0
#include "capture/hsa/copies.h"

#include "capture/call.h"
#include "capture/hsa/agents.h"
#include "capture/hsa/watch.h"

// Between what the copy is, by the numbers of GPUs; -1 is the host.
static trace_copy_t kind_of(int to, int from)
{
    if (to < 0) return from < 0 ? TRACE_COPY_HOST : TRACE_COPY_TO_HOST;
    if (from < 0) return TRACE_COPY_TO_DEVICE;
    return to == from ? TRACE_COPY_WITHIN : TRACE_COPY_ACROSS;
}

static watch_t *copy_add(hsa_signal_t signal, size_t size, trace_copy_t kind, hsa_agent_t gpu)
{
    if (!trace_is_on()) return NULL;
    work_t work = {.op = TRACE_OP_COPY,
                   .agent = gpu,
                   .queue = agents_copies(gpu),
                   .call = call_current(),
                   .submitted = trace_now(),
                   .size = size,
                   .kind = kind};
    return watch_add(&work, signal);
}

// Passes on whether the runtime took the copy.
static hsa_status_t copy_submitted(watch_t *watch, hsa_status_t status)
{
    if (status != 0) watch_cancel(watch);
    return status;
}

static watch_t *copy_between(hsa_agent_t to, hsa_agent_t from, size_t size, hsa_signal_t signal)
{
    int to_gpu = agents_gpu(to), from_gpu = agents_gpu(from);
    return copy_add(signal, size, kind_of(to_gpu, from_gpu), to_gpu < 0 ? from : to);
}

static HSA_FUNCTION(copy, HSA_COPY)
{
    watch_t *added = copy_between(to_agent, from_agent, size, signal);
    return copy_submitted(added, hsa.memory_async_copy(to, to_agent, from, from_agent, size,
                                                       wait_count, waits, signal));
}

static HSA_FUNCTION(copy_on_engine, HSA_COPY_ON_ENGINE)
{
    watch_t *added = copy_between(to_agent, from_agent, size, signal);
    return copy_submitted(added, hsa.memory_async_copy_on_engine(to, to_agent, from, from_agent,
                                                                 size, wait_count, waits, signal,
                                                                 engine, force));
}

// The direction is one of HSA_AMD_COPY_DIRECTION: 0 between host memory, 1 to the device, 2 to the
// host, 3 between devices.
static HSA_FUNCTION(copy_rect, HSA_COPY_RECT)
{
    static const trace_copy_t kinds[] = {TRACE_COPY_HOST, TRACE_COPY_TO_DEVICE, TRACE_COPY_TO_HOST,
                                         TRACE_COPY_WITHIN};
    size_t size = (size_t)range[0] * range[1] * range[2];
    watch_t *added = copy_add(signal, size, kinds[direction & 3], agent);
    return copy_submitted(added,
                          hsa.memory_async_copy_rect(to, to_offset, from, from_offset, range, agent,
                                                     direction, wait_count, waits, signal));
}

static hsa_status_t keep_enabled(bool on)
{
    (void)on;
    return hsa.profiling_async_copy_enable(true);
}

void copies_replace(hsa_functions_t *ours)
{
    if (hsa.profiling_async_copy_enable(true) != 0) return;
    ours->profiling_async_copy_enable = keep_enabled;
    ours->memory_async_copy = copy;
    ours->memory_async_copy_on_engine = copy_on_engine;
    ours->memory_async_copy_rect = copy_rect;
}
