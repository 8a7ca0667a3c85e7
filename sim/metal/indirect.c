// SPDX-License-Identifier: Apache-2.0
#include "metal/indirect.h"

#include "metal/compute.h"
#include "metal/hazard.h"

#include <stdlib.h>

enum {
    CONCURRENT_DISPATCH = 1 << 5, // of MTLIndirectCommandType
    COMMANDS_MAX = 16384          // that a GPU of a Mac, which is not Apple's, takes at a time
};

typedef struct descriptor_t {
    object_t object;
    unsigned long types, most_bound;
    bool inherits_buffers, inherits_pipeline; // both unless told otherwise
} descriptor_t;

typedef enum state_t_ { FRESH, EMPTY, ENCODED } slot_state_t;

// One command.
typedef struct slot_t {
    bindings_t set;
    dispatch_t dispatch;
    slot_state_t state;
    bool barrier; // those before it end before it begins
} slot_t;

struct indirect_t {
    object_t object;
    slot_t *slots; // owned
    unsigned long count, most_bound;
    atomic_uint ahead; // executions of it that are committed and not done
};

// What the program encodes a command by.
typedef struct indirect_command_t {
    object_t object;
    indirect_t *owner; // retained
    slot_t *slot;
} command_slot_t;

static class_t MTLIndirectCommandBufferDescriptor, MTLIndirectCommandBuffer;
static class_t MTLIndirectComputeCommand;

void named_add(named_t *named, const void *object)
{
    for (unsigned i = 0; i < named->count; i++)
        if (named->objects[i] == object) return;
    named->objects = realloc(named->objects, (named->count + 1) * sizeof *named->objects);
    if (!named->objects) die("no memory for %u objects", named->count + 1);
    named->objects[named->count++] = object;
}

static bool is_named(const named_t *named, const void *object)
{
    unsigned i = 0;
    while (i < named->count && named->objects[i] != object) i++;
    return i < named->count;
}

void *device_indirect(void *self, sel_t cmd, void *object, unsigned long most,
                      unsigned long options)
{
    object_check(self, cmd, object, &MTLIndirectCommandBufferDescriptor);
    if (settings()->virtual_gpu) misuse(self, cmd, "a virtual GPU asserts");
    const descriptor_t *descriptor = object;
    if (descriptor->types != CONCURRENT_DISPATCH)
        misuse(self, cmd, "command types %#lx: only concurrent dispatches (%#x) are known here",
               descriptor->types, CONCURRENT_DISPATCH);
    if (descriptor->inherits_buffers || descriptor->inherits_pipeline)
        misuse(self, cmd, "only commands that inherit nothing are known here");
    if (!most || descriptor->most_bound > BUFFERS)
        misuse(self, cmd, "%lu commands with %lu buffers: there are 1 or more with at most %d",
               most, descriptor->most_bound, BUFFERS);
    indirect_t *commands = object_new(&MTLIndirectCommandBuffer);
    commands->slots = make(most * sizeof *commands->slots);
    commands->count = most;
    commands->most_bound = descriptor->most_bound;
    return commands;
}

static void indirect_dealloc(void *self)
{
    free(((indirect_t *)self)->slots);
}

static unsigned long indirect_size(indirect_t *self, sel_t cmd)
{
    return self->count;
}

static void check_range(const void *self, sel_t cmd, const indirect_t *commands, range_t range)
{
    if (range.location > commands->count || range.length > commands->count - range.location)
        misuse(self, cmd, "%lu commands from %lu: there are %lu", range.length, range.location,
               commands->count);
}

static void slot_reset(slot_t *slot)
{
    *slot = (slot_t){.state = EMPTY};
}

// The GPU reads commands when it executes them.
static void check_idle(const void *self, sel_t cmd, indirect_t *commands)
{
    if (atomic_load(&commands->ahead))
        misuse(self, cmd, "a command buffer that is committed has yet to execute the commands");
}

