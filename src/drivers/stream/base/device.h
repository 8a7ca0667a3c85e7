// SPDX-License-Identifier: Apache-2.0
// The device of the stream core, and the vendor's context around calls to it.
#ifndef KEEL_SRC_DRIVERS_STREAM_BASE_DEVICE_H_
#define KEEL_SRC_DRIVERS_STREAM_BASE_DEVICE_H_

#include <keel/driver/driver.h>

#include "base/aio.h"
#include "base/lock.h"
#include "drivers/stream/base/reclaim.h"
#include "drivers/stream/options.h"
#include "executable/cache.h"
#include "kit/blocks.h"
#include "kit/chores.h"
#include "kit/helper.h"
#include "kit/pages.h"
#include "kit/promise.h"

enum {
    STREAM_MAX_BINDINGS = 128,
    STREAM_MAX_CONSTANTS = 1024,
    STREAM_MAX_DEPTH = 16,
};

typedef struct stream_device_t stream_device_t;
typedef struct stream_queue_t stream_queue_t;
typedef struct stream_event_t stream_event_t;
typedef struct stream_segment_t stream_segment_t;

// What lower rooms call of higher ones: device.c fills it in.
typedef struct stream_hooks_t {
    // Issues what is left of a submission, as far as it goes. False: there is more, and the caller
    // keeps it. Called by the issuer (queue/issuer.c).
    bool (*go)(stream_segment_t *segment);
    // The event of a segment has come. True if the submission has ended with it, and
    // submission_end_all is due.
    bool (*over)(stream_segment_t *segment);
    void (*lost)(stream_segment_t *segment); // the event never will
    // The device is lost: adds to the cause what each queue was at; ends all work and all waits.
    keel_status_t (*explain)(stream_device_t *device, keel_status_t cause); // consumes, returns
    void (*end)(stream_device_t *device, keel_status_t cause);              // borrows
    const promise_ops_t *events;                                            // of events
} stream_hooks_t;

// When memory is given back to a vendor that waits for the device then (memory/free.c).
typedef struct stream_hold_t {
    _Atomic bool on;      // no thread begins to issue to a queue
    uint64_t until;       // and queues stay idle so long, for more to be given back; 0: they do not
    uint64_t busy_ns;     // for how much longer busy queues are held up the next time
    uint64_t patience_ns; // after how long they are, if no alloca waits
} stream_hold_t;

struct stream_device_t {
    keel_device_t base;
    // What every submission looks at, side by side.
    const stream_api_t *api;
    stream_vendor_t *vendor; // owned
    const stream_hooks_t *hooks;
    struct keel_status *_Atomic lost; // owned: why nothing works any more
    uint32_t generation;              // of fork
    uint32_t traced;                  // the number of its clock in a trace; 0: none
    bool peeks;              // the host reads what the device cannot act on; see run/peek.c
    _Atomic bool held_up;    // a queue waits for another one to retire its events; queue/flight.c
    uint64_t most_pending;   // load of a queue, before its own thread goes on
    _Atomic uint32_t active; // work was issued since the keeper looked
    stream_hold_t hold;
    reclaim_t reclaim;
    stream_options_t options;
    stream_limits_t limits;
    keel_device_ops_t ops; // those that this one has
    lock_t lock;           // for the lists of queues, pools and recordings
    stream_queue_t *queues;
    bool stopped;  // there are no threads of queues any more; guarded by `lock`
    stream_h side; // owned: a stream beside all queues

    _Atomic(stream_event_t *) spare; // owned: events that came back
    _Atomic uint32_t events;         // that there are, with those in use
    helper_t keeper;                 // retires work that no thread waits for
    helper_t issuer;                 // issues what would be much for the thread that brought it
    uint32_t idle_rounds;            // the keeper's

    chores_t chores; // things to be given back to the vendor
    blocks_t blocks; // staging to be used again
    pages_user_t pages;
    struct stream_pool_t *pools;
    uint64_t pool_count; // that there were

    aio_t *aio;                            // owned
    _Atomic uint32_t unloads;              // of modules: graphs may name kernels of theirs
    struct stream_builtins_t *builtins;    // owned; run/builtin.c
    struct stream_launch_pool_t *launches; // owned; run/launch.c
    struct stream_indirects_t *indirects;  // owned; run/indirect.c
    struct stream_prepared_t *prepared;    // recordings that are graphs; graph/graph.c
    cache_t modules;                       // of executables
    struct border_t *_Atomic border;       // owned: of semaphores of other APIs; NULL: none
    keel_dlpack_place_t dlpack[DEVICE_DLPACK];
};

static inline stream_device_t *stream_device(const keel_device_t *device)
{
    return (stream_device_t *)(uintptr_t)device;
}

// Whether the device has the feature, and may use it.
static inline bool stream_device_has(const stream_device_t *device, stream_feature_t feature)
{
    return device->limits.features & feature;
}

// Whether it was opened by this process, and not by its parent before a fork.
bool stream_device_is_ours(const stream_device_t *device);

static inline bool stream_device_is_lost(const stream_device_t *device)
{
    return __builtin_expect(atomic_load(&device->lost) != NULL, 0);
}

// Notes that the device is lost, for the first time, and ends all work and every wait with that.
// Consumes `cause`.
void stream_device_lose(stream_device_t *device, keel_status_t cause) KEEL_COLD;

// Why it is lost, a new reference; NULL: it is not.
keel_status_t stream_device_lost(stream_device_t *device) KEEL_COLD;

// Passes an error of the vendor's on. One that says that the device is lost ends everything.
keel_status_t stream_device_note(stream_device_t *device, keel_status_t status);

// Blocks until the stream has done all that is on it. If the vendor refuses, it is asked again for
// a second; a device that never says whether work has ended is as good as lost.
keel_status_t stream_device_drain(stream_device_t *device, stream_h stream);

// Makes a call once more if it fails: an error of the context stays, any other may be gone.
#define STREAM_TWICE(status, call)                                                                 \
    do {                                                                                           \
        if (!((status) = (call))) break;                                                           \
        keel_status_release(status);                                                               \
        (status) = (call);                                                                         \
    } while (0)

typedef struct stream_entered_t {
    stream_device_t *device;
    stream_before_t before;
} stream_entered_t;

// Makes the vendor's context that of the thread, for the calls up to stream_leave. False, with
// nothing to leave, if the device is lost or belongs to the parent of a fork.
bool stream_enter(stream_device_t *device, stream_entered_t *entered);
void stream_leave(stream_entered_t *entered);

#endif
