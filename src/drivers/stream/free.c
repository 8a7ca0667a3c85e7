// SPDX-License-Identifier: Apache-2.0
// Giving things back to the vendor, who waits for all that the device runs before memory is freed
// or code unloaded, and lets nobody launch anything meanwhile. So a thread of the device's own does
// it when the device has nothing to do. If somebody needs the memory, or the device does not come
// to rest, it is done once all is over that ran when it came. What the vendor does not wait for,
// graphs, goes at once, and so before the code that it launches.
#include "base/memory.h"
#include "drivers/stream/stream.h"

enum { PATIENCE_NS = 250000000 }; // for a device to come to rest

typedef struct gift_t {
    chore_t chore;
    stream_give_t *give;
    void *what;
} gift_t;

static void gift_give(void *owner, chore_t *chore)
{
    stream_device_t *device = owner;
    const gift_t *gift = (const gift_t *)chore;
    stream_entered_t entered;
    if (stream_enter(device, &entered)) {
        gift->give(device->vendor, gift->what);
        stream_leave(&entered);
    }
    stream_frees_tell(device, 1);
}

// Looks how far all queues are: whether they have nothing to do, or at least nothing of what they
// had at the mark.
static bool flight_is_past(stream_device_t *device, bool mark, bool *idle)
{
    bool past = true;
    *idle = true;
    for (stream_queue_t *q = stream_queue_next(device, NULL); q; q = stream_queue_next(device, q)) {
        lock_enter(&q->lock);
        if (mark) q->awaited = q->recorded;
        lock_leave(&q->lock);
        stream_queue_poll(q, true);
        past &= atomic_load(&q->over) >= q->awaited;
        *idle &= stream_queue_is_idle(q);
    }
    return past;
}

bool stream_may_free(void *owner, uint64_t waited)
{
    stream_device_t *device = owner;
    bool idle, past = flight_is_past(device, !waited, &idle);
    bool needed = device->chores.wanted || device->starved || waited > PATIENCE_NS;
    return idle || (past && needed) || stream_device_is_lost(device);
}

void stream_chore_add(stream_device_t *device, chore_t *chore)
{
    atomic_fetch_add(&device->frees, 1); // an alloca that finds no memory waits for this one
    chores_add(&device->chores, chore);
}

void stream_free(stream_device_t *device, bool waits, stream_give_t *give, void *what)
{
    gift_t at_once = {{.run = gift_give, .timed = waits}, give, what}, *gift = NULL;
    if (!what) return;
    gift = mem_alloc(sizeof *gift);
    if (gift) {
        *gift = at_once;
        stream_chore_add(device, &gift->chore);
    } else {
        atomic_fetch_add(&device->frees, 1);
        gift_give(device, &at_once.chore);
    }
}
