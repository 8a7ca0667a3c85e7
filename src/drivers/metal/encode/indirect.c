// SPDX-License-Identifier: Apache-2.0
// Indirect command buffers: dispatches of a recording that are encoded once, and then executed by
// one message as often as the recording is.
//
// A stretch of a recording that has nothing but dispatches and barriers is executed so, if each of
// its dispatches is the same every time: it binds buffers that have their memory for good, and its
// constants and counts are the recording's own. Indirect commands take no bytes, so blocks of
// arguments, and argument buffers, lie in a buffer. A barrier is a flag of the command behind it.
//
// Encoding takes more messages than doing without, so a recording is looked at when it is prepared
// (keel_recording_prepare), or comes for the third time. Nothing is changed after that: as many
// submissions as like execute the same commands at a time.
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "drivers/metal/encode/encode.h"
#include "drivers/metal/executable/module.h"
#include "drivers/metal/memory/memory.h"
#include "kit/object.h"

enum {
    LEAST = 4,          // dispatches of a stretch: fewer gain next to nothing
    MOST = 16384,       // of a recording, which GPUs of other makers execute at a time
    USED = 512,         // buffers of a recording, at most, as the next
    PIPELINES = 64,     // of these
    REPLAYS = 3,        // before a recording is looked at that was not prepared
    ALIGNED = 256,      // what every GPU takes as the offset of constants
    BOUND = 3,          // buffers of a command: what is at the indices of device.h
    CONCURRENT = 1 << 5 // MTLIndirectCommandTypeConcurrentDispatch
};

// Dispatches, from `first` to `last`, which are executed as one.
typedef struct stretch_t {
    const keel_command_t *first, *last;
    uint32_t begin, count; // of the commands
    uint64_t bytes;        // of their blocks
    bool ordered;          // there are barriers between them
} stretch_t;

typedef enum state_t { NOT_MADE, MAKING, MADE, REFUSED } state_t;

// What the commands of a recording use, which it keeps.
typedef struct uses_t {
    id buffers[USED];
    uint32_t buffer_count;
    id pipelines[PIPELINES];
    uint32_t pipeline_count;
} uses_t;

// What recording->prepared points to.
typedef struct indirect_t {
    _Atomic uint32_t replays;
    _Atomic uint32_t state; // state_t; what follows is there if it is MADE, and stays
    id commands;            // retained
    struct metal_memory_t *blocks;
    stretch_t *stretches; // owned, in the order of the recording
    uint32_t stretch_count;
    uses_t *uses; // owned
} indirect_t;

void metal_indirect_find(metal_device_t *device, bool wanted)
{
    enum { METAL3 = 5001, APPLE9 = 1009 }; // MTLGPUFamily
    const metal_api_t *api = device->api;
    const char *name = mtl_utf8(api, mtl_name(api, device->device));
    bool is_virtual = name && strstr(name, "Paravirtual"); // Metal asserts there
    device->indirect = wanted && !is_virtual && mtl_supports_family(api, device->device, METAL3) &&
                       mtl_responds(api, device->device, api->selectors.new_indirect);
    device->touches = !mtl_supports_family(api, device->device, APPLE9);
}

// Memory that is there for as long as the buffer is.
static bool is_fixed(const keel_ref_t *ref)
{
    return ref->buffer && !ref->buffer->root->pool;
}

static bool takes_arguments(const keel_cmd_dispatch_t *c)
{
    return !c->raw && ((const metal_kernel_t *)c->kernel)->bound;
}

// Argument buffers that an encoder of Metal's writes would have to be written with each command.
static bool dispatch_is_fixed(const keel_cmd_dispatch_t *c)
{
    const metal_kernel_t *kernel = c->kernel;
    const keel_patch_t *patches = command_patches(c);
    bool encoded = takes_arguments(c) && metal_device(c->executable->device)->encoded;
    bool fixed = c->counts_kind == KEEL_COUNTS_DIRECT && !encoded && !metal_local_of(c);
    for (uint16_t i = 0; fixed && i < c->binding_count; i++) fixed = is_fixed(&c->bindings[i]);
    for (uint16_t i = 0; fixed && i < c->patch_count; i++) fixed = is_fixed(&patches[i].ref);
    return fixed && metal_threads_fit(c, kernel->code->threads);
}

static bool is_empty(const keel_cmd_dispatch_t *c)
{
    return !c->groups[0] || !c->groups[1] || !c->groups[2];
}

static uint64_t bytes_of(const keel_cmd_dispatch_t *c)
{
    uint64_t most = 16 + 16u * c->binding_count + c->constant_size + 16; // the block's, and ends
    if (takes_arguments(c)) most = metal_arguments_layout(c).bytes;
    return (most + ALIGNED - 1) / ALIGNED * ALIGNED;
}

