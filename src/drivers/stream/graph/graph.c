// SPDX-License-Identifier: Apache-2.0
#include "drivers/stream/graph/graph.h"

#include <string.h>

#include "base/clock.h"
#include "base/list.h"
#include "base/memory.h"
#include "base/status.h"

// How often, and after which pause, a run looks again for the memory of its graph.
enum { ROUNDS = 200, ROUND_NS = 1000000 };

// What a recording is prepared to.
struct stream_prepared_t {
    stream_prepared_t *next, *previous;  // of the device
    lock_t lock;                         // for changes of the list and of whose they are
    graph_instance_t *_Atomic instances; // owned; all stay as long as this
};

static void instance_destroy(graph_instance_t *instance)
{
    stream_device_t *device = instance->device;
    graph_unbuild(instance);
    stream_free(device, true, device->api->free_device, (void *)(uintptr_t)instance->memory);
    stream_blocks_return(device, instance->updates);
    mem_free(instance->pieces);
    mem_free(instance->nodes);
    mem_free(instance->slots);
    mem_free(instance->refusals);
    mem_free(instance->late);
    mem_free(instance->parameters);
    mem_free(instance->buffers);
    mem_free(instance);
}

void stream_graphs_orphan(stream_device_t *device, const stream_queue_t *queue)
{
    lock_enter(&device->lock);
    for (stream_prepared_t *prepared = device->prepared; prepared; prepared = prepared->next) {
        lock_enter(&prepared->lock);
        for (graph_instance_t *i = atomic_load(&prepared->instances); i; i = i->next)
            if (atomic_load(&i->queue) == queue) atomic_store(&i->queue, NULL);
        lock_leave(&prepared->lock);
    }
    lock_leave(&device->lock);
}

void stream_recording_discard(keel_recording_t *recording)
{
    stream_prepared_t *prepared = atomic_load(&recording->prepared);
    stream_device_t *device = stream_device(recording->device);
    if (stream_device_is_ours(device)) {
        lock_enter(&device->lock);
        LIST_REMOVE(device->prepared, prepared);
        lock_leave(&device->lock);
    }
    for (graph_instance_t *next, *i = atomic_load(&prepared->instances); i; i = next) {
        next = i->next;
        instance_destroy(i);
    }
    mem_free(prepared);
}

KEEL_HOT static keel_status_t prepared_of(keel_recording_t *recording, stream_prepared_t **prepared)
{
    // acquire: pairs with the store of the thread that made it.
    *prepared = atomic_load_explicit(&recording->prepared, memory_order_acquire);
    if (*prepared) return NULL;
    stream_device_t *device = stream_device(recording->device);
    stream_prepared_t *made = mem_zalloc(sizeof *made);
    lock_enter(&device->lock);
    *prepared = atomic_load(&recording->prepared);
    if (!*prepared && (*prepared = made)) {
        LIST_ADD(device->prepared, made);
        atomic_store(&recording->prepared, made);
        made = NULL;
    }
    lock_leave(&device->lock);
    mem_free(made);
    return *prepared ? NULL : status_no_memory();
}

// The queue's; or, for no queue, one whose queue has gone.
static graph_instance_t *instance_of(stream_prepared_t *prepared, const stream_queue_t *queue)
{
    // acquire: what it is was written before it became the queue's, which it stays.
    graph_instance_t *i = atomic_load_explicit(&prepared->instances, memory_order_acquire);
    while (i && atomic_load_explicit(&i->queue, memory_order_acquire) != queue) i = i->next;
    return i;
}

// The queue's, be it one whose queue has gone, which is the queue's from then on. Under the lock.
static graph_instance_t *instance_adopt(stream_prepared_t *prepared, const stream_queue_t *queue)
{
    graph_instance_t *instance = instance_of(prepared, queue);
    if (!instance && (instance = instance_of(prepared, NULL)))
        instance->fresh = instance->updatable; // for it was uploaded to another stream
    // release: pairs with instance_of.
    if (instance) atomic_store_explicit(&instance->queue, queue, memory_order_release);
    return instance;
}

static graph_instance_t *instance_find(stream_prepared_t *prepared, const stream_queue_t *queue)
{
    graph_instance_t *instance = instance_of(prepared, queue);
    if (instance) return instance;
    lock_enter(&prepared->lock);
    instance = instance_adopt(prepared, queue);
    lock_leave(&prepared->lock);
    return instance;
}

