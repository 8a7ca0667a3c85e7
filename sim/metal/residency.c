// SPDX-License-Identifier: Apache-2.0
#include "metal/residency.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

// Objects, each retained.
typedef struct list_t {
    object_t **objects; // owned
    unsigned count;
} list_t;

struct residency_t {
    object_t object;
    pthread_mutex_t lock; // of `now`
    list_t now;           // as of the last commit
    list_t next;          // and with what was changed since then
    atomic_flag changing; // a thread is at it
};

static class_t MTLResidencySetDescriptor;

static list_t list_copy(const list_t *list)
{
    list_t copy = {make((list->count + 1) * sizeof *copy.objects), list->count};
    for (unsigned i = 0; i < list->count; i++) copy.objects[i] = object_retain(list->objects[i]);
    return copy;
}

static void list_free(list_t *list)
{
    for (unsigned i = 0; i < list->count; i++) object_release(list->objects[i]);
    free(list->objects);
}

object_t **residency_take(residency_t *set, unsigned *count)
{
    pthread_mutex_lock(&set->lock);
    list_t copy = list_copy(&set->now);
    pthread_mutex_unlock(&set->lock);
    *count = copy.count;
    return copy.objects;
}

void *device_residency(void *self, sel_t cmd, void *descriptor, void **error)
{
    object_check(self, cmd, descriptor, &MTLResidencySetDescriptor);
    residency_t *set = object_new(&MTLResidencySet);
    pthread_mutex_init(&set->lock, NULL);
    return set;
}

static void residency_dealloc(void *self)
{
    list_free(&((residency_t *)self)->now);
    list_free(&((residency_t *)self)->next);
}

// Sets are not for several threads at once.
static void change_begin(residency_t *self, sel_t cmd)
{
    if (atomic_flag_test_and_set(&self->changing))
        misuse(self, cmd, "another thread changes the set at the same time");
}

static void change_end(residency_t *self)
{
    atomic_flag_clear(&self->changing);
}

static unsigned list_find(const list_t *list, const void *object)
{
    unsigned i = 0;
    while (i < list->count && list->objects[i] != object) i++;
    return i;
}

static void residency_add(residency_t *self, sel_t cmd, void *allocation)
{
    object_check(self, cmd, allocation, &MTLBuffer);
    change_begin(self, cmd);
    list_t *next = &self->next;
    if (list_find(next, allocation) == next->count) {
        next->objects = realloc(next->objects, (next->count + 1) * sizeof *next->objects);
        if (!next->objects) die("no memory for a residency set");
        next->objects[next->count++] = object_retain(allocation);
    }
    change_end(self);
}

static void residency_remove(residency_t *self, sel_t cmd, void *allocation)
{
    object_check(self, cmd, allocation, &MTLBuffer);
    change_begin(self, cmd);
    list_t *next = &self->next;
    unsigned at = list_find(next, allocation);
    if (at < next->count) {
        object_release(next->objects[at]);
        next->objects[at] = next->objects[--next->count];
    }
    change_end(self);
}

static void residency_commit(residency_t *self, sel_t cmd)
{
    change_begin(self, cmd);
    list_t next = list_copy(&self->next);
    pthread_mutex_lock(&self->lock);
    list_t before = self->now;
    self->now = next;
    pthread_mutex_unlock(&self->lock);
    list_free(&before);
    change_end(self);
}

class_t MTLResidencySet = {.name = "MTLResidencySet",
                           .size = sizeof(residency_t),
                           .dealloc = residency_dealloc,
                           .methods =
                               (method_t[]){METHOD("addAllocation:", residency_add),
                                            METHOD("removeAllocation:", residency_remove),
                                            METHOD("commit", residency_commit), METHODS_END}};

static void *descriptor_new(class_t *self, sel_t cmd)
{
    return object_new(&MTLResidencySetDescriptor);
}

static class_t MTLResidencySetDescriptor = {.name = "MTLResidencySetDescriptor",
                                            .size = sizeof(object_t),
                                            .methods = (method_t[]){METHODS_END}};
static class_t descriptor_meta = {.name = "MTLResidencySetDescriptor",
                                  .methods =
                                      (method_t[]){METHOD("new", descriptor_new), METHODS_END}};

void residency_add_classes(void)
{
    class_add(&MTLResidencySet);
    class_add_meta(&MTLResidencySetDescriptor, &descriptor_meta);
}