static void indirect_reset(indirect_t *self, sel_t cmd, range_t range)
{
    check_range(self, cmd, self, range);
    check_idle(self, cmd, self);
    for (unsigned long i = 0; i < range.length; i++) slot_reset(&self->slots[range.location + i]);
}

static void *indirect_at(indirect_t *self, sel_t cmd, unsigned long index)
{
    check_range(self, cmd, self, (range_t){index, 1});
    command_slot_t *command = object_new(&MTLIndirectComputeCommand);
    command->owner = object_retain(self);
    command->slot = &self->slots[index];
    return object_autorelease(command);
}

static void command_dealloc(void *self)
{
    object_release(((command_slot_t *)self)->owner);
}

static void check_open(command_slot_t *self, sel_t cmd)
{
    check_idle(self, cmd, self->owner);
    if (self->slot->state == ENCODED)
        misuse(self, cmd, "the command is encoded: it must be reset before it is encoded again");
}

static void command_set_pipeline(command_slot_t *self, sel_t cmd, pipeline_t *pipeline)
{
    check_open(self, cmd);
    object_check(self, cmd, pipeline, &MTLComputePipelineState);
    if (!pipeline->indirect)
        misuse(self, cmd, "kernel %s: the pipeline was made without supportIndirectCommandBuffers",
               pipeline->function->entry->name);
    self->slot->set.pipeline = pipeline;
}

static void command_set_buffer(command_slot_t *self, sel_t cmd, buffer_t *buffer,
                               unsigned long offset, unsigned long index)
{
    check_open(self, cmd);
    if (index >= self->owner->most_bound)
        misuse(self, cmd, "index %lu: maxKernelBufferBindCount is %lu", index,
               self->owner->most_bound);
    object_check(self, cmd, buffer, &MTLBuffer);
    if (offset > UINT32_MAX) misuse(self, cmd, "offset %lu: has more than 32 bits", offset);
    buffer_check(self, cmd, buffer, (range_t){offset, 1});
    self->slot->set.bound[index] = (bound_t){buffer, offset, NULL};
}

static void command_set_barrier(command_slot_t *self, sel_t cmd)
{
    check_open(self, cmd);
    self->slot->barrier = true;
}

static void command_dispatch(command_slot_t *self, sel_t cmd, extent_t groups, extent_t threads)
{
    check_open(self, cmd);
    groups_check(self, cmd, groups);
    bindings_check(self, cmd, &self->slot->set, threads);
    dispatch_fill(&self->slot->dispatch, &self->slot->set, threads);
    dispatch_groups(&self->slot->dispatch, groups);
    self->slot->state = ENCODED;
}

static void command_reset(command_slot_t *self, sel_t cmd)
{
    check_idle(self, cmd, self->owner);
    slot_reset(self->slot);
}

typedef struct indirect_work_t {
    work_t work; // the first that it uses are the commands
    indirect_t *commands;
    range_t range;
    const buffer_t *counts; // one of what it uses: has the range; NULL: `range` has
    unsigned long at;
    unsigned encoder; // its number
    bool serial;      // its works follow each other
    bool mixed;       // what no barrier orders runs in any order
    bool ahead;       // counted in the commands'
} indirect_work_t;

// What the commands use must live until they run; nothing else keeps it.
static bool is_whole(const slot_t *slot, unsigned long index)
{
    bool dead = slot->state != ENCODED || object_is_dead(slot->set.pipeline);
    for (int i = 0; !dead && i < BUFFERS; i++)
        dead = slot->set.bound[i].buffer && object_is_dead(slot->set.bound[i].buffer);
    if (dead) complain("indirect command %lu was never encoded, or uses what was released", index);
    return !dead;
}

static unsigned slot_perform(indirect_work_t *work, unsigned long index)
{
    slot_t *slot = &work->commands->slots[index];
    if (slot->state == EMPTY) return ERROR_NONE;
    if (!is_whole(slot, index)) return ERROR_INVALID_RESOURCE;
    dispatch_t dispatch = slot->dispatch; // several may execute it at a time
    dispatch.work.uses = work->work.uses;
    dispatch.work.use_count = work->work.use_count;
    dispatch.encoder = work->encoder;
    return dispatch_perform(&dispatch);
}

