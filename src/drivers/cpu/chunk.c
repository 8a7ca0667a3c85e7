// SPDX-License-Identifier: Apache-2.0
// The work of a run, a piece at a time. No lock of the run is held here.
#include <string.h>

#include <keel/host_kernel.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/status.h"
#include "drivers/cpu/cpu.h"
#include "kit/bind.h"
#include "kit/call.h"
#include "kit/pool.h"

// What the processor finds at an address.
static inline unsigned char *memory_at(uint64_t address)
{
    return (unsigned char *)(uintptr_t)address;
}

static const keel_ref_t *table_of(const keel_cmd_execute_t *execute)
{
    return execute ? execute->bindings : NULL;
}

keel_status_t cpu_branch_value(const cpu_run_t *run, const keel_cmd_block_t *branch,
                               uint32_t *value)
{
    bound_t span;
    KEEL_TRY(bind_now(table_of(run->execute), &branch->value, &span));
    memcpy(value, memory_at(span.address), sizeof *value);
    return NULL;
}

static keel_status_t counts_read(const keel_cmd_dispatch_t *c, const keel_ref_t *table,
                                 uint32_t counts[3])
{
    bound_t span;
    KEEL_TRY(bind_now(table, &c->counts, &span));
    memcpy(counts, memory_at(span.address), 12);
    return bind_counts_check(c, counts);
}

static inline keel_status_t dispatch_counts(const keel_cmd_dispatch_t *c, const keel_ref_t *table,
                                            uint32_t counts[3])
{
    memcpy(counts, c->groups, sizeof c->groups);
    return c->counts_kind == KEEL_COUNTS_DIRECT ? NULL : counts_read(c, table, counts);
}

static uint64_t transfer_units(const keel_ref_t *ref, const keel_ref_t *table)
{
    return (bind_length(table, ref) + CPU_UNIT_BYTES - 1) / CPU_UNIT_BYTES;
}

keel_status_t cpu_command_units(const cpu_run_t *run, const keel_command_t *command,
                                uint64_t *units)
{
    const keel_ref_t *table = table_of(run->execute);
    const void *c = command;
    *units = 1;
    switch (command->kind) {
    case KEEL_CMD_DISPATCH: {
        uint32_t counts[3];
        KEEL_TRY(dispatch_counts(c, table, counts));
        *units = (uint64_t)counts[0] * counts[1] * counts[2];
        break;
    }
    case KEEL_CMD_FILL:
        *units = transfer_units(&((const keel_cmd_fill_t *)c)->target, table);
        break;
    case KEEL_CMD_UPDATE:
        *units = transfer_units(&((const keel_cmd_update_t *)c)->target, table);
        break;
    case KEEL_CMD_COPY:
        *units = transfer_units(&((const keel_cmd_copy_t *)c)->source, table);
        break;
    default: break;
    }
    return NULL;
}

// At some eight bytes per tick: all that matters is on which side of a microsecond it lies.
static uint32_t transfer_cost(const keel_ref_t *ref)
{
    uint64_t bytes = ref->length < CPU_UNIT_BYTES ? ref->length : CPU_UNIT_BYTES;
    return (uint32_t)(bytes / 8 + 1);
}

uint32_t cpu_command_cost(const keel_command_t *command)
{
    const void *c = command;
    switch (command->kind) {
    case KEEL_CMD_DISPATCH:
        // relaxed: a guess.
        return atomic_load_explicit(
            &((cpu_kernel_t *)((const keel_cmd_dispatch_t *)c)->kernel)->cost,
            memory_order_relaxed);
    case KEEL_CMD_FILL: return transfer_cost(&((const keel_cmd_fill_t *)c)->target);
    case KEEL_CMD_UPDATE: return transfer_cost(&((const keel_cmd_update_t *)c)->target);
    case KEEL_CMD_COPY: return transfer_cost(&((const keel_cmd_copy_t *)c)->source);
    case KEEL_CMD_HOST_CALL: return 0;
    default: return 1; // done at once, or only begun
    }
}

void cpu_command_learn(const keel_command_t *command, uint64_t units, uint64_t took)
{
    if (command->kind != KEEL_CMD_DISPATCH) return;
    const keel_cmd_dispatch_t *c = (const keel_cmd_dispatch_t *)(const void *)command;
    cpu_kernel_t *kernel = c->kernel;
    uint64_t each = took / units + 1,
             known = atomic_load_explicit(&kernel->cost, memory_order_relaxed);
    if (each > UINT32_MAX) each = UINT32_MAX;
    // Written only when it is news: all workers read the line.
    if (each > 2 * known || 2 * each < known)
        atomic_store_explicit(&kernel->cost, (uint32_t)each, memory_order_relaxed);
}

