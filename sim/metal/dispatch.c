// SPDX-License-Identifier: Apache-2.0
#include "metal/dispatch.h"

typedef struct dispatch_t {
    object_t object;
    worker_t *worker;
} dispatch_t;

static void dispatch_dealloc(void *self)
{
    worker_close(((dispatch_t *)self)->worker);
}

class_t OS_dispatch_queue = {
    .name = "OS_dispatch_queue", .size = sizeof(dispatch_t), .dealloc = dispatch_dealloc};

void *dispatch_queue_create(const char *label, void *attributes)
{
    runtime_start();
    if (attributes)
        die("dispatch_queue_create: %s: only serial queues (NULL) are known here", label);
    dispatch_t *queue = object_new(&OS_dispatch_queue);
    queue->worker = worker_start();
    return queue;
}

void dispatch_release(void *object)
{
    if (!object || object_is_dead(object)) die("dispatch_release: the object was released before");
    object_release(object);
}

void dispatch_post(void *queue, task_t *task)
{
    worker_post(((dispatch_t *)queue)->worker, task);
}