// What the nodes work on, to be compared with the next time.
static keel_status_t instance_note_refs(graph_instance_t *instance)
{
    const keel_recording_t *recording = instance->recording;
    const keel_parameter_need_t *need = recording->parameters;
    bool written = need && need->written;
    instance->late_count = commands_late(recording->commands, NULL);
    instance->slots = mem_zalloc(recording->options.slots * sizeof *instance->slots);
    instance->refusals = mem_zalloc(recording->commands->count);
    instance->late = mem_zalloc(instance->late_count * sizeof *instance->late);
    instance->buffers = mem_zalloc(instance->late_count * sizeof *instance->buffers);
    if (written) instance->parameters = mem_zalloc(need->size);
    if (!instance->slots || !instance->refusals || !instance->late || !instance->buffers ||
        (written && !instance->parameters))
        return status_no_memory();
    commands_late(recording->commands, instance->buffers);
    instance->moves = recording->options.slots || instance->late_count || written;
    return NULL;
}

static keel_status_t instance_create(keel_recording_t *recording, const stream_queue_t *queue,
                                     graph_instance_t **made)
{
    graph_instance_t *instance = mem_zalloc(sizeof *instance);
    if (!instance) return status_no_memory();
    instance->recording = recording;
    instance->device = stream_device(recording->device);
    atomic_store(&instance->queue, queue);
    const stream_api_t *api = instance->device->api;
    keel_status_t status = instance_note_refs(instance);
    uint64_t size = GRAPH_PARAMETERS;
    if (graph_reads_parameters(instance)) size += recording->parameters->size;
    if (!status) status = api->alloc_device(instance->device->vendor, size, &instance->memory);
    *made = instance;
    if (status) instance_destroy(instance);
    return status;
}

// Lists it, unless there is one for the queue by now, which is then taken instead.
static graph_instance_t *instance_publish(stream_prepared_t *prepared, graph_instance_t *instance)
{
    lock_enter(&prepared->lock);
    graph_instance_t *other = instance_adopt(prepared, atomic_load(&instance->queue));
    if (!other) {
        instance->next = atomic_load(&prepared->instances);
        // release: pairs with instance_of.
        atomic_store_explicit(&prepared->instances, instance, memory_order_release);
    }
    lock_leave(&prepared->lock);
    if (!other) return instance;
    instance_destroy(instance);
    return other;
}

// Whether parameters in nodes are others now.
static bool parameters_changed(const graph_instance_t *instance, const stream_context_t *context)
{
    return instance->parameters && memcmp(instance->parameters, context->binder.parameters,
                                          instance->recording->parameters->size) != 0;
}

// All nodes have them.
static void parameters_note(graph_instance_t *instance, const stream_context_t *context)
{
    if (instance->parameters)
        memcpy(instance->parameters, context->binder.parameters,
               instance->recording->parameters->size);
}

// Notes where everything lies; true if that is where it was, and parameters are what they were.
static bool instance_compare(graph_instance_t *instance, const stream_context_t *context)
{
    bool same = !instance->stale && !parameters_changed(instance, context);
    instance->all_changed = !instance->parameters; // a node may have nothing but parameters
    for (uint32_t i = 0; i < instance->recording->options.slots; i++) {
        bound_t span;
        keel_ref_t whole = {.slot = i, .length = KEEL_WHOLE};
        if (!context->binder.table[i].buffer) continue; // nothing uses it
        // What has no memory is found out, and said, where it is used.
        keel_status_t status = bind_ref(&context->binder, &whole, &span);
        if (status) span = (bound_t){0, 0};
        keel_status_release(status);
        graph_slot_t *slot = &instance->slots[i];
        slot->changed =
            span.address != slot->span.address || span.length != slot->span.length || !span.address;
        same &= !slot->changed;
        instance->all_changed &= slot->changed;
        slot->span = span;
    }
    instance->late_changed = false;
    for (uint32_t i = 0; i < instance->late_count; i++) {
        // relaxed: the alloca was issued before us.
        uint64_t address =
            atomic_load_explicit(&instance->buffers[i]->address, memory_order_relaxed);
        instance->late_changed |= address != instance->late[i] || !address;
        instance->late[i] = address;
    }
    instance->all_changed &= !instance->late_count || instance->late_changed;
    return same && !instance->late_changed;
}