static keel_status_t local_reserve(cpu_worker_t *worker, uint32_t size)
{
    if (size <= worker->local_size) return NULL;
    void *local = mem_zalloc_aligned(size, 64);
    if (!local) return status_no_memory();
    mem_free_aligned(worker->local);
    worker->local = local;
    worker->local_size = size;
    return NULL;
}

static keel_status_t dispatch_failed(const keel_cmd_dispatch_t *c, const keel_host_group_t *group,
                                     int result)
{
    return KEEL_ERROR(KEEL_ABORTED, "kernel '%s' returned %d in workgroup (%u, %u, %u)",
                      c->executable->entries[c->entry].name, result, group->id[0], group->id[1],
                      group->id[2]);
}

// Where a linear index lies in a grid. In shuffle mode the order is a permutation of the natural
// one.
static void group_locate(const cpu_device_t *device, const uint32_t groups[3], uint64_t index,
                         uint32_t id[3])
{
    uint64_t total = (uint64_t)groups[0] * groups[1] * groups[2];
    if (device->shuffle && total < UINT32_MAX)
        index = (total - 1 - index + device->seed % total) % total;
    id[0] = (uint32_t)(index % groups[0]);
    index /= groups[0];
    id[1] = (uint32_t)(index % groups[1]);
    id[2] = (uint32_t)(index / groups[1]);
}

static inline void group_advance(const uint32_t groups[3], uint32_t id[3])
{
    if (++id[0] < groups[0]) return;
    id[0] = 0;
    if (++id[1] < groups[1]) return;
    id[1] = 0;
    id[2]++;
}

static keel_status_t groups_run(const keel_cmd_dispatch_t *c, const keel_host_dispatch_t *dispatch,
                                cpu_worker_t *worker, const cpu_chunk_t *chunk)
{
    keel_host_kernel_fn kernel = ((const cpu_kernel_t *)c->kernel)->fn;
    keel_host_group_t group = {.worker = worker->index, .local = worker->local};
    const cpu_device_t *device = worker->node->device;
    group_locate(device, dispatch->groups, chunk->first, group.id);
    for (uint64_t i = 0; i < chunk->count; i++) {
        int result = kernel(dispatch, &group);
        if (__builtin_expect(result != 0, 0)) return dispatch_failed(c, &group, result);
        if (i + 1 == chunk->count) break;
        if (device->shuffle)
            group_locate(device, dispatch->groups, chunk->first + i + 1, group.id);
        else
            group_advance(dispatch->groups, group.id);
    }
    return NULL;
}

static keel_status_t dispatch_bound(const keel_cmd_dispatch_t *c,
                                    const keel_host_dispatch_t *partial, cpu_worker_t *worker,
                                    const cpu_chunk_t *chunk)
{
    const keel_ref_t *table = table_of(chunk->execute);
    void *bindings[CPU_MAX_BINDINGS];
    uint64_t lengths[CPU_MAX_BINDINGS];
    for (uint16_t i = 0; i < c->binding_count; i++) {
        bound_t span;
        KEEL_TRY(bind_now(table, &c->bindings[i], &span));
        bindings[i] = memory_at(span.address);
        lengths[i] = span.length;
    }
    keel_host_dispatch_t dispatch = *partial;
    dispatch.bindings = bindings;
    dispatch.lengths = lengths;
    dispatch.binding_count = c->binding_count;
    return groups_run(c, &dispatch, worker, chunk);
}

static keel_status_t raw_run(const keel_cmd_dispatch_t *c, keel_host_dispatch_t *partial,
                             cpu_worker_t *worker, const cpu_chunk_t *chunk)
{
    _Alignas(16) unsigned char block[CPU_MAX_CONSTANTS];
    binder_t binder = {.table = table_of(chunk->execute)};
    KEEL_TRY(bind_raw(&binder, c, block));
    partial->constants = block;
    return dispatch_bound(c, partial, worker, chunk);
}

static keel_status_t dispatch_run(cpu_worker_t *worker, const cpu_chunk_t *chunk)
{
    const keel_cmd_dispatch_t *c = (const keel_cmd_dispatch_t *)(const void *)chunk->command;
    keel_host_dispatch_t dispatch = {
        .group_size = {c->group_size[0], c->group_size[1], c->group_size[2]},
        .constants = (const char *)c + c->constants,
        .constant_size = c->constant_size,
        .local_size = c->local_memory,
    };
    KEEL_TRY(dispatch_counts(c, table_of(chunk->execute), dispatch.groups));
    if (c->local_memory) KEEL_TRY(local_reserve(worker, c->local_memory));
    return c->raw ? raw_run(c, &dispatch, worker, chunk)
                  : dispatch_bound(c, &dispatch, worker, chunk);
}

