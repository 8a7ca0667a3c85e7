// SPDX-License-Identifier: Apache-2.0
// Rows for a picture of a trace: events that overlap are put into different lanes of their track.
#ifndef KEEL_SRC_TRACER_LANES_H_
#define KEEL_SRC_TRACER_LANES_H_

#include "tracer/order.h"

typedef struct lanes_t {
    order_t order;   // calls, operations and spans: by time
    uint16_t *lane;  // owned: of each event of the model
    uint16_t *count; // owned: lanes of each track
} lanes_t;

// Operations of a queue share no lane at one time. Calls and spans of a thread that enclose each
// other do if `nested`, for formats whose lanes nest. To be finished, also after a failure.
keel_status_t lanes_find(lanes_t *lanes, const model_t *model, bool nested) KEEL_MUST_USE;
void lanes_finish(lanes_t *lanes);

#endif