// Makes an instance for what the context says. *culprit: the command that an error is about.
static keel_status_t instance_make(keel_recording_t *recording, const stream_queue_t *queue,
                                   const stream_context_t *context, graph_instance_t **made,
                                   const keel_command_t **culprit)
{
    graph_instance_t *instance = NULL;
    KEEL_TRY(instance_create(recording, queue, &instance));
    stream_context_t own = *context;
    if (own.binder.anywhere) own.binder.anywhere = instance->memory + GRAPH_ANYWHERE;
    own.binder.parameters_at = instance->memory + GRAPH_PARAMETERS;
    keel_status_t status = graph_build(instance, &own);
    if (status) {
        *culprit = instance->culprit;
        instance_destroy(instance);
        return status;
    }
    instance->stale = instance->guessed = own.binder.anywhere && instance->moves;
    if (!own.binder.anywhere) {
        instance_compare(instance, &own);
        parameters_note(instance, &own);
    }
    *made = instance;
    return NULL;
}

// Work of other streams does not come after the upload by itself: so it is waited for.
static keel_status_t instance_upload(const graph_instance_t *instance)
{
    stream_device_t *device = instance->device;
    for (uint32_t i = 0; i < instance->piece_count; i++)
        KEEL_TRY(device->api->exec_upload(device->vendor, instance->pieces[i].exec, device->side));
    return stream_device_drain(device, device->side);
}

static keel_status_t prepare(keel_recording_t *recording, stream_queue_t *queue)
{
    stream_device_t *device = stream_queue_device(queue);
    stream_context_t context = {.device = device, .binder.anywhere = 1};
    stream_prepared_t *prepared;
    graph_instance_t *instance;
    const keel_command_t *culprit = NULL;
    KEEL_TRY(prepared_of(recording, &prepared));
    if (instance_find(prepared, queue)) return NULL;
    keel_status_t status = instance_make(recording, queue, &context, &instance, &culprit);
    if (status) return culprit ? recording_blame(recording, culprit, status) : status;
    if (stream_device_has(device, STREAM_UPLOAD)) status = instance_upload(instance);
    if (status)
        instance_destroy(instance);
    else
        instance_publish(prepared, instance);
    return status;
}

keel_status_t stream_graph_prepare(keel_recording_t *recording, stream_queue_t *queue)
{
    stream_device_t *device = stream_queue_device(queue);
    stream_entered_t entered;
    if (!stream_enter(device, &entered)) return stream_device_lost(device);
    keel_status_t status = prepare(recording, queue);
    if (keel_status_code(status) == KEEL_RESOURCE_EXHAUSTED) {
        keel_status_release(status);
        stream_memory_gather(device);
        status = prepare(recording, queue);
    }
    stream_leave(&entered);
    return stream_device_note(device, status);
}

typedef struct touch_t {
    const graph_instance_t *instance;
    const unsigned char *parameters; // of the execution
    bool touched;
} touch_t;

static void ref_touch(void *user, const keel_ref_t *ref)
{
    touch_t *touch = user;
    const graph_instance_t *instance = touch->instance;
    if (keel_ref_is_parameter(ref))
        touch->touched |= memcmp(instance->parameters + ref->offset,
                                 touch->parameters + ref->offset, ref->length) != 0;
    else
        touch->touched |= ref->buffer ? instance->late_changed && ref->buffer->root->pool
                                      : instance->slots[ref->slot].changed;
}

// Whether a node works on something that lies elsewhere now, or has other parameters.
static bool node_is_touched(const graph_instance_t *instance, const stream_context_t *context,
                            const graph_node_t *node)
{
    touch_t touch = {instance, context->binder.parameters, false};
    if (!node->changes || instance->stale || instance->all_changed) return node->changes;
    command_refs(node->command, ref_touch, &touch);
    return touch.touched;
}

// Whether the vendor stands in the way of changing a node.
static keel_status_t node_change(graph_instance_t *instance, const graph_node_t *node,
                                 const graph_work_t *work, bool *refused)
{
    *refused = work->kind != node->kind;
    if (*refused) return NULL;
    keel_status_t status = graph_work_set(instance, node, work);
    if (!status || keel_status_code(status) == KEEL_DEVICE_LOST) return status;
    keel_status_release(status);
    *refused = true;
    return NULL;
}

