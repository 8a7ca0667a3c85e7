// SPDX-License-Identifier: Apache-2.0
#include "tracer/order.h"

#include <string.h>

#include "base/memory.h"
#include "base/status.h"

keel_status_t order_add(order_t *order, uint32_t index)
{
    uint32_t *indices =
        mem_reserve(order->indices, &order->capacity, order->count, sizeof *order->indices);
    if (!indices) return status_no_memory();
    order->indices = indices;
    indices[order->count++] = index;
    return NULL;
}

static bool comes_later(const event_t *events, uint32_t a, uint32_t b)
{
    const event_t *x = &events[a], *y = &events[b];
    return x->start_ns != y->start_ns ? x->start_ns > y->start_ns : x->end_ns < y->end_ns;
}

// A merge sort, since what a thread wrote is sorted already: halves that follow each other are left
// as they are.
static void merge(const event_t *events, uint32_t *indices, uint32_t count, uint32_t *scratch)
{
    if (count < 2) return;
    uint32_t half = count / 2, i = 0, k = half, at = 0;
    merge(events, indices, half, scratch);
    merge(events, indices + half, count - half, scratch);
    if (!comes_later(events, indices[half - 1], indices[half])) return;
    memcpy(scratch, indices, half * sizeof *scratch);
    while (i < half && k < count)
        indices[at++] = comes_later(events, scratch[i], indices[k]) ? indices[k++] : scratch[i++];
    memcpy(indices + at, scratch + i, (half - i) * sizeof *scratch);
}

keel_status_t order_sort(order_t *order, const model_t *model)
{
    if (order->count < 2) return NULL;
    uint32_t *scratch = mem_alloc(order->count / 2 * sizeof *scratch);
    if (!scratch) return status_no_memory();
    merge(model->events, order->indices, order->count, scratch);
    mem_free(scratch);
    return NULL;
}

keel_status_t order_device(order_t *order, const model_t *model, uint32_t device)
{
    for (uint32_t i = 0; i < model->event_count; i++) {
        const event_t *event = &model->events[i];
        if (event->kind == EVENT_OP && model->tracks[event->track].device == device)
            KEEL_TRY(order_add(order, i));
    }
    return order_sort(order, model);
}

void order_finish(order_t *order)
{
    mem_free(order->indices);
    *order = (order_t){0};
}
