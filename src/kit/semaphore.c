// SPDX-License-Identifier: Apache-2.0
#include "kit/semaphore.h"

#include <stddef.h>

#include "base/status.h"
#include "base/thread.h"

_Static_assert(offsetof(waiter_t, node) == 0, "a waiter is found by its node");

void semaphore_init(keel_semaphore_t *semaphore, const semaphore_ops_t *ops, uint64_t initial)
{
    semaphore->ops = ops;
    atomic_init(&semaphore->value, initial);
    atomic_init(&semaphore->next_wait, UINT64_MAX);
    atomic_init(&semaphore->last, SEMAPHORE_FAILED - 1);
}

void semaphore_chase(keel_semaphore_t *semaphore, uint64_t value)
{
    promise_t *promise = semaphore->ops->promised(semaphore, value + 1, false);
    if (promise) promise->ops->poll(promise);
    promise_release(promise);
}

keel_status_t semaphore_not_exported(keel_semaphore_t *semaphore,
                                     keel_external_semaphore_t *external)
{
    const char *name = semaphore->name ? semaphore->name : "";
    if (external->kind == KEEL_SEMAPHORE_SHARED_FD)
        return KEEL_ERROR(KEEL_UNSUPPORTED,
                          "semaphore '%s' is not shared between processes: make it with "
                          "keel_semaphore_options_t.shared",
                          name);
    return KEEL_ERROR(KEEL_UNSUPPORTED,
                      "semaphore '%s' was made here, and the device can export none: let the other "
                      "API make it, and import that",
                      name);
}

promise_t *point_ask(const keel_point_t *point, waiter_t *waiter)
{
    keel_semaphore_t *semaphore = point->semaphore;
    lock_enter(&semaphore->lock);
    waiter->asks = true;
    lock_leave(&semaphore->lock);
    return semaphore->ops->promised(semaphore, point->value, waiter->for_all);
}

keel_status_t signal_refused(const signal_t *signal, keel_status_t refusal)
{
    if (refusal != atomic_load(&signal->point.semaphore->failure)) return refusal;
    keel_status_release(refusal);
    return NULL;
}

static heap_t *heap_of(keel_semaphore_t *semaphore, const waiter_t *waiter)
{
    return waiter->hangs ? &semaphore->hanging : &semaphore->waiters;
}

static heap_node_t *first_node(const keel_semaphore_t *semaphore)
{
    heap_node_t *first = semaphore->waiters.root, *hanging = semaphore->hanging.root;
    return !hanging || (first && first->key <= hanging->key) ? first : hanging;
}

uint64_t waiters_first(const keel_semaphore_t *semaphore)
{
    const heap_node_t *first = first_node(semaphore);
    return first ? first->key : UINT64_MAX;
}

KEEL_HOT void waiters_update(keel_semaphore_t *semaphore)
{
    const heap_node_t *first = semaphore->waiters.root, *hanging = semaphore->hanging.root;
    const signal_t *promised = semaphore->promised;
    uint64_t next = UINT64_MAX;
    if (__builtin_expect(first != NULL, 0)) next = first->key;
    if (__builtin_expect(hanging != NULL, 0) && hanging->key < next) next = hanging->key;
    if (promised && promised->point.value < next) next = promised->point.value;
    // seq_cst: pairs with timeline_signal, as timeline.c says.
    atomic_store(&semaphore->next_wait, next);
}

void waiters_add(keel_semaphore_t *semaphore, waiter_t *waiter)
{
    heap_insert(heap_of(semaphore, waiter), &waiter->node);
    waiter->linked = true;
    waiters_update(semaphore);
}

bool waiters_remove(keel_semaphore_t *semaphore, waiter_t *waiter)
{
    if (!waiter->linked) return false;
    heap_remove(heap_of(semaphore, waiter), &waiter->node);
    waiter->linked = false;
    waiters_update(semaphore);
    return true;
}

waiter_t *waiters_take(keel_semaphore_t *semaphore, uint64_t value)
{
    heap_node_t *list = NULL, **tail = &list, *first;
    while ((first = first_node(semaphore)) && first->key <= value) {
        heap_remove(heap_of(semaphore, waiter_of(first)), first);
        waiter_of(first)->linked = false;
        first->next = NULL;
        *tail = first;
        tail = &first->next;
    }
    waiters_update(semaphore);
    return list ? waiter_of(list) : NULL;
}

// What the thread is doing right now.
static THREAD_LOCAL struct {
    uint32_t depth; // of waiters_fire
    uint32_t count; // of waiters since the outermost
} firing;

void waiters_fire(waiter_t *list, keel_status_t failure)
{
    if (!list) return;
    if (!firing.depth++) firing.count = 0;
    while (list) {
        waiter_t *waiter = list;
        list = waiter->node.next ? waiter_of(waiter->node.next) : NULL;
        firing.count++;
        waiter->fire(waiter, waiter->ended ? NULL : failure);
    }
    firing.depth--;
}

uint32_t waiters_fired(void)
{
    return firing.depth ? firing.count : 0;
}

bool waiter_promise(waiter_t *waiter, promise_t *promise, uint64_t value, waiter_t **told,
                    bool *asks)
{
    bool serves = promise_does(promise, value, waiter);
    *asks |= !serves && waiter->asks;
    if (!serves) return false;
    waiter->linked = false;
    waiter->promise = promise_retain(promise);
    waiter->node.next = *told ? &(*told)->node : NULL;
    *told = waiter;
    return true;
}
