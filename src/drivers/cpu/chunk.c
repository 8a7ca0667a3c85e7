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
#include "kit/traced.h"

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

// A workgroup is the smallest part that runs to its end whatever comes.
static keel_status_t groups_run(const keel_cmd_dispatch_t *c, const keel_host_dispatch_t *dispatch,
                                const cpu_run_t *run, const cpu_worker_t *worker,
                                const cpu_chunk_t *chunk)
{
    keel_host_kernel_fn kernel = ((const cpu_kernel_t *)c->kernel)->fn;
    keel_host_group_t group = {.worker = worker->index, .local = worker->local};
    const cpu_device_t *device = worker->node->device;
    bool shuffle = device->shuffle;
    group_locate(device, dispatch->groups, chunk->first, group.id);
    for (uint64_t i = 0;;) {
        int result = kernel(dispatch, &group);
        if (__builtin_expect(result != 0, 0)) return dispatch_failed(c, &group, result);
        if (++i == chunk->count) return NULL;
        if (submission_is_cancelled(&run->base)) return submission_cancelled(&run->base);
        if (__builtin_expect(shuffle, 0))
            group_locate(device, dispatch->groups, chunk->first + i, group.id);
        else
            group_advance(dispatch->groups, group.id);
    }
}

static keel_status_t dispatch_bound(const keel_cmd_dispatch_t *c,
                                    const keel_host_dispatch_t *partial, const cpu_run_t *run,
                                    const cpu_worker_t *worker, const cpu_chunk_t *chunk)
{
    const keel_ref_t *table = cpu_table(chunk->execute);
    void *bindings[CPU_MAX_BINDINGS];
    uint64_t lengths[CPU_MAX_BINDINGS];
    for (uint16_t i = 0; i < c->binding_count; i++) {
        bound_t span;
        KEEL_TRY(bind_now(table, &c->bindings[i], &span));
        bindings[i] = cpu_memory(span.address);
        lengths[i] = span.length;
    }
    keel_host_dispatch_t dispatch = *partial;
    dispatch.bindings = bindings;
    dispatch.lengths = lengths;
    dispatch.binding_count = c->binding_count;
    return groups_run(c, &dispatch, run, worker, chunk);
}

static keel_status_t patched_run(const keel_cmd_dispatch_t *c, keel_host_dispatch_t *partial,
                                 const cpu_run_t *run, const cpu_worker_t *worker,
                                 const cpu_chunk_t *chunk)
{
    _Alignas(16) unsigned char block[CPU_MAX_CONSTANTS];
    binder_t binder = binder_of(chunk->execute);
    KEEL_TRY(bind_constants(&binder, c, block));
    partial->constants = block;
    return dispatch_bound(c, partial, run, worker, chunk);
}

static keel_status_t dispatch_run(const cpu_run_t *run, cpu_worker_t *worker,
                                  const cpu_chunk_t *chunk)
{
    const keel_cmd_dispatch_t *c = (const keel_cmd_dispatch_t *)(const void *)chunk->command;
    keel_host_dispatch_t dispatch = {
        .group_size = {c->group_size[0], c->group_size[1], c->group_size[2]},
        .constants = (const char *)c + c->constants,
        .constant_size = c->constant_size,
        .local_size = c->local_memory,
    };
    KEEL_TRY(cpu_dispatch_counts(c, chunk->execute, dispatch.groups));
    if (c->local_memory) KEEL_TRY(local_reserve(worker, c->local_memory));
    return c->patch_count ? patched_run(c, &dispatch, run, worker, chunk)
                          : dispatch_bound(c, &dispatch, run, worker, chunk);
}

// The part of a range that the chunk is for.
static bound_t span_of_chunk(bound_t whole, const cpu_chunk_t *chunk)
{
    uint64_t start = chunk->first * CPU_UNIT_BYTES, length = chunk->count * CPU_UNIT_BYTES;
    if (length > whole.length - start) length = whole.length - start;
    return (bound_t){whole.address + start, length};
}

static void bytes_fill(unsigned char *data, uint64_t length, uint32_t pattern)
{
    if ((pattern & 0xff) * 0x01010101u == pattern) {
        memset(data, (int)(pattern & 0xff), length);
        return;
    }
    // Units are multiples of 4, so each begins where the pattern does.
    uint64_t i = 0;
    for (; i + 4 <= length; i += 4) memcpy(data + i, &pattern, 4);
    memcpy(data + i, &pattern, length - i);
}

static keel_status_t fill_run(const cpu_chunk_t *chunk)
{
    const keel_cmd_fill_t *c = (const keel_cmd_fill_t *)(const void *)chunk->command;
    bound_t span;
    KEEL_TRY(bind_now(cpu_table(chunk->execute), &c->target, &span));
    KEEL_TRY(bind_fill_check(span, c->pattern_size));
    span = span_of_chunk(span, chunk);
    uint32_t pattern = c->pattern;
    if (__builtin_expect(c->given, 0))
        pattern = command_pattern(c, keel_execute_parameters(chunk->execute));
    bytes_fill(cpu_memory(span.address), span.length, pattern);
    return NULL;
}

