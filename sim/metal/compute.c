// SPDX-License-Identifier: Apache-2.0
#include "metal/compute.h"

#include "metal/encoder.h"
#include "metal/hazard.h"
#include "metal/indirect.h"
#include "metal/resident.h"

#include <stdlib.h>
#include <string.h>

enum { BYTES_MAX = 4096 };

typedef struct compute_t {
    encoder_t encoder;
    bindings_t set;
    void **used; // resources that were made resident, with residency=1; owned
    unsigned used_count;
    named_t named; // resources and pipelines that indirect commands may use
} compute_t;

void *compute_new(command_t *command)
{
    return encoder_new(&MTLComputeCommandEncoder, command);
}

static void check_index(compute_t *self, sel_t cmd, unsigned long index)
{
    encoder_check_open(&self->encoder, cmd);
    if (index >= BUFFERS) misuse(self, cmd, "index %lu: there are %d", index, BUFFERS);
}

static void compute_set_pipeline(compute_t *self, sel_t cmd, pipeline_t *pipeline)
{
    encoder_check_open(&self->encoder, cmd);
    object_check(self, cmd, pipeline, &MTLComputePipelineState);
    self->set.pipeline = pipeline;
    named_add(&self->named, pipeline);
}

static void compute_set_buffer(compute_t *self, sel_t cmd, buffer_t *buffer, unsigned long offset,
                               unsigned long index)
{
    check_index(self, cmd, index);
    if (buffer) {
        object_check(self, cmd, buffer, &MTLBuffer);
        buffer_check(self, cmd, buffer, (range_t){offset, 1});
    }
    self->set.bound[index] = (bound_t){buffer, offset, NULL};
}

static void compute_set_offset(compute_t *self, sel_t cmd, unsigned long offset,
                               unsigned long index)
{
    check_index(self, cmd, index);
    buffer_t *buffer = self->set.bound[index].buffer;
    if (!buffer) misuse(self, cmd, "no buffer is bound at %lu", index);
    buffer_check(self, cmd, buffer, (range_t){offset, 1});
    self->set.bound[index].offset = offset;
}

static void compute_set_bytes(compute_t *self, sel_t cmd, const void *bytes, unsigned long length,
                              unsigned long index)
{
    check_index(self, cmd, index);
    if (!bytes || length == 0 || length > BYTES_MAX)
        misuse(self, cmd, "%lu bytes: it takes 1 to %d", length, BYTES_MAX);
    void *copy = command_keep(self->encoder.command, bytes, length);
    self->set.bound[index] = (bound_t){NULL, 0, copy};
}

void group_length_check(const void *self, sel_t cmd, unsigned long length)
{
    if (length % 16 || length > GROUP_MEMORY)
        misuse(self, cmd, "a length of %lu: must be a multiple of 16, at most %d", length,
               GROUP_MEMORY);
}

static void compute_set_group_length(compute_t *self, sel_t cmd, unsigned long length,
                                     unsigned long index)
{
    check_index(self, cmd, index);
    group_length_check(self, cmd, length);
    self->set.group_lengths[index] = length;
}

static unsigned perform_nothing(work_t *work)
{
    return ERROR_NONE;
}

typedef struct barrier_t {
    work_t work;
    unsigned encoder; // its number
} barrier_t;

static unsigned perform_barrier(work_t *work)
{
    hazard_barrier(((barrier_t *)work)->encoder);
    return ERROR_NONE;
}

static void compute_barrier(compute_t *self, sel_t cmd, unsigned long scope)
{
    encoder_check_open(&self->encoder, cmd);
    if (scope == 0 || scope > 7) misuse(self, cmd, "there is no scope %#lx", scope);
    barrier_t *barrier =
        command_add(self->encoder.command, sizeof *barrier, perform_barrier, NULL, 0);
    barrier->encoder = self->encoder.number;
    barrier->work.ordered = true;
}