// *refused: some could not be changed, and the graph is to be made anew.
static keel_status_t nodes_change(stream_run_t *run, graph_instance_t *instance,
                                  const stream_context_t *context, bool *refused)
{
    graph_work_t work;
    graph_rebinder_t rebinder;
    *refused = false;
    instance->culprit = NULL;
    KEEL_TRY(graph_rebind_begin(run, instance, &rebinder));
    for (uint32_t i = 0; i < instance->node_count; i++) {
        const graph_node_t *node = &instance->nodes[i];
        if (!node_is_touched(instance, context, node)) continue;
        bool this_one = false;
        keel_status_t status = graph_work_make(instance, context, node, &work);
        if (!status && node->handle)
            graph_rebind_add(&rebinder, node, &work.launch);
        else if (!status)
            status = node_change(instance, node, &work, &this_one);
        if (work.arguments.large) mem_free(work.arguments.large);
        if (status) instance->culprit = node->command;
        KEEL_TRY(status);
        *refused |= this_one;
        uint8_t *refusals = &instance->refusals[node->number - 1];
        // What was only guessed says nothing about what is to come.
        if (this_one && !instance->guessed && *refusals < GRAPH_STUBBORN) ++*refusals;
    }
    return *refused ? NULL : graph_rebind_end(run, instance, &rebinder);
}

// Changes it to what the context says, unless that is put off. Most runs come without this, and
// without its large frame.
__attribute__((noinline)) static keel_status_t
instance_adapt(stream_run_t *run, graph_instance_t *instance, const stream_context_t *context)
{
    stream_queue_t *queue = stream_run_queue(run);
    const stream_device_t *device = instance->device;
    if (instance_compare(instance, context)) return NULL;
    bool refused = !instance->piece_count; // it could not be made the last time
    keel_status_t status = refused ? NULL : nodes_change(run, instance, context, &refused);
    if (!status && refused) {
        graph_unbuild(instance);
        instance->stale |= device->limits.quirks.graph_waits && stream_queue_puts_off(queue);
        if (stream_queue_has_put_off(queue)) return NULL;
        status = graph_build(instance, context);
        if (status) graph_unbuild(instance);
    }
    instance->stale = status != NULL; // some of them may be changed, or none
    if (!status) instance->guessed = false;
    if (!status) parameters_note(instance, context);
    return status;
}

static keel_status_t report_fetch(stream_run_t *run, const keel_cmd_execute_t *c,
                                  graph_instance_t *instance)
{
    bound_copy_t copy = {.source = instance->memory + GRAPH_REPORT, .size = 16};
    KEEL_TRY(stream_run_report(run, c, &copy.target));
    return instance->device->api->copy(instance->device->vendor,
                                       stream_queue_onto_copy(stream_run_queue(run)), &copy);
}

// Copies the parameters of the execution to where the device reads them.
static keel_status_t parameters_send(stream_run_t *run, const keel_cmd_execute_t *c,
                                     const graph_instance_t *instance)
{
    void *data;
    bound_copy_t copy = {.target = instance->memory + GRAPH_PARAMETERS, .size = c->parameter_size};
    KEEL_TRY(stream_stage(run, c->parameter_size, &data, &copy.source));
    memcpy(data, keel_execute_parameters(c), c->parameter_size);
    return instance->device->api->copy(instance->device->vendor,
                                       stream_queue_onto_copy(stream_run_queue(run)), &copy);
}

// What comes in front of a run.
static keel_status_t front_issue(stream_run_t *run, const keel_cmd_execute_t *c,
                                 const graph_instance_t *instance)
{
    if (graph_reads_parameters(instance)) KEEL_TRY(parameters_send(run, c, instance));
    if (!instance->reports) return NULL;
    // What the device finds out during this run is for this run alone.
    bound_fill_t fill = {instance->memory + GRAPH_REPORT, 4, 0, 4};
    return instance->device->api->fill(instance->device->vendor,
                                       stream_queue_onto_copy(stream_run_queue(run)), &fill);
}

