// SPDX-License-Identifier: Apache-2.0
#include "metal/dispatch.h"

#include <stdlib.h>
#include <string.h>

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

static void data_dealloc(void *self)
{
    free(((data_t *)self)->bytes);
}

class_t OS_dispatch_data = {
    .name = "OS_dispatch_data", .size = sizeof(data_t), .dealloc = data_dealloc};

void *dispatch_data_create(const void *bytes, size_t size, void *queue, void *destructor)
{
    runtime_start();
    if (queue || destructor) die("dispatch_data_create: only copies (NULL, NULL) are known here");
    data_t *data = object_new(&OS_dispatch_data);
    data->bytes = make(size + 1);
    memcpy(data->bytes, bytes, size);
    data->size = size;
    return data;
}

void dispatch_release(void *object)
{
    if (!object || object_is_dead(object)) die("dispatch_release: the object was released before");
    object_release(object);
}

void dispatch_post(void *queue, task_t *task)
{
    worker_post_late(((dispatch_t *)queue)->worker, task);
}