// The part of a range that the chunk is for.
static bound_t span_of_chunk(bound_t whole, const cpu_chunk_t *chunk)
{
    uint64_t start = chunk->first * CPU_UNIT_BYTES, length = chunk->count * CPU_UNIT_BYTES;
    if (length > whole.length - start) length = whole.length - start;
    return (bound_t){whole.address + start, length};
}

static keel_status_t fill_run(const cpu_chunk_t *chunk)
{
    const keel_cmd_fill_t *c = (const keel_cmd_fill_t *)(const void *)chunk->command;
    bound_t span;
    KEEL_TRY(bind_now(table_of(chunk->execute), &c->target, &span));
    KEEL_TRY(bind_fill_check(span, c->pattern_size));
    span = span_of_chunk(span, chunk);
    unsigned char *data = memory_at(span.address);
    if ((c->pattern & 0xff) * 0x01010101u == c->pattern) {
        memset(data, (int)(c->pattern & 0xff), span.length);
        return NULL;
    }
    // Units are multiples of 4, so each begins where the pattern does.
    uint64_t i = 0;
    for (; i + 4 <= span.length; i += 4) memcpy(data + i, &c->pattern, 4);
    memcpy(data + i, &c->pattern, span.length - i);
    return NULL;
}

static keel_status_t update_run(const cpu_chunk_t *chunk)
{
    const keel_cmd_update_t *c = (const keel_cmd_update_t *)(const void *)chunk->command;
    bound_t span;
    KEEL_TRY(bind_now(table_of(chunk->execute), &c->target, &span));
    span = span_of_chunk(span, chunk);
    memcpy(memory_at(span.address), c->data + chunk->first * CPU_UNIT_BYTES, span.length);
    return NULL;
}

static keel_status_t copy_run(const cpu_chunk_t *chunk)
{
    const keel_cmd_copy_t *c = (const keel_cmd_copy_t *)(const void *)chunk->command;
    bound_t source, target;
    KEEL_TRY(bind_now(table_of(chunk->execute), &c->source, &source));
    KEEL_TRY(bind_now(table_of(chunk->execute), &c->target, &target));
    KEEL_TRY(bind_copy_check(source, target));
    source = span_of_chunk(source, chunk);
    target = span_of_chunk(target, chunk);
    memcpy(memory_at(target.address), memory_at(source.address), source.length);
    return NULL;
}

static keel_status_t timestamp_run(const cpu_chunk_t *chunk)
{
    const keel_cmd_timestamp_t *c = (const keel_cmd_timestamp_t *)(const void *)chunk->command;
    bound_t span;
    KEEL_TRY(bind_now(table_of(chunk->execute), &c->target, &span));
    uint64_t now = keel_now_ns();
    memcpy(memory_at(span.address), &now, sizeof now);
    return NULL;
}

// An operation of the submission that went on by itself has ended.
static void resume_at(cpu_run_t *run, const keel_command_t *command, keel_status_t status)
{
    cpu_chunk_t chunk = {.command = command, .commands = &run->base.commands};
    cpu_run_resume(run, status ? cpu_chunk_blame(run, &chunk, status) : NULL);
}

static void alloca_done(keel_pool_request_t *request, keel_status_t status)
{
    keel_cmd_alloca_t *c =
        (keel_cmd_alloca_t *)(void *)((char *)request - offsetof(keel_cmd_alloca_t, request));
    resume_at(request->context, &c->head, status);
}

static cpu_outcome_t alloca_run(cpu_run_t *run, const cpu_chunk_t *chunk, keel_status_t *status)
{
    keel_cmd_alloca_t *c = (keel_cmd_alloca_t *)(uintptr_t)chunk->command;
    c->request.done = alloca_done;
    c->request.context = run;
    return pool_alloca(c->buffer, &c->request, status) == POOL_WAITING ? CPU_GOES_ON : CPU_ENDED;
}

static keel_status_t dealloca_run(const cpu_chunk_t *chunk)
{
    keel_cmd_alloca_t *c = (keel_cmd_alloca_t *)(uintptr_t)chunk->command;
    c->settled = true;
    return pool_dealloca(c->buffer);
}

_Static_assert(sizeof(aio_request_t) <= sizeof(((keel_cmd_transfer_t *)0)->request),
               "room for a request");

static void transfer_done(aio_request_t *request, int error)
{
    keel_cmd_transfer_t *c =
        (keel_cmd_transfer_t *)(void *)((char *)request - offsetof(keel_cmd_transfer_t, request));
    resume_at(request->context, &c->head, command_transfer_status(c, error));
}