// What the kernels of this encoder reach by an address. It must live as long as what is bound.
static void compute_use(compute_t *self, sel_t cmd, void *resource, unsigned long usage)
{
    encoder_check_open(&self->encoder, cmd);
    object_check(self, cmd, resource, &MTLBuffer);
    if (usage == 0 || usage > 3) misuse(self, cmd, "there is no usage %#lx of buffers", usage);
    command_add(self->encoder.command, sizeof(work_t), perform_nothing, &resource, 1);
    named_add(&self->named, resource);
    if (!settings()->residency) return;
    self->used = realloc(self->used, (self->used_count + 1) * sizeof(void *));
    if (!self->used) die("no memory for %u resources", self->used_count + 1);
    self->used[self->used_count++] = resource;
}

static void compute_use_all(compute_t *self, sel_t cmd, void *const *resources, unsigned long count,
                            unsigned long usage)
{
    if (!resources || !count) misuse(self, cmd, "there are no resources");
    for (unsigned long i = 0; i < count; i++) compute_use(self, cmd, resources[i], usage);
}

static void compute_dealloc(void *self)
{
    free(((compute_t *)self)->used);
    free(((compute_t *)self)->named.objects);
    encoder_dealloc(self);
}

// A kernel may leave alone what the host is about to write, so this is said and no more.
static void check_flushed(const dispatch_t *dispatch)
{
    for (unsigned i = 0; i < dispatch->work.use_count; i++) {
        const buffer_t *buffer = (const buffer_t *)dispatch->work.uses[i];
        if (buffer->object.isa != &MTLBuffer) continue;
        long at = buffer_unflushed(buffer, (range_t){0, buffer->length});
        if (at >= 0)
            complain("kernel %s: byte %ld of a managed buffer of %lu bytes is unflushed: the host "
                     "has written it since didModifyRange:",
                     dispatch->pipeline->function->entry->name, at, buffer->length);
    }
}

// Whether there is a grid; of counts in memory, which are read here, one may be 0.
static bool counts_read(dispatch_t *dispatch)
{
    if (!dispatch->counts) return true;
    hazard_touch(dispatch->counts->gpu + dispatch->counts_at, sizeof dispatch->grid.groups, READS);
    memcpy(dispatch->grid.groups, dispatch->counts->gpu + dispatch->counts_at,
           sizeof dispatch->grid.groups);
    const uint32_t *groups = dispatch->grid.groups;
    return groups[0] && groups[1] && groups[2];
}

// Threadgroup memory is fresh for each grid, and shared by its groups, which run one by one.
static unsigned grid_perform(dispatch_t *dispatch)
{
    if (!counts_read(dispatch)) return ERROR_NONE;
    const function_t *function = dispatch->pipeline->function;
    void *memory[BUFFERS];
    for (int i = 0; i < BUFFERS; i++) {
        memory[i] = dispatch->group_lengths[i] ? make(dispatch->group_lengths[i]) : NULL;
        dispatch->arguments.groups[i] = (uintptr_t)memory[i];
    }
    pthread_mutex_lock(&function->library->code->lock);
    resident_name(function->entry->name);
    bool good = grid_run(function->entry->run, &dispatch->arguments, &dispatch->grid);
    resident_name(NULL);
    pthread_mutex_unlock(&function->library->code->lock);
    for (int i = 0; i < BUFFERS; i++) free(memory[i]);
    if (good) return ERROR_NONE;
    complain("kernel %s: not all threads of a threadgroup reach the same barrier",
             function->entry->name);
    return ERROR_TIMEOUT;
}

unsigned dispatch_perform(dispatch_t *dispatch)
{
    check_flushed(dispatch);
    hazard_begin(dispatch->encoder, dispatch->serial, "kernel",
                 dispatch->pipeline->function->entry->name);
    unsigned code = grid_perform(dispatch);
    hazard_end(dispatch->encoder);
    return code;
}

static unsigned perform_dispatch(work_t *work)
{
    return dispatch_perform((dispatch_t *)work);
}

void groups_check(const void *self, sel_t cmd, extent_t groups)
{
    if (!groups.width || !groups.height || !groups.depth)
        misuse(self, cmd, "a grid of %lu x %lu x %lu threadgroups: none may be 0", groups.width,
               groups.height, groups.depth);
    if (groups.width > UINT32_MAX || groups.height > UINT32_MAX || groups.depth > UINT32_MAX)
        misuse(self, cmd, "a grid of more than 32 bits");
}

