// SPDX-License-Identifier: Apache-2.0
#include "metal/command.h"

#include "metal/compute.h"
#include "metal/counter.h"
#include "metal/device.h"
#include "metal/encoder.h"
#include "metal/event.h"
#include "metal/foundation.h"
#include "metal/hazard.h"
#include "metal/indirect.h"
#include "metal/residency.h"
#include "metal/resident.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void run(task_t *task);

command_t *command_new(queue_t *queue, bool retains)
{
    command_t *command = object_new(&MTLCommandBuffer);
    pthread_mutex_init(&command->lock, NULL);
    pthread_cond_init(&command->changed, NULL);
    command->task.run = run;
    command->queue = object_retain(queue);
    command->retains = retains;
    command->number = hazard_batch();
    command->last_work = &command->works;
    command->last_scheduled = &command->scheduled;
    command->last_completed = &command->completed;
    return command;
}

static void handlers_free(handler_t *first)
{
    for (handler_t *next; first; first = next) {
        next = first->next;
        block_free(first->block);
        free(first);
    }
}

// Done as soon as the works have ended: a handler may find its objects gone.
static void works_free(command_t *command)
{
    for (work_t *work; (work = command->works) != NULL;) {
        command->works = work->next;
        for (unsigned i = 0; i < work->use_count; i++) {
            if (command->retains) object_release(work->uses[i]);
            object_drop(work->uses[i]);
        }
        free(work->uses);
        free(work);
    }
    for (blob_t *blob; (blob = command->blobs) != NULL;) {
        command->blobs = blob->next;
        free(blob);
    }
}

static void command_dealloc(void *self)
{
    command_t *command = self;
    works_free(command);
    hazard_gone(command->number);
    handlers_free(command->scheduled);
    handlers_free(command->completed);
    object_release(command->error);
    if (command->state < COMMITTED) queue_free_one(command->queue, false);
    object_release(command->queue);
}

static state_t state_of(command_t *command)
{
    pthread_mutex_lock(&command->lock);
    state_t state = command->state;
    pthread_mutex_unlock(&command->lock);
    return state;
}

static void state_set(command_t *command, state_t state)
{
    pthread_mutex_lock(&command->lock);
    command->state = state;
    pthread_cond_broadcast(&command->changed);
    pthread_mutex_unlock(&command->lock);
}

bool command_is_committed(command_t *command)
{
    return state_of(command) >= COMMITTED;
}

void *command_add(command_t *command, size_t size, perform_fn perform, void *const *uses,
                  unsigned use_count)
{
    work_t *work = make(size);
    work->perform = perform;
    work->uses = make(use_count * sizeof(object_t *) + 1);
    work->use_count = use_count;
    for (unsigned i = 0; i < use_count; i++) {
        work->uses[i] = uses[i];
        object_hold(uses[i]);
        if (command->retains) object_retain(uses[i]);
    }
    *command->last_work = work;
    command->last_work = &work->next;
    return work;
}

void *command_keep(command_t *command, const void *bytes, size_t size)
{
    blob_t *blob = make(sizeof *blob + size);
    blob->next = command->blobs;
    command->blobs = blob;
    if (bytes) memcpy(blob->bytes, bytes, size);
    return blob->bytes;
}

// What Metal's texts say of an error, after "error: ".
static const char *error_text(unsigned code)
{
    switch (code) {
    case ERROR_TIMEOUT:
        return "Caused GPU Timeout Error (00000002:kIOGPUCommandBufferCallbackErrorTimeout)";
    case 3:
        return "Caused GPU Address Fault Error "
               "(0000000b:kIOGPUCommandBufferCallbackErrorPageFault)";
    case 4:
        return "Ignored (for causing prior/excessive GPU errors) "
               "(00000004:kIOGPUCommandBufferCallbackErrorSubmissionsIgnored)";
    case 8: return "Insufficient Memory (00000008:kIOGPUCommandBufferCallbackErrorOutOfMemory)";
    case ERROR_INVALID_RESOURCE:
        return "Invalid Resource (00000009:kIOGPUCommandBufferCallbackErrorInvalidResource)";
    case ERROR_VICTIM:
        return "Innocent victim (of a GPU error/recovery) "
               "(00000005:kIOGPUCommandBufferCallbackErrorInnocentVictim)";
    case 11: return "The device was removed";
    default: return "Internal Error (0000000e:Internal Error)";
    }
}