static bool is_plain_barrier(uint32_t kind)
{
    return kind == KEEL_CMD_BARRIER || kind == KEEL_CMD_EVENT_WAIT;
}

// What may stand between dispatches of a stretch.
static bool is_between(uint32_t kind)
{
    return is_plain_barrier(kind) || kind == KEEL_CMD_EVENT_SET || kind == KEEL_CMD_GROUP_BEGIN ||
           kind == KEEL_CMD_GROUP_END;
}

static const keel_cmd_dispatch_t *dispatch_of(const keel_command_t *c)
{
    return c->kind == KEEL_CMD_DISPATCH ? (const void *)c : NULL;
}

// The next stretch from *at on, which is moved behind it. False: there are no more.
static bool stretch_next(const keel_commands_t *commands, const keel_command_t **at,
                         stretch_t *stretch)
{
    const keel_command_t *c = *at, *end = keel_commands_end(commands);
    bool barrier = false;
    *stretch = (stretch_t){0};
    for (; c != end; c = keel_command_next(c)) {
        const keel_cmd_dispatch_t *dispatch = dispatch_of(c);
        bool fixed = dispatch && dispatch_is_fixed(dispatch);
        if (!fixed && !is_between(c->kind)) {
            if (stretch->count >= LEAST) break;
            *stretch = (stretch_t){0};
        }
        if (!stretch->count) barrier = false;
        if (is_plain_barrier(c->kind)) barrier = true;
        if (!fixed || is_empty(dispatch)) continue;
        if (!stretch->count) stretch->first = c;
        stretch->ordered |= barrier;
        stretch->last = c;
        stretch->count++;
        stretch->bytes += bytes_of(dispatch);
    }
    *at = c;
    return stretch->count >= LEAST;
}

// Lists an object once. False: there are too many.
static bool list(id *all, uint32_t *count, uint32_t most, id object)
{
    for (uint32_t i = *count; i-- > 0;)
        if (all[i] == object) return true;
    if (*count == most) return false;
    all[(*count)++] = object;
    return true;
}

static bool buffer_list(uses_t *uses, id buffer)
{
    return list(uses->buffers, &uses->buffer_count, USED, buffer);
}

static bool ref_list(uses_t *uses, const keel_ref_t *ref)
{
    metal_place_t place;
    keel_status_t status = metal_place(ref, NULL, &place);
    bool listed = !status && buffer_list(uses, place.buffer);
    keel_status_release(status);
    return listed;
}

static bool uses_list(uses_t *uses, const keel_cmd_dispatch_t *c, id state)
{
    const keel_patch_t *patches = command_patches(c);
    const metal_kernel_t *kernel = c->kernel;
    bool listed = list(uses->pipelines, &uses->pipeline_count, PIPELINES, state);
    if (kernel->variables) listed &= buffer_list(uses, kernel->variables);
    for (uint16_t i = 0; listed && i < c->binding_count; i++)
        listed = ref_list(uses, &c->bindings[i]);
    for (uint16_t i = 0; listed && i < c->patch_count; i++)
        listed = ref_list(uses, &patches[i].ref);
    return listed;
}

// Where the next command and its block go.
typedef struct cursor_t {
    uint32_t index;
    uint64_t offset;
    bool barrier;
} cursor_t;

static bool block_write(metal_device_t *device, indirect_t *indirect, const keel_cmd_dispatch_t *c,
                        uint64_t offset)
{
    _Alignas(16) unsigned char block[METAL_BLOCK];
    unsigned char *data = mtl_contents(device->api, metal_memory_buffer(indirect->blocks));
    uint32_t size = 0;
    keel_status_t status = metal_block_make(c, NULL, c->groups, block, &size);
    bool made = !status;
    keel_status_release(status);
    if (made && takes_arguments(c))
        metal_arguments_write(c, block, data + offset,
                              metal_memory_address(indirect->blocks) + offset);
    else if (made)
        memcpy(data + offset, block, size);
    return made;
}

// What the kernel finds at its indices.
static void buffers_set(metal_device_t *device, const indirect_t *indirect,
                        const keel_cmd_dispatch_t *c, unsigned long offset, id command)
{
    const metal_api_t *api = device->api;
    const metal_kernel_t *kernel = c->kernel;
    const metal_layout_t layout = metal_arguments_layout(c);
    id blocks = metal_memory_buffer(indirect->blocks);
    bool arguments = takes_arguments(c);
    mtl_set_kernel_buffer(api, command, blocks, offset, METAL_AT_BLOCK);
    if (arguments && c->constant_size)
        mtl_set_kernel_buffer(api, command, blocks, offset + layout.constants, METAL_AT_CONSTANTS);
    if (arguments && kernel->code->sizes)
        mtl_set_kernel_buffer(api, command, blocks, offset + layout.sizes, METAL_AT_SIZES);
    if (!arguments && kernel->variables)
        mtl_set_kernel_buffer(api, command, kernel->variables, 0, METAL_AT_VARIABLES);
}