// Commands from `first` up to the next one with a barrier, or to `end`.
static unsigned long group_end(const indirect_t *commands, unsigned long first, unsigned long end)
{
    unsigned long last = first + 1;
    while (last < end && !commands->slots[last].barrier) last++;
    return last;
}

static unsigned group_perform(indirect_work_t *work, unsigned long first, unsigned long end)
{
    unsigned long count = end - first, *order = make(count * sizeof *order);
    for (unsigned long i = 0; i < count; i++) {
        unsigned long at = work->mixed ? draw() % (i + 1) : i;
        order[i] = order[at];
        order[at] = first + i;
    }
    unsigned code = ERROR_NONE;
    for (unsigned long i = 0; i < count && code == ERROR_NONE; i++)
        code = slot_perform(work, order[i]);
    free(order);
    return code;
}

// By the GPU, when it comes to the commands.
static range_t range_read(const indirect_work_t *work)
{
    const uint32_t *words = (const void *)(work->counts->gpu + work->at);
    hazard_begin(work->encoder, work->serial, "a range", "of commands");
    hazard_touch(words, 2 * sizeof *words, READS);
    range_t range = {words[0], words[1]};
    hazard_end(work->encoder);
    return range;
}

static unsigned range_perform(indirect_work_t *work)
{
    range_t range = work->counts ? range_read(work) : work->range;
    unsigned long end = range.location + range.length;
    if (end > work->commands->count) {
        complain("%lu indirect commands from %lu: there are %lu", range.length, range.location,
                 work->commands->count);
        return ERROR_INVALID_RESOURCE;
    }
    unsigned code = ERROR_NONE;
    for (unsigned long at = range.location, next; at < end && code == ERROR_NONE; at = next) {
        next = group_end(work->commands, at, end);
        if (work->commands->slots[at].barrier) hazard_barrier(work->encoder);
        code = group_perform(work, at, next);
    }
    return code;
}

static void work_over(indirect_work_t *work)
{
    if (work->ahead) atomic_fetch_sub(&work->commands->ahead, 1);
    work->ahead = false;
}

static unsigned perform_indirect(work_t *work)
{
    unsigned code = range_perform((indirect_work_t *)work);
    work_over((indirect_work_t *)work);
    return code;
}

void indirect_committed(const command_t *command)
{
    for (work_t *work = command->works; work; work = work->next) {
        if (work->perform != perform_indirect) continue;
        ((indirect_work_t *)work)->ahead = true;
        atomic_fetch_add(&((indirect_work_t *)work)->commands->ahead, 1);
    }
}

void indirect_ended(const command_t *command)
{
    for (work_t *work = command->works; work; work = work->next)
        if (work->perform == perform_indirect) work_over((indirect_work_t *)work);
}

// With a set of its queue the GPU may see what the encoder does not name.
static void check_named(const void *self, sel_t cmd, const slot_t *slot, const named_t *named,
                        bool by_sets)
{
    const char *kernel = slot->set.pipeline->function->entry->name;
    if (settings()->family < 9 && !is_named(named, slot->set.pipeline))
        misuse(self, cmd,
               "kernel %s: GPUs before Apple 9 want its pipeline to be set in the encoder", kernel);
    for (int i = 0; !by_sets && i < BUFFERS; i++)
        if (slot->set.bound[i].buffer && !is_named(named, slot->set.bound[i].buffer))
            misuse(self, cmd, "kernel %s: the encoder does not name (useResource:) its buffer(%d)",
                   kernel, i);
}

