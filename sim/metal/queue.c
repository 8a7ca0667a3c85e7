// SPDX-License-Identifier: Apache-2.0
#include "metal/queue.h"

#include "metal/command.h"
#include "metal/device.h"

#include <unistd.h>

queue_t *queue_new(device_t *device, unsigned most)
{
    queue_t *queue = object_new(&MTLCommandQueue);
    pthread_mutex_init(&queue->lock, NULL);
    pthread_cond_init(&queue->freed, NULL);
    queue->device = object_retain(device);
    device_queue_begins(device);
    queue->gpu = worker_start();
    queue->most = most;
    queue->last = &queue->first;
    return queue;
}

// No command buffer is left: each retains its queue.
static void queue_dealloc(void *self)
{
    queue_t *queue = self;
    for (unsigned i = 0; i < queue->set_count; i++) object_release(queue->sets[i]);
    worker_close(queue->gpu);
    device_queue_ends(queue->device);
    object_release(queue->device);
}

void queue_alone(queue_t *queue, const void *self, sel_t cmd)
{
    if (!settings()->crowd) return;
    if (atomic_exchange(&queue->entered, true))
        misuse(self, cmd, "another thread opens an encoder, or commits, on the queue");
    usleep((useconds_t)settings()->crowd); // for others to come
    atomic_store(&queue->entered, false);
}

void queue_enqueue(queue_t *queue, command_t *command)
{
    object_retain(command);
    pthread_mutex_lock(&queue->lock);
    *queue->last = command;
    queue->last = &command->next;
    pthread_mutex_unlock(&queue->lock);
}

void queue_pump(queue_t *queue)
{
    pthread_mutex_lock(&queue->lock);
    for (command_t *command; (command = queue->first) && command_is_committed(command);) {
        queue->first = command->next;
        if (!queue->first) queue->last = &queue->first;
        command->next = NULL;
        worker_post(queue->gpu, &command->task);
    }
    pthread_mutex_unlock(&queue->lock);
}

void queue_takes(queue_t *queue)
{
    pthread_mutex_lock(&queue->lock);
    queue->open--;
    pthread_mutex_unlock(&queue->lock);
}

void queue_free_one(queue_t *queue, bool committed)
{
    pthread_mutex_lock(&queue->lock);
    queue->outstanding--;
    if (!committed) queue->open--;
    pthread_cond_signal(&queue->freed);
    pthread_mutex_unlock(&queue->lock);
}

// Blocks as Metal does. A program that never wants to be blocked finds this line in its log.
static void take_one(queue_t *queue)
{
    pthread_mutex_lock(&queue->lock);
    if (queue->outstanding == queue->most)
        complain("-[MTLCommandQueue commandBuffer] blocks: %u command buffers are outstanding%s",
                 queue->most,
                 queue->open == queue->most ? ", and none is committed: unless another thread does "
                                              "it, this never ends"
                                            : "");
    while (queue->outstanding == queue->most) pthread_cond_wait(&queue->freed, &queue->lock);
    queue->outstanding++;
    queue->open++;
    pthread_mutex_unlock(&queue->lock);
}

static void *queue_command(queue_t *self, sel_t cmd)
{
    take_one(self);
    return object_autorelease(command_new(self, true));
}

static void *queue_command_unretained(queue_t *self, sel_t cmd)
{
    take_one(self);
    return object_autorelease(command_new(self, false));
}

static void queue_add_set(queue_t *self, sel_t cmd, void *set)
{
    object_check(self, cmd, set, &MTLResidencySet);
    pthread_mutex_lock(&self->lock);
    if (self->set_count == QUEUE_SETS) misuse(self, cmd, "it has %d sets already", QUEUE_SETS);
    self->sets[self->set_count++] = object_retain(set);
    pthread_mutex_unlock(&self->lock);
}

static method_t queue_methods[] = {
    METHOD("addResidencySet:", queue_add_set), METHOD_MAY_FAIL("commandBuffer", queue_command),
    METHOD_MAY_FAIL("commandBufferWithUnretainedReferences", queue_command_unretained),
    METHODS_END};
class_t MTLCommandQueue = {.name = "MTLCommandQueue",
                           .size = sizeof(queue_t),
                           .dealloc = queue_dealloc,
                           .methods = queue_methods};