static keel_status_t update_run(const cpu_chunk_t *chunk)
{
    const keel_cmd_update_t *c = (const keel_cmd_update_t *)(const void *)chunk->command;
    bound_t span;
    KEEL_TRY(bind_now(cpu_table(chunk->execute), &c->target, &span));
    span = span_of_chunk(span, chunk);
    const unsigned char *data = keel_update_data(c, chunk->execute);
    memcpy(cpu_memory(span.address), data + chunk->first * CPU_UNIT_BYTES, span.length);
    return NULL;
}

static keel_status_t copy_run(const cpu_chunk_t *chunk)
{
    const keel_cmd_copy_t *c = (const keel_cmd_copy_t *)(const void *)chunk->command;
    bound_t source, target;
    KEEL_TRY(bind_now(cpu_table(chunk->execute), &c->source, &source));
    KEEL_TRY(bind_now(cpu_table(chunk->execute), &c->target, &target));
    KEEL_TRY(bind_copy_check(source, target));
    source = span_of_chunk(source, chunk);
    target = span_of_chunk(target, chunk);
    memcpy(cpu_memory(target.address), cpu_memory(source.address), source.length);
    return NULL;
}

static keel_status_t across_bind(const keel_cmd_across_t *c, const keel_ref_t *ref, bound_t *bound)
{
    if (ref->buffer != c->other) return bind_now(NULL, ref, bound);
    void *data = ref_host(ref);
    *bound = (bound_t){(uint64_t)(uintptr_t)data, ref->length};
    return data ? NULL : bind_missing(NULL, ref);
}

static keel_status_t across_copy(const keel_cmd_across_t *c, const cpu_chunk_t *chunk)
{
    bound_t source, target;
    KEEL_TRY(across_bind(c, &c->copy.source, &source));
    KEEL_TRY(across_bind(c, &c->copy.target, &target));
    KEEL_TRY(bind_copy_check(source, target));
    source = span_of_chunk(source, chunk);
    target = span_of_chunk(target, chunk);
    memcpy(cpu_memory(target.address), cpu_memory(source.address), source.length);
    return NULL;
}

static keel_status_t timestamp_run(const cpu_chunk_t *chunk)
{
    const keel_cmd_timestamp_t *c = (const keel_cmd_timestamp_t *)(const void *)chunk->command;
    bound_t span;
    KEEL_TRY(bind_now(cpu_table(chunk->execute), &c->target, &span));
    uint64_t now = keel_now_ns();
    memcpy(cpu_memory(span.address), &now, sizeof now);
    return NULL;
}

// Kinds that may go on by themselves.
#define MAY_GO_ON                                                                                  \
    (1u << KEEL_CMD_ACROSS | 1u << KEEL_CMD_ALLOCA | 1u << KEEL_CMD_READ | 1u << KEEL_CMD_WRITE |  \
     1u << KEEL_CMD_HOST_CALL)

// One that went on by itself has ended. An alloca that did waited for memory.
KEEL_COLD __attribute__((noinline)) static void command_trace(const cpu_run_t *run,
                                                              const keel_command_t *command)
{
    trace_part_t part = traced_part(&run->base.commands, command, NULL);
    if (command->kind == KEEL_CMD_ALLOCA) part.op = TRACE_OP_WAIT;
    if (part.op == TRACE_OP_COPY) part.count = traced_bytes(command, NULL);
    trace_part(command->began, submission_traced(&run->base), part);
}

// An operation that went on by itself has ended, with a status to consume.
static void run_resume(cpu_run_t *run, keel_status_t status)
{
    lock_enter(&run->lock);
    if (status) cpu_walk_fail(run, status);
    bool parked = --run->in_flight == 0 && run->workers == 0;
    if (run->in_flight == 0 && run->workers)
        atomic_store_explicit(&run->open, 1, memory_order_release);
    lock_leave(&run->lock);
    if (!parked) return;
    cpu_node_t *node = cpu_run_node(run);
    if (node->worker_count)
        cpu_node_push(node, run, false);
    else
        submission_later(&run->base, node->go_on);
}

// The same, for a command of the submission's own.
static void resume_at(cpu_run_t *run, const keel_command_t *command, keel_status_t status)
{
    if (trace_is_on()) command_trace(run, command);
    run_resume(run, status ? submission_blame(&run->base, NULL, command, status) : NULL);
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
    if (c->memory.buffer) {
        *status = pool_lend(c);
        return CPU_ENDED;
    }
    c->request.done = alloca_done;
    c->request.context = run;
    return pool_alloca(c->buffer, &c->request, status) == POOL_WAITING ? CPU_GOES_ON : CPU_ENDED;
}

static keel_status_t dealloca_run(const cpu_chunk_t *chunk)
{
    keel_cmd_alloca_t *c = (keel_cmd_alloca_t *)(uintptr_t)chunk->command;
    keel_status_t status;
    return pool_dealloca_starts(c, &status) ? pool_dealloca(c->buffer) : status;
}

