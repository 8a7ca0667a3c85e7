// SPDX-License-Identifier: Apache-2.0
// Promises of a device: slots.c keeps them for use, promise.c makes them, ahead.c goes ahead of
// them, and guard.c has the GPU look whether they came true.
#ifndef KEEL_SRC_DRIVERS_METAL_QUEUE_PROMISE_H_
#define KEEL_SRC_DRIVERS_METAL_QUEUE_PROMISE_H_

#include "drivers/metal/base/device.h"

enum { METAL_SLOTS = 1024 }; // promises of a device at a time; who finds none makes none

typedef struct metal_slots_t metal_slots_t;

// A promise, and what it has on the GPU. It is used again when the last reference to it is gone.
typedef struct metal_promise_t {
    promise_t base;
    struct metal_promise_t *next; // of those to spare
    metal_slots_t *slots;
    metal_device_t *device;     // may be gone when the promise is over
    const metal_queue_t *queue; // to compare
    id event;                   // retained; NULL: not needed yet, as the next
    id fence;                   // retained
    uint64_t number;            // of its uses: what the event comes to. An event only grows, so
                                // this must not start again at 0
    uint32_t slot;              // where the GPU writes the number's low half
    bool signals;               // the event, by the GPU
    keel_metal_event_t native;  // the same, for the program
    // Guarded by the lock of the slots.
    bool over;
    keel_status_t failure; // owned
    metal_ahead_t *first;  // those that are to be told
} metal_promise_t;

// All promises of a device. Threads that ask after a point may have one for a moment longer than
// there is the device: the last one frees them. Other devices that wait for promises keep what
// these have of Metal's.
struct metal_slots_t {
    uint32_t numbers[METAL_PAGE / 4]; // one for each, by the GPU: pages that other GPUs take, too
    _Atomic uint32_t refs;            // the device's, and those of promises in use and of views
    const metal_api_t *api;           // stays
    id gpu;                           // whose they are, to compare
    id words;                         // the numbers, for that one; retained
    lock_t lock;                      // for what follows
    metal_promise_t *spare;
    uint32_t users; // of objects of Metal's: the device and views
    bool closed;    // the device is no longer one of them
    metal_promise_t all[METAL_SLOTS];
};

// The slots of another device, as this one sees them.
typedef struct metal_view_t {
    struct metal_view_t *next;
    metal_slots_t *slots; // counted, and used
    id words;             // the same memory; retained
    uint32_t runs;        // that look at it
} metal_view_t;

static inline metal_promise_t *metal_promise_of(const promise_t *promise)
{
    return (metal_promise_t *)(uintptr_t)promise;
}

// slots.c
// One to spare, with a slot; NULL: there is none.
metal_promise_t *metal_slots_take(metal_device_t *device);
void metal_slots_give_back(metal_promise_t *promise); // the device may be gone
// How the device sees slots of another one, for a run. NULL: it does not.
metal_view_t *metal_view_take(metal_device_t *device, metal_slots_t *slots);
void metal_view_give_back(metal_device_t *device, metal_view_t *view); // NULL is fine

// demand.c
// A submission is about to wait for work in flight; of another queue?
void metal_demand_wait(metal_device_t *device, bool other);
// One went ahead of a promise of the device; on another queue?
void metal_demand_ahead(metal_device_t *device, bool crossing);
// One waits for another device, which may be gone.
void metal_demand_between(void);
// Whether to make a promise. *signals: with an event that the GPU signals. Counts down.
bool metal_demand_take(metal_device_t *device, bool *signals) KEEL_MUST_USE;

#endif