void indirect_execute(const void *self, sel_t cmd, indirect_t *commands, encoder_t *encoder,
                      const named_t *named, const execution_t *execution)
{
    object_check(self, cmd, commands, &MTLIndirectCommandBuffer);
    range_t range = execution->counts ? (range_t){0, commands->count} : execution->range;
    check_range(self, cmd, commands, range);
    if (!execution->counts && !range.length) misuse(self, cmd, "a range of no commands");
    if (settings()->discrete && range.length > COMMANDS_MAX && !execution->counts)
        misuse(self, cmd, "%lu commands: a GPU of a Mac takes %d", range.length, COMMANDS_MAX);
    for (unsigned long i = 0; i < range.length; i++)
        if (commands->slots[range.location + i].state == ENCODED)
            check_named(self, cmd, &commands->slots[range.location + i], named,
                        encoder->command->queue->set_count);
    unsigned count = 0;
    void **uses = make((execution->used_count + 2) * sizeof *uses);
    uses[count++] = commands;
    if (execution->counts) uses[count++] = execution->counts;
    for (unsigned i = 0; i < execution->used_count; i++) uses[count++] = execution->used[i];
    indirect_work_t *work =
        command_add(encoder->command, sizeof *work, perform_indirect, uses, count);
    free(uses);
    work->commands = commands;
    work->range = execution->range;
    work->counts = execution->counts;
    work->at = execution->at;
    work->encoder = encoder->number;
    work->serial = !encoder->concurrent;
    work->mixed = settings()->seed && encoder->concurrent;
}

static void *descriptor_new(class_t *self, sel_t cmd)
{
    descriptor_t *descriptor = object_new(&MTLIndirectCommandBufferDescriptor);
    descriptor->inherits_buffers = descriptor->inherits_pipeline = true;
    return descriptor;
}

static void descriptor_set_types(descriptor_t *self, sel_t cmd, unsigned long types)
{
    self->types = types;
}

static void descriptor_set_bound(descriptor_t *self, sel_t cmd, unsigned long most)
{
    self->most_bound = most;
}

static void descriptor_set_buffers(descriptor_t *self, sel_t cmd, bool inherits)
{
    self->inherits_buffers = inherits;
}

static void descriptor_set_pipeline(descriptor_t *self, sel_t cmd, bool inherits)
{
    self->inherits_pipeline = inherits;
}

static class_t MTLIndirectCommandBufferDescriptor = {
    .name = "MTLIndirectCommandBufferDescriptor",
    .size = sizeof(descriptor_t),
    .methods =
        (method_t[]){METHOD("setCommandTypes:", descriptor_set_types),
                     METHOD("setMaxKernelBufferBindCount:", descriptor_set_bound),
                     METHOD("setInheritBuffers:", descriptor_set_buffers),
                     METHOD("setInheritPipelineState:", descriptor_set_pipeline), METHODS_END}};
static class_t descriptor_meta = {.name = "MTLIndirectCommandBufferDescriptor",
                                  .methods =
                                      (method_t[]){METHOD("new", descriptor_new), METHODS_END}};

static class_t MTLIndirectCommandBuffer = {
    .name = "MTLIndirectCommandBuffer",
    .size = sizeof(indirect_t),
    .dealloc = indirect_dealloc,
    .methods =
        (method_t[]){METHOD("size", indirect_size), METHOD("resetWithRange:", indirect_reset),
                     METHOD_MAY_FAIL("indirectComputeCommandAtIndex:", indirect_at), METHODS_END}};

static class_t MTLIndirectComputeCommand = {
    .name = "MTLIndirectComputeCommand",
    .size = sizeof(command_slot_t),
    .dealloc = command_dealloc,
    .methods = (method_t[]){
        METHOD("setComputePipelineState:", command_set_pipeline),
        METHOD("setKernelBuffer:offset:atIndex:", command_set_buffer),
        METHOD("setBarrier", command_set_barrier), METHOD("reset", command_reset),
        METHOD("concurrentDispatchThreadgroups:threadsPerThreadgroup:", command_dispatch),
        METHODS_END}};

void indirect_add(void)
{
    class_add_meta(&MTLIndirectCommandBufferDescriptor, &descriptor_meta);
    class_add(&MTLIndirectCommandBuffer);
    class_add(&MTLIndirectComputeCommand);
}
