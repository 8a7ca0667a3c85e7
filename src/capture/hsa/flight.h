// SPDX-License-Identifier: Apache-2.0
// Dispatches in flight that have a signal of this library's, from which their times are read.
#ifndef KEEL_SRC_CAPTURE_HSA_FLIGHT_H_
#define KEEL_SRC_CAPTURE_HSA_FLIGHT_H_

#include <stdatomic.h>

#include "capture/hsa/work.h"

// A queue as far as flights know it. Zeroed, it has had none.
typedef struct flight_queue_t {
    _Atomic uint64_t taken;    // so many so far, under the runtime's lock of the queue
    _Atomic uint64_t recorded; // of these; the collector's
    _Atomic bool given_up;     // what is in flight is recorded without times
    _Atomic uint64_t reached; // the queue's place after the last packet that is known to have ended
    struct flight_t *lost;    // the collector's: recorded so, while the GPU may write the signal
    struct flight_t *spare;   // owned, under the runtime's lock of the queue
    _Atomic(struct flight_t *) back; // owned: spare ones that the collector has put back
} flight_queue_t;

typedef struct flight_t {
    struct flight_t *next;
    flight_queue_t *queue; // borrowed until it is recorded
    hsa_signal_t signal;   // owned: 1 until the dispatch has ended
    hsa_signal_t own;      // borrowed: the application's; 0: it has none
    uint64_t place;        // in the queue, after its packet
    work_t work;           // of TRACE_OP_OTHER: not to be recorded
} flight_t;

// What flight_take does if there is no spare one at hand.
flight_t *flight_make(flight_queue_t *queue);

// One with its signal at 1, no signal of the application's and nothing to record, which is to be
// pushed; NULL: there is no memory. Under the runtime's lock of the queue. Takes no other.
static inline flight_t *flight_take(flight_queue_t *queue)
{
    flight_t *flight = queue->spare ? queue->spare : flight_make(queue);
    if (!flight) return NULL;
    queue->spare = flight->next;
    flight->queue = queue;
    flight->own = 0;
    flight->work.op = TRACE_OP_OTHER;
    // relaxed: one thread at a time, and nothing else counts.
    uint64_t taken = atomic_load_explicit(&queue->taken, memory_order_relaxed);
    atomic_store_explicit(&queue->taken, taken + 1, memory_order_relaxed);
    hsa.signal_silent_store_relaxed(flight->signal, 1);
    return flight;
}

// Hands a list over to the collector. Any thread. Takes a lock only if the collector sleeps.
void flight_push(flight_t *first, flight_t *last);

// What the collector calls.
uint64_t flight_collect(uint64_t *ended);

// Waits until all of a queue is recorded. False: some did not end within a second. Any thread.
bool flight_wait(flight_queue_t *queue);

// The same; what does not end is recorded without times. False: the collector has not come to that,
// or is not there, as in the child of a fork. Then the queue must stay. Any thread.
bool flight_drain(flight_queue_t *queue);

// Destroys the signals of a queue that was drained, and is destroyed now; before the runtime ends.
void flight_finish(flight_queue_t *queue);

#endif