static bool is_killed(device_t *device)
{
    return rule_means(&settings()->kill, atomic_fetch_add(&device->started, 1) + 1);
}

static bool is_sound(const work_t *work)
{
    for (unsigned i = 0; i < work->use_count; i++) {
        if (!object_is_dead(work->uses[i])) continue;
        complain("a command buffer without references uses an %s that was released",
                 work->uses[i]->isa->name);
        return false;
    }
    return true;
}

// Up to the first work that cannot be done: a dead command buffer makes none of its later signals.
static unsigned works_perform(command_t *command)
{
    device_t *device = command->queue->device;
    bool killed = is_killed(device);
    uint64_t left = settings()->kill.works;
    if (runtime_lost()) return ERROR_DEVICE_REMOVED;
    uint64_t deaths = atomic_load(&device->deaths);
    for (work_t *work = command->works; work; work = work->next) {
        if (settings()->slow) usleep((useconds_t)settings()->slow);
        if (killed && left-- == 0) break;
        if (!is_sound(work)) return ERROR_INVALID_RESOURCE;
        resident_open(work->uses, work->use_count);
        unsigned code = work->perform(work);
        resident_close(work->uses, work->use_count);
        if (code) return code;
    }
    if (killed) atomic_fetch_add(&device->deaths, 1);
    bool victim = settings()->victims && deaths != atomic_load(&device->deaths);
    return killed ? settings()->kill.code : victim ? ERROR_VICTIM : ERROR_NONE;
}

// With residency=1: what the sets of the queue have now. What is added later does not count.
static void residents_take(command_t *command)
{
    queue_t *queue = command->queue;
    if (!settings()->residency) return;
    pthread_mutex_lock(&queue->lock);
    for (unsigned i = 0; i < queue->set_count; i++)
        command->resident[i].objects = residency_take(queue->sets[i], &command->resident[i].count);
    command->resident_count = queue->set_count;
    pthread_mutex_unlock(&queue->lock);
}

static unsigned works_perform_all(command_t *command)
{
    unsigned count = command->resident_count;
    for (unsigned i = 0; i < count; i++)
        resident_open(command->resident[i].objects, command->resident[i].count);
    unsigned code = works_perform(command);
    for (unsigned i = 0; i < count; i++) {
        resident_close(command->resident[i].objects, command->resident[i].count);
        for (unsigned k = 0; k < command->resident[i].count; k++)
            object_release(command->resident[i].objects[k]);
        free(command->resident[i].objects);
    }
    return code;
}

// With hazards=1: what the host may touch no more.
static void uses_tell(const command_t *command)
{
    if (!command->number) return;
    for (const work_t *work = command->works; work; work = work->next)
        for (unsigned i = 0; i < work->use_count; i++) hazard_uses(command->number, work->uses[i]);
    hazard_committed(command->number);
}

static void call(handler_t *first, command_t *command)
{
    for (; first; first = first->next)
        ((void (*)(block_t *, command_t *))first->block->invoke)(first->block, command);
}

// On the device's handlers, after the GPU.
static void finish(task_t *task)
{
    command_t *command = (command_t *)((char *)task - offsetof(command_t, task));
    call(command->scheduled, command);
    if (command->completed) hazard_seen(command->number);
    call(command->completed, command);
    pthread_mutex_lock(&command->lock);
    command->over = true;
    pthread_cond_broadcast(&command->changed);
    pthread_mutex_unlock(&command->lock);
    object_release(command);
}

