// SPDX-License-Identifier: Apache-2.0
// Giving things back to the vendor, who waits for all that the device runs before memory is freed
// or code unloaded, and lets nobody launch anything meanwhile. Nobody who lets go of something
// waits with it: a thread of the device's own does, in the order in which things came, for a graph
// goes before the code that it launches; and it asks the vendor only when all is over that ran when
// they came.
#include "base/memory.h"
#include "drivers/stream/stream.h"

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

static void flight_mark(void *owner)
{
    stream_device_t *device = owner;
    for (stream_queue_t *q = stream_queue_next(device, NULL); q; q = stream_queue_next(device, q)) {
        lock_enter(&q->lock);
        q->marked = q->recorded;
        lock_leave(&q->lock);
    }
}

static bool flight_is_past(void *owner)
{
    stream_device_t *device = owner;
    bool past = true;
    for (stream_queue_t *q = stream_queue_next(device, NULL); q; q = stream_queue_next(device, q)) {
        stream_queue_poll(q, true);
        past &= atomic_load(&q->over) >= q->marked;
    }
    return past;
}

const chores_ops_t stream_chores_ops = {flight_mark, flight_is_past};

void stream_chore_add(stream_device_t *device, chore_t *chore)
{
    atomic_fetch_add(&device->frees, 1); // an alloca that finds no memory waits for this one
    chores_add(&device->chores, chore);
}

void stream_free(stream_device_t *device, stream_give_t *give, void *what)
{
    gift_t at_once = {{.run = gift_give}, give, what}, *gift = NULL;
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
