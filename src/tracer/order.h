// SPDX-License-Identifier: Apache-2.0
// Events in the order of time.
#ifndef KEEL_SRC_TRACER_ORDER_H_
#define KEEL_SRC_TRACER_ORDER_H_

#include "tracer/model.h"

// Indices of events. Zeroed, it is empty.
typedef struct order_t {
    uint32_t *indices; // owned
    uint32_t count, capacity;
} order_t;

keel_status_t order_add(order_t *order, uint32_t index) KEEL_MUST_USE;

// Sorts by start; of two that start together the longer one comes first, so that spans enclose
// those after them.
keel_status_t order_sort(order_t *order, const model_t *model) KEEL_MUST_USE;

// The operations of a device, sorted.
keel_status_t order_device(order_t *order, const model_t *model, uint32_t device) KEEL_MUST_USE;

void order_finish(order_t *order);

#endif