// On the queue's GPU.
static void run(task_t *task)
{
    command_t *command = (command_t *)((char *)task - offsetof(command_t, task));
    device_t *device = command->queue->device;
    state_set(command, SCHEDULED);
    uint64_t start = clock_ns();
    unsigned code = works_perform_all(command);
    hazard_ended(command->number);
    indirect_ended(command);
    works_free(command);
    pthread_mutex_lock(&command->lock);
    command->start_ns = start;
    command->end_ns = clock_ns();
    if (code) command->error = error_new("MTLCommandBufferErrorDomain", code, error_text(code));
    command->state = code ? FAILED : COMPLETED;
    pthread_mutex_unlock(&command->lock);
    queue_free_one(command->queue, true);
    command->task.run = finish;
    worker_post_late(device->handlers, &command->task);
}

static void check_open(command_t *self, sel_t cmd)
{
    if (command_is_committed(self)) misuse(self, cmd, "the command buffer is committed");
}

static void check_between(command_t *self, sel_t cmd)
{
    check_open(self, cmd);
    if (self->encoder) misuse(self, cmd, "an encoder is open: endEncoding comes first");
}

static void command_enqueue(command_t *self, sel_t cmd)
{
    if (state_of(self) != MADE) misuse(self, cmd, "the command buffer has its place already");
    state_set(self, ENQUEUED);
    queue_enqueue(self->queue, self);
}

static void command_commit(command_t *self, sel_t cmd)
{
    check_between(self, cmd);
    queue_alone(self->queue, self, cmd);
    bool placed = state_of(self) == ENQUEUED;
    encoder_check_fences(self, cmd);
    residents_take(self);
    uses_tell(self);
    indirect_committed(self);
    state_set(self, COMMITTED);
    queue_takes(self->queue);
    if (!placed) queue_enqueue(self->queue, self);
    queue_pump(self->queue);
}

// Of the thread that runs handlers.
static void check_waiter(command_t *self, sel_t cmd)
{
    if (!command_is_committed(self)) misuse(self, cmd, "the command buffer is not committed");
    if (worker_is_current(self->queue->device->handlers))
        misuse(self, cmd, "a handler waits for handlers: this never ends");
}

static void command_wait(command_t *self, sel_t cmd)
{
    check_waiter(self, cmd);
    pthread_mutex_lock(&self->lock);
    while (!self->over) pthread_cond_wait(&self->changed, &self->lock);
    pthread_mutex_unlock(&self->lock);
    hazard_seen(self->number);
}

static unsigned long command_status(command_t *self, sel_t cmd)
{
    state_t state = state_of(self);
    if (state >= COMPLETED) hazard_seen(self->number);
    return state;
}

static void *command_error(command_t *self, sel_t cmd)
{
    pthread_mutex_lock(&self->lock);
    void *error = object_retain(self->error);
    pthread_mutex_unlock(&self->lock);
    return object_autorelease(error);
}

static double command_start_time(command_t *self, sel_t cmd)
{
    pthread_mutex_lock(&self->lock);
    double time = (double)self->start_ns * 1e-9;
    pthread_mutex_unlock(&self->lock);
    return time;
}

static double command_end_time(command_t *self, sel_t cmd)
{
    pthread_mutex_lock(&self->lock);
    double time = (double)self->end_ns * 1e-9;
    pthread_mutex_unlock(&self->lock);
    return time;
}

static handler_t *handler_new(command_t *self, sel_t cmd, const block_t *block)
{
    check_open(self, cmd);
    if (!block) misuse(self, cmd, "nil where a block must be");
    handler_t *handler = make(sizeof *handler);
    handler->block = block_copy(self, cmd, block, BLOCK_OBJECT);
    return handler;
}

static void command_add_scheduled(command_t *self, sel_t cmd, const block_t *block)
{
    handler_t *handler = handler_new(self, cmd, block);
    *self->last_scheduled = handler;
    self->last_scheduled = &handler->next;
}

static void command_add_completed(command_t *self, sel_t cmd, const block_t *block)
{
    handler_t *handler = handler_new(self, cmd, block);
    *self->last_completed = handler;
    self->last_completed = &handler->next;
}

typedef struct event_work_t {
    work_t work;
    uint64_t value;
    unsigned command; // its number
} event_work_t;