static cpu_outcome_t transfer_run(cpu_run_t *run, cpu_worker_t *worker, const cpu_chunk_t *chunk,
                                  keel_status_t *status)
{
    keel_cmd_transfer_t *c = (keel_cmd_transfer_t *)(uintptr_t)chunk->command;
    bound_t span;
    *status = bind_now(table_of(chunk->execute), &c->ref, &span);
    if (*status) return CPU_ENDED;
    aio_request_t *request = (aio_request_t *)(void *)c->request;
    *request = (aio_request_t){
        .fd = c->file->fd,
        .write = chunk->command->kind == KEEL_CMD_WRITE,
        .data = memory_at(span.address),
        .size = span.length,
        .offset = c->file_offset,
        .done = transfer_done,
        .context = run,
    };
    aio_t *aio = worker->node->device->aio;
    if (!aio) { // inline
        *status = command_transfer_status(c, aio_perform(request));
        return CPU_ENDED;
    }
    aio_submit(aio, request);
    return CPU_GOES_ON;
}

static void call_done(keel_host_call_t *call, keel_status_t status)
{
    keel_cmd_call_t *c =
        (keel_cmd_call_t *)(void *)((char *)call - offsetof(keel_cmd_call_t, state));
    resume_at(call->context, &c->head, status);
}

static bool call_detach(cpu_run_t *run, cpu_worker_t *worker, const keel_call_t *call)
{
    if (worker->detached.count == worker->detached.capacity) {
        size_t capacity = worker->detached.capacity ? worker->detached.capacity * 2 : 4;
        cpu_detached_t *calls = mem_resize(worker->detached.calls, capacity * sizeof *calls);
        if (!calls) return false;
        worker->detached.calls = calls;
        worker->detached.capacity = capacity;
    }
    worker->detached.calls[worker->detached.count++] =
        (cpu_detached_t){*call, keel_queue_retain(run->base.queue)};
    return true;
}

static cpu_outcome_t call_run(cpu_run_t *run, cpu_worker_t *worker, const cpu_chunk_t *chunk,
                              keel_status_t *status)
{
    keel_cmd_call_t *c = (keel_cmd_call_t *)(uintptr_t)chunk->command;
    if (c->call.detached) {
        if (!call_detach(run, worker, &c->call)) *status = status_no_memory();
        return CPU_ENDED;
    }
    c->state = (keel_host_call_t){.done = call_done, .context = run};
    return call_make(run->base.queue->device, c, status) ? CPU_ENDED : CPU_GOES_ON;
}

static cpu_outcome_t chunk_dispatch(cpu_run_t *run, cpu_worker_t *worker, const cpu_chunk_t *chunk,
                                    keel_status_t *status)
{
    *status = NULL;
    switch ((keel_cmd_t)chunk->command->kind) {
    case KEEL_CMD_DISPATCH: *status = dispatch_run(worker, chunk); return CPU_ENDED;
    case KEEL_CMD_FILL: *status = fill_run(chunk); return CPU_ENDED;
    case KEEL_CMD_UPDATE: *status = update_run(chunk); return CPU_ENDED;
    case KEEL_CMD_COPY: *status = copy_run(chunk); return CPU_ENDED;
    case KEEL_CMD_TIMESTAMP: *status = timestamp_run(chunk); return CPU_ENDED;
    case KEEL_CMD_ALLOCA: return alloca_run(run, chunk, status);
    case KEEL_CMD_DEALLOCA: *status = dealloca_run(chunk); return CPU_ENDED;
    case KEEL_CMD_READ:
    case KEEL_CMD_WRITE: return transfer_run(run, worker, chunk, status);
    case KEEL_CMD_HOST_CALL: return call_run(run, worker, chunk, status);
    default:
        *status = KEEL_ERROR(KEEL_INTERNAL, "command %u is no work", chunk->command->kind);
        return CPU_ENDED;
    }
}

keel_status_t cpu_chunk_blame(const cpu_run_t *run, const cpu_chunk_t *chunk, keel_status_t status)
{
    return submission_blame(&run->base, chunk->execute, chunk->command, status);
}

cpu_outcome_t cpu_chunk_run(cpu_run_t *run, cpu_worker_t *worker, const cpu_chunk_t *chunk,
                            keel_status_t *status)
{
    cpu_outcome_t outcome = chunk_dispatch(run, worker, chunk, status);
    if (outcome == CPU_ENDED && __builtin_expect(*status != NULL, 0))
        *status = cpu_chunk_blame(run, chunk, *status);
    return outcome;
}