static void across_done(keel_submission_t *submission, keel_cmd_across_t *c, keel_status_t status)
{
    resume_at((cpu_run_t *)(void *)submission, &c->copy.head, status);
}

static cpu_outcome_t across_run(cpu_run_t *run, const cpu_chunk_t *chunk, keel_status_t *status)
{
    keel_cmd_across_t *c = (keel_cmd_across_t *)(uintptr_t)chunk->command;
    if (!cpu_reaches(c)) {
        across_begin(&run->base, c, across_done);
        return CPU_GOES_ON;
    }
    if (!device_visit(c->other->device, status)) return CPU_ENDED;
    *status = across_copy(c, chunk);
    device_leave(c->other->device);
    return CPU_ENDED;
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
    *status = bind_now(cpu_table(chunk->execute), &c->ref, &span);
    if (*status) return CPU_ENDED;
    aio_request_t *request = (aio_request_t *)(void *)c->request;
    *request = (aio_request_t){
        .fd = c->file->fd,
        .write = chunk->command->kind == KEEL_CMD_WRITE,
        .data = cpu_memory(span.address),
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

static void call_done(keel_call_state_t *call, keel_status_t status)
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
        c->made = call_detach(run, worker, &c->call);
        if (!c->made) *status = status_no_memory();
        return CPU_ENDED;
    }
    c->state = (keel_call_state_t){.done = call_done, .context = run};
    return call_make(run->base.queue->device, c, status) ? CPU_ENDED : CPU_GOES_ON;
}

static cpu_outcome_t chunk_dispatch(cpu_run_t *run, cpu_worker_t *worker, const cpu_chunk_t *chunk,
                                    keel_status_t *status)
{
    *status = submission_is_cancelled(&run->base) ? submission_cancelled(&run->base) : NULL;
    if (*status) return CPU_ENDED;
    switch ((keel_cmd_t)chunk->command->kind) {
    case KEEL_CMD_DISPATCH: *status = dispatch_run(run, worker, chunk); return CPU_ENDED;
    case KEEL_CMD_FILL: *status = fill_run(chunk); return CPU_ENDED;
    case KEEL_CMD_UPDATE: *status = update_run(chunk); return CPU_ENDED;
    case KEEL_CMD_COPY: *status = copy_run(chunk); return CPU_ENDED;
    case KEEL_CMD_ACROSS: return across_run(run, chunk, status);
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

// Never part of its callers, of which there are two: it is to exist once, and be jumped to.
__attribute__((noinline)) static cpu_outcome_t
chunk_run(cpu_run_t *run, cpu_worker_t *worker, const cpu_chunk_t *chunk, keel_status_t *status)
{
    cpu_outcome_t outcome = chunk_dispatch(run, worker, chunk, status);
    if (outcome == CPU_ENDED && __builtin_expect(*status != NULL, 0))
        *status = submission_blame(&run->base, chunk->execute, chunk->command, *status);
    return outcome;
}

// The part of a command that a chunk is.
static trace_part_t chunk_part(const cpu_chunk_t *chunk)
{
    const keel_command_t *command = chunk->command;
    const keel_cmd_dispatch_t *c = (const keel_cmd_dispatch_t *)(const void *)command;
    _Atomic uint32_t *kernel =
        command->kind == KEEL_CMD_DISPATCH ? &((cpu_kernel_t *)c->kernel)->traced : NULL;
    trace_part_t part = traced_part(chunk->commands, command, kernel);
    part.first = chunk->first;
    part.count = chunk->count;
    if (part.op != TRACE_OP_COPY) return part;
    bool whole = command->kind == KEEL_CMD_READ || command->kind == KEEL_CMD_WRITE;
    uint64_t all = traced_bytes(command, cpu_table(chunk->execute));
    part.first *= CPU_UNIT_BYTES;
    part.count *= CPU_UNIT_BYTES;
    if (whole || part.count > all - part.first) part.count = all - part.first;
    return part;
}

// An operation may go on by itself, and have ended the run when chunk_run returns: nothing of it is
// touched then. It is recorded as it ends, by resume_at.
KEEL_COLD __attribute__((noinline)) static cpu_outcome_t
chunk_traced(cpu_run_t *run, cpu_worker_t *worker, const cpu_chunk_t *chunk, keel_status_t *status)
{
    uint64_t start = trace_now();
    keel_command_t *command = (keel_command_t *)(uintptr_t)chunk->command;
    if (MAY_GO_ON >> command->kind & 1 && !chunk->execute) command->began = start;
    cpu_outcome_t outcome = chunk_run(run, worker, chunk, status);
    if (outcome != CPU_ENDED) return outcome;
    trace_part(start, submission_traced(&run->base), chunk_part(chunk));
    return outcome;
}

cpu_outcome_t cpu_chunk_run(cpu_run_t *run, cpu_worker_t *worker, const cpu_chunk_t *chunk,
                            keel_status_t *status)
{
    if (trace_is_on()) return chunk_traced(run, worker, chunk, status);
    return chunk_run(run, worker, chunk, status);
}