static unsigned perform_wait(work_t *work)
{
    const event_work_t *wait = (event_work_t *)work;
    event_t *event = (event_t *)work->uses[0];
    event_wait(event, wait->value, UINT64_MAX);
    hazard_waited(wait->command, &event->known);
    return ERROR_NONE;
}

static unsigned perform_signal(work_t *work)
{
    const event_work_t *signal = (event_work_t *)work;
    event_t *event = (event_t *)work->uses[0];
    hazard_signals(signal->command, &event->known);
    event_raise(event, signal->value, false);
    return ERROR_NONE;
}

static void add_event(command_t *self, sel_t cmd, event_t *event, perform_fn perform,
                      uint64_t value)
{
    check_between(self, cmd);
    if (!event_is(event)) misuse(self, cmd, "no event where one must be");
    event_work_t *made = command_add(self, sizeof *made, perform, (void *[]){event}, 1);
    made->value = value;
    made->command = self->number;
}

static void command_wait_event(command_t *self, sel_t cmd, event_t *event, uint64_t value)
{
    add_event(self, cmd, event, perform_wait, value);
}

static void command_signal_event(command_t *self, sel_t cmd, event_t *event, uint64_t value)
{
    add_event(self, cmd, event, perform_signal, value);
}

static void *command_blit(command_t *self, sel_t cmd)
{
    check_between(self, cmd);
    queue_alone(self->queue, self, cmd);
    encoder_t *encoder = encoder_new(&MTLBlitCommandEncoder, self);
    encoder->concurrent = true;
    self->encoder = encoder;
    return object_autorelease(self->encoder);
}

// Of both kinds: 0 serial, 1 concurrent. Here dispatches of both run one after the other; those of
// the second in any order, with a seed.
static void *command_compute_type(command_t *self, sel_t cmd, unsigned long type)
{
    check_between(self, cmd);
    queue_alone(self->queue, self, cmd);
    if (type > 1) misuse(self, cmd, "there is no dispatch type %lu", type);
    encoder_t *encoder = compute_new(self);
    encoder->concurrent = type == 1;
    self->encoder = encoder;
    return object_autorelease(self->encoder);
}

static void *command_compute_pass(command_t *self, sel_t cmd, void *descriptor)
{
    unsigned long type = pass_type(self, cmd, descriptor, &MTLComputePassDescriptor);
    encoder_t *encoder = command_compute_type(self, cmd, type);
    pass_begin(encoder, descriptor);
    return encoder;
}

static void *command_blit_pass(command_t *self, sel_t cmd, void *descriptor)
{
    pass_type(self, cmd, descriptor, &MTLBlitPassDescriptor);
    encoder_t *encoder = command_blit(self, cmd);
    pass_begin(encoder, descriptor);
    return encoder;
}

static void *command_compute(command_t *self, sel_t cmd)
{
    return command_compute_type(self, cmd, 0);
}

static method_t command_methods[] = {
    METHOD("enqueue", command_enqueue),
    METHOD("commit", command_commit),
    METHOD("waitUntilCompleted", command_wait),
    METHOD("status", command_status),
    METHOD("error", command_error),
    METHOD("GPUStartTime", command_start_time),
    METHOD("GPUEndTime", command_end_time),
    METHOD("addScheduledHandler:", command_add_scheduled),
    METHOD("addCompletedHandler:", command_add_completed),
    METHOD("encodeWaitForEvent:value:", command_wait_event),
    METHOD("encodeSignalEvent:value:", command_signal_event),
    METHOD_MAY_FAIL("blitCommandEncoder", command_blit),
    METHOD_MAY_FAIL("computeCommandEncoder", command_compute),
    METHOD_MAY_FAIL("computeCommandEncoderWithDispatchType:", command_compute_type),
    METHOD_MAY_FAIL("computeCommandEncoderWithDescriptor:", command_compute_pass),
    METHOD_MAY_FAIL("blitCommandEncoderWithDescriptor:", command_blit_pass),
    METHODS_END};
class_t MTLCommandBuffer = {.name = "MTLCommandBuffer",
                            .size = sizeof(command_t),
                            .dealloc = command_dealloc,
                            .methods = command_methods};