static void check_threads(const void *self, sel_t cmd, extent_t threads, unsigned long most)
{
    bool fits = threads.width <= THREADS_MAX && threads.height <= THREADS_MAX &&
                threads.depth <= THREADS_MAX;
    unsigned long count = fits ? threads.width * threads.height * threads.depth : 0;
    if (count == 0 || count > most)
        misuse(self, cmd, "%lu x %lu x %lu threads in a threadgroup: must be 1 to %lu",
               threads.width, threads.height, threads.depth, most);
}

// A buffer's offset must suit the type; in constant memory at least 4, with memory of the GPU's own
// 32.
static void check_offset(const void *self, sel_t cmd, const entry_t *entry, int index,
                         const bound_t *bound)
{
    unsigned long unit = entry->aligned[index], least = settings()->discrete ? 32 : 4;
    if (entry->constants >> index & 1 && unit < least) unit = least;
    if (bound->buffer && entry->buffers >> index & 1 && unit && bound->offset % unit)
        misuse(self, cmd, "kernel %s: offset %lu of buffer(%d) must be a multiple of %lu",
               entry->name, bound->offset, index, unit);
}

// What the kernel takes must be bound.
static void check_bound(const void *self, sel_t cmd, const bindings_t *set)
{
    const entry_t *entry = set->pipeline->function->entry;
    unsigned long total = 0;
    for (int i = 0; i < BUFFERS; i++) {
        const bound_t *bound = &set->bound[i];
        if (entry->buffers >> i & 1 && !bound->buffer && !bound->bytes)
            misuse(self, cmd, "kernel %s: nothing is bound at buffer(%d)", entry->name, i);
        if (entry->arguments[i] && bound->bytes && settings()->tier == 1)
            misuse(self, cmd,
                   "kernel %s: buffer(%d) is an argument buffer: with tier 1 an "
                   "MTLArgumentEncoder writes it",
                   entry->name, i);
        check_offset(self, cmd, entry, i, bound);
        if (entry->groups >> i & 1 && !set->group_lengths[i])
            misuse(self, cmd, "kernel %s: threadgroup(%d) has no length", entry->name, i);
        if (bound->buffer) object_check(self, cmd, bound->buffer, &MTLBuffer);
        total += set->group_lengths[i];
    }
    total += entry->group_bytes;
    if (total > GROUP_MEMORY)
        misuse(self, cmd, "%lu bytes of threadgroup memory, at most %d", total, GROUP_MEMORY);
}

void bindings_check(const void *self, sel_t cmd, const bindings_t *set, extent_t threads)
{
    if (!set->pipeline) misuse(self, cmd, "no pipeline is set");
    object_check(self, cmd, set->pipeline, &MTLComputePipelineState);
    check_threads(self, cmd, threads, pipeline_threads(set->pipeline));
    check_bound(self, cmd, set);
}

void dispatch_fill(dispatch_t *dispatch, const bindings_t *set, extent_t threads)
{
    dispatch->pipeline = set->pipeline;
    dispatch->grid.threads[0] = (uint32_t)threads.width;
    dispatch->grid.threads[1] = (uint32_t)threads.height;
    dispatch->grid.threads[2] = (uint32_t)threads.depth;
    for (int i = 0; i < BUFFERS; i++) {
        const bound_t *bound = &set->bound[i];
        dispatch->group_lengths[i] = set->group_lengths[i];
        dispatch->arguments.buffers[i] =
            bound->buffer ? (uintptr_t)bound->buffer->gpu + bound->offset : (uintptr_t)bound->bytes;
    }
}

void dispatch_groups(dispatch_t *dispatch, extent_t groups)
{
    dispatch->grid.groups[0] = (uint32_t)groups.width;
    dispatch->grid.groups[1] = (uint32_t)groups.height;
    dispatch->grid.groups[2] = (uint32_t)groups.depth;
}