static bool dispatch_encode(metal_device_t *device, indirect_t *indirect,
                            const keel_cmd_dispatch_t *c, const cursor_t *at)
{
    const metal_api_t *api = device->api;
    const metal_kernel_t *kernel = c->kernel;
    id state = metal_pipeline_indirect(device, kernel->code);
    // Its limit may be lower; Metal would leave the command out, and not say so.
    if (!state || !metal_threads_fit(c, mtl_pipeline_threads(api, state))) return false;
    if (!uses_list(indirect->uses, c, state)) return false;
    if (!block_write(device, indirect, c, at->offset)) return false;
    id command = mtl_command_at(api, indirect->commands, at->index);
    if (!command) return false;
    mtl_set_pipeline(api, command, state);
    buffers_set(device, indirect, c, (unsigned long)at->offset, command);
    if (at->barrier) mtl_set_barrier(api, command);
    mtl_concurrent_dispatch(api, command, (metal_size_t){c->groups[0], c->groups[1], c->groups[2]},
                            (metal_size_t){c->group_size[0], c->group_size[1], c->group_size[2]});
    return true;
}

static bool stretch_encode(metal_device_t *device, indirect_t *indirect, stretch_t *stretch,
                           cursor_t *at)
{
    stretch->begin = at->index;
    at->barrier = false;
    const keel_command_t *end = keel_command_next(stretch->last);
    for (const keel_command_t *c = stretch->first; c != end; c = keel_command_next(c)) {
        const keel_cmd_dispatch_t *dispatch = dispatch_of(c);
        if (is_plain_barrier(c->kind)) at->barrier = true;
        if (!dispatch || is_empty(dispatch)) continue;
        if (!dispatch_encode(device, indirect, dispatch, at)) return false;
        at->index++;
        at->offset += bytes_of(dispatch);
        at->barrier = false;
    }
    return true;
}

// Room for so many commands, and for their blocks.
static bool buffers_make(metal_device_t *device, indirect_t *indirect, uint32_t count,
                         uint64_t bytes)
{
    const metal_api_t *api = device->api;
    id descriptor = mtl_new(api, api->objc_getClass("MTLIndirectCommandBufferDescriptor"));
    mtl_set_command_types(api, descriptor, CONCURRENT);
    mtl_set_inherit_buffers(api, descriptor, false);
    mtl_set_inherit_pipeline(api, descriptor, false);
    mtl_set_bound_count(api, descriptor, BOUND);
    indirect->commands = mtl_new_indirect(api, device->device, descriptor, count, METAL_SHARED);
    mtl_release(api, descriptor);
    if (!indirect->commands) return false;
    id made = mtl_new_buffer(api, device->device, bytes, METAL_SHARED | METAL_UNTRACKED);
    keel_status_t status = metal_memory_add(device, made, bytes, &indirect->blocks);
    keel_status_release(status);
    return !status && buffer_list(indirect->uses, metal_memory_buffer(indirect->blocks));
}

// Finds the stretches: `counts` has how many there are, and their commands and bytes.
static void stretches_find(const keel_commands_t *commands, stretch_t *stretches, stretch_t *counts,
                           uint32_t *found)
{
    const keel_command_t *at = keel_commands_first(commands);
    stretch_t next;
    *found = 0;
    *counts = (stretch_t){0};
    for (; stretch_next(commands, &at, &next); ++*found) {
        if (stretches) stretches[*found] = next;
        counts->count += next.count;
        counts->bytes += next.bytes;
    }
}

static bool make(metal_device_t *device, indirect_t *indirect, const keel_commands_t *commands)
{
    stretch_t all;
    stretches_find(commands, NULL, &all, &indirect->stretch_count);
    if (!all.count || all.count > MOST) return false;
    indirect->stretches = mem_alloc(indirect->stretch_count * sizeof *indirect->stretches);
    indirect->uses = mem_zalloc(sizeof *indirect->uses);
    if (!indirect->stretches || !indirect->uses) return false;
    stretches_find(commands, indirect->stretches, &all, &indirect->stretch_count);
    if (!buffers_make(device, indirect, all.count, all.bytes)) return false;
    cursor_t at = {0};
    for (uint32_t i = 0; i < indirect->stretch_count; i++)
        if (!stretch_encode(device, indirect, &indirect->stretches[i], &at)) return false;
    return true;
}

static void unmake(metal_device_t *device, indirect_t *indirect, bool ours)
{
    if (ours) mtl_release(device->api, indirect->commands);
    if (ours) metal_memory_remove(device, indirect->blocks);
    mem_free(indirect->stretches);
    mem_free(indirect->uses);
    indirect->commands = NULL;
    indirect->blocks = NULL;
    indirect->stretches = NULL;
    indirect->uses = NULL;
}