static keel_status_t instance_run(stream_run_t *run, const keel_cmd_execute_t *c,
                                  graph_instance_t *instance, stream_step_t *step)
{
    stream_device_t *device = instance->device;
    stream_queue_t *queue = stream_run_queue(run);
    stream_run_follow(run, STREAM_TAIL_OWN);
    for (; run->piece < instance->piece_count; run->piece++) {
        uint64_t room = instance->pieces[run->piece].room;
        if (stream_queue_lacks(queue, room)) *step = STREAM_STEP_AGAIN;
        if (*step == STREAM_STEP_AGAIN) return NULL;
        if (instance->fronted && !run->piece) KEEL_TRY(front_issue(run, c, instance));
        stream_exec_h exec = instance->pieces[run->piece].exec;
        if (__builtin_expect(instance->fresh, 0))
            KEEL_TRY(device->api->exec_upload(device->vendor, exec, stream_queue_onto(queue)));
        KEEL_TRY(device->api->exec_run(device->vendor, exec, stream_queue_onto_for(queue, room)));
    }
    run->piece = 0;
    instance->fresh = false;
    return instance->reports ? report_fetch(run, c, instance) : NULL;
}

// There was no memory for an instance. The queue's own thread takes what pools hold, and tries
// again while memory is on its way back. Between, it steps aside: what gives memory back waits
// until no thread issues. Consumes the refusal.
KEEL_COLD static keel_status_t
instance_starved(stream_run_t *run, const keel_cmd_execute_t *c, const stream_context_t *context,
                 graph_instance_t **made, const keel_command_t **culprit, keel_status_t refusal)
{
    stream_device_t *device = stream_run_device(run);
    keel_status_release(refusal);
    *culprit = NULL;
    if (stream_queue_puts_off(stream_run_queue(run))) return NULL;
    uint64_t over = reclaim_ended(&device->reclaim);
    stream_pools_empty(device);
    keel_status_t status =
        instance_make(c->recording, stream_run_queue(run), context, made, culprit);
    if (keel_status_code(status) != KEEL_RESOURCE_EXHAUSTED || run->rounds == ROUNDS ||
        !reclaim_is_coming(&device->reclaim, over + run->frees))
        return status;
    keel_status_release(status);
    *culprit = NULL;
    run->rounds++;
    run->aside = true;
    atomic_fetch_add(&device->chores.wanted, 1);
    clock_sleep(ROUND_NS);
    atomic_fetch_sub(&device->chores.wanted, 1);
    return NULL;
}

// The queue's instance, made for what the context says if there is none; unless that is put off.
static keel_status_t instance_get(stream_run_t *run, const keel_cmd_execute_t *c,
                                  const stream_context_t *context, graph_instance_t **got,
                                  const keel_command_t **culprit)
{
    keel_recording_t *recording = c->recording;
    stream_queue_t *queue = stream_run_queue(run);
    stream_prepared_t *prepared;
    KEEL_TRY(prepared_of(recording, &prepared));
    *got = instance_find(prepared, queue);
    bool waits = stream_queue_device(queue)->limits.quirks.graph_waits;
    if (*got || (waits && stream_queue_puts_off(queue))) return NULL;
    keel_status_t status = instance_make(recording, queue, context, got, culprit);
    if (keel_status_code(status) == KEEL_RESOURCE_EXHAUSTED)
        status = instance_starved(run, c, context, got, culprit, status);
    if (!status && *got) *got = instance_publish(prepared, *got);
    return status;
}

KEEL_HOT keel_status_t stream_graph_run(stream_run_t *run, const keel_cmd_execute_t *c,
                                        stream_step_t *step)
{
    stream_queue_t *queue = stream_run_queue(run);
    stream_device_t *device = stream_queue_device(queue);
    stream_context_t context = {.device = device, .binder = binder_of(c)};
    graph_instance_t *instance = NULL;
    const keel_command_t *culprit = NULL;
    keel_status_t status = instance_get(run, c, &context, &instance, &culprit);
    if (!status && instance && (instance->moves || instance->stale)) {
        context.binder.parameters_at = instance->memory + GRAPH_PARAMETERS;
        status = instance_adapt(run, instance, &context);
        if (status) culprit = instance->culprit;
    }
    // To make the graph is put off, or there is no memory for it yet.
    if (stream_queue_has_put_off(queue) || run->aside) *step = STREAM_STEP_AGAIN;
    if (!status && *step == STREAM_STEP_DONE) status = instance_run(run, c, instance, step);
    if (!status) return NULL;
    status = stream_device_note(device, status);
    return culprit ? submission_blame(&run->base, c, culprit, status)
                   : submission_blame(&run->base, NULL, &c->head, status);
}