// A work that uses what is bound and what was made resident, and a buffer with counts or NULL.
static dispatch_t *dispatch_add(const compute_t *self, buffer_t *counts)
{
    void **uses = make((BUFFERS + 2 + self->used_count) * sizeof(void *));
    unsigned count = 0;
    uses[count++] = self->set.pipeline;
    if (counts) uses[count++] = counts;
    for (int i = 0; i < BUFFERS; i++)
        if (self->set.bound[i].buffer) uses[count++] = self->set.bound[i].buffer;
    for (unsigned i = 0; i < self->used_count; i++) uses[count++] = self->used[i];
    dispatch_t *dispatch =
        command_add(self->encoder.command, sizeof *dispatch, perform_dispatch, uses, count);
    free(uses);
    dispatch->encoder = self->encoder.number;
    dispatch->serial = !self->encoder.concurrent;
    return dispatch;
}

static dispatch_t *dispatch_make(compute_t *self, sel_t cmd, extent_t threads, buffer_t *counts)
{
    encoder_check_open(&self->encoder, cmd);
    bindings_check(self, cmd, &self->set, threads);
    dispatch_t *dispatch = dispatch_add(self, counts);
    dispatch->counts = counts;
    dispatch_fill(dispatch, &self->set, threads);
    return dispatch;
}

static void compute_dispatch(compute_t *self, sel_t cmd, extent_t groups, extent_t threads)
{
    groups_check(self, cmd, groups);
    dispatch_groups(dispatch_make(self, cmd, threads, NULL), groups);
}

static void compute_dispatch_indirect(compute_t *self, sel_t cmd, buffer_t *counts,
                                      unsigned long offset, extent_t threads)
{
    object_check(self, cmd, counts, &MTLBuffer);
    if (offset % 4) misuse(self, cmd, "counts at offset %lu: must be a multiple of 4", offset);
    buffer_check(self, cmd, counts, (range_t){offset, 3 * sizeof(uint32_t)});
    dispatch_make(self, cmd, threads, counts)->counts_at = offset;
}

// Commands take nothing of what is set here, and nothing of it is there after them.
static void execute(compute_t *self, sel_t cmd, indirect_t *commands, const execution_t *execution)
{
    encoder_check_open(&self->encoder, cmd);
    indirect_execute(self, cmd, commands, &self->encoder, &self->named, execution);
    self->set = (bindings_t){0};
}

static void compute_execute(compute_t *self, sel_t cmd, indirect_t *commands, range_t range)
{
    execution_t execution = {.range = range, .used = self->used, .used_count = self->used_count};
    execute(self, cmd, commands, &execution);
}

static void compute_execute_counted(compute_t *self, sel_t cmd, indirect_t *commands,
                                    buffer_t *range, unsigned long offset)
{
    object_check(self, cmd, range, &MTLBuffer);
    if (offset % 4) misuse(self, cmd, "a range at offset %lu: must be a multiple of 4", offset);
    buffer_check(self, cmd, range, (range_t){offset, 2 * sizeof(uint32_t)});
    execution_t execution = {
        .counts = range, .at = offset, .used = self->used, .used_count = self->used_count};
    execute(self, cmd, commands, &execution);
}

static method_t compute_methods[] = {
    ENCODER_METHODS,
    METHOD("setComputePipelineState:", compute_set_pipeline),
    METHOD("setBuffer:offset:atIndex:", compute_set_buffer),
    METHOD("setBufferOffset:atIndex:", compute_set_offset),
    METHOD("setBytes:length:atIndex:", compute_set_bytes),
    METHOD("setThreadgroupMemoryLength:atIndex:", compute_set_group_length),
    METHOD("memoryBarrierWithScope:", compute_barrier),
    METHOD("useResource:usage:", compute_use),
    METHOD("useResources:count:usage:", compute_use_all),
    METHOD("executeCommandsInBuffer:withRange:", compute_execute),
    METHOD("executeCommandsInBuffer:indirectBuffer:indirectBufferOffset:", compute_execute_counted),
    METHOD("dispatchThreadgroups:threadsPerThreadgroup:", compute_dispatch),
    METHOD("dispatchThreadgroupsWithIndirectBuffer:indirectBufferOffset:threadsPerThreadgroup:",
           compute_dispatch_indirect),
    METHODS_END};
class_t MTLComputeCommandEncoder = {.name = "MTLComputeCommandEncoder",
                                    .size = sizeof(compute_t),
                                    .dealloc = compute_dealloc,
                                    .methods = compute_methods};