// Once; those who come meanwhile do without.
static void make_once(metal_device_t *device, indirect_t *indirect, const keel_commands_t *commands)
{
    uint32_t none = NOT_MADE;
    if (!atomic_compare_exchange_strong(&indirect->state, &none, MAKING)) return;
    bool made = make(device, indirect, commands);
    if (!made) unmake(device, indirect, true);
    // release: what was made is there for those who see it.
    atomic_store_explicit(&indirect->state, made ? MADE : REFUSED, memory_order_release);
}

// What is kept for a recording; NULL: there is no memory for it.
static indirect_t *indirect_of(keel_recording_t *recording)
{
    void *found = atomic_load(&recording->prepared), *none = NULL;
    if (found) return found;
    indirect_t *made = mem_zalloc(sizeof *made);
    if (!made || atomic_compare_exchange_strong(&recording->prepared, &none, made)) return made;
    mem_free(made); // another thread was faster
    return none;
}

keel_status_t metal_recording_prepare(keel_recording_t *recording, keel_queue_t *queue)
{
    metal_device_t *device = metal_device(recording->device);
    (void)queue;
    if (!device->indirect) return NULL;
    indirect_t *indirect = indirect_of(recording);
    if (!indirect) return status_no_memory();
    void *pool = metal_enter(device->api);
    make_once(device, indirect, recording->commands);
    metal_leave(device->api, pool);
    return NULL;
}

void metal_recording_discard(keel_recording_t *recording)
{
    metal_device_t *device = metal_device(recording->device);
    indirect_t *indirect = atomic_load(&recording->prepared);
    bool ours = object_is_ours(&recording->object);
    void *pool = ours ? metal_enter(device->api) : NULL;
    unmake(device, indirect, ours);
    if (ours) metal_leave(device->api, pool);
    mem_free(indirect);
}

// What was made for the recording that runs; NULL: nothing. An execution counts once.
static indirect_t *indirect_get(metal_run_t *run, const keel_cmd_execute_t *execute)
{
    keel_recording_t *recording = execute->recording;
    indirect_t *indirect = recording->options.one_shot ? NULL : indirect_of(recording);
    if (!indirect) return NULL;
    bool again = run->replayed == execute;
    run->replayed = execute;
    if (!again && atomic_fetch_add(&indirect->replays, 1) + 1 >= REPLAYS)
        make_once(metal_run_device(run), indirect, execute->recording->commands);
    // acquire: see make_once.
    uint32_t state = atomic_load_explicit(&indirect->state, memory_order_acquire);
    return state == MADE ? indirect : NULL;
}

static int stretch_compare(const void *key, const void *element)
{
    const keel_command_t *first = ((const stretch_t *)element)->first;
    return (const char *)key<(const char *)first ? -1 : (const char *)key>(const char *) first ? 1
                                                                                               : 0;
}

// In the open encoder: what the commands use.
static void uses_name(metal_run_t *run, const indirect_t *indirect)
{
    metal_device_t *device = metal_run_device(run);
    const metal_api_t *api = device->api;
    const uses_t *uses = indirect->uses;
    if (run->named == indirect) return;
    run->named = indirect;
    if (!device->residency)
        mtl_use_resources(api, run->encoder, uses->buffers, uses->buffer_count,
                          METAL_READ | METAL_WRITE);
    for (uint32_t i = 0; device->touches && i < uses->pipeline_count; i++)
        mtl_set_pipeline(api, run->encoder, uses->pipelines[i]);
}

static keel_status_t execute_encode(metal_run_t *run, const indirect_t *indirect,
                                    const stretch_t *stretch)
{
    KEEL_TRY(metal_encoder_need(run, METAL_COMPUTE));
    uses_name(run, indirect);
    metal_launch_commands(run, indirect->commands, stretch->begin, stretch->count);
    run->pipeline = NULL; // what was set is not relied on
    metal_indices_taken(run);
    if (stretch->ordered) run->base.before = true;
    return NULL;
}

bool metal_indirect(metal_run_t *run, const keel_command_t *c, const keel_cmd_execute_t *execute,
                    keel_status_t *status)
{
    if (!metal_run_device(run)->indirect || !execute || c->kind != KEEL_CMD_DISPATCH) return false;
    if (metal_is_traced(run)) return false;
    const indirect_t *indirect = indirect_get(run, execute);
    const stretch_t *stretch = indirect ? bsearch(c, indirect->stretches, indirect->stretch_count,
                                                  sizeof *indirect->stretches, stretch_compare)
                                        : NULL;
    if (!stretch) return false;
    *status = execute_encode(run, indirect, stretch);
    run->base.inner = stretch->last; // the walk goes on behind it
    return true;
}
