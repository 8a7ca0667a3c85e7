// SPDX-License-Identifier: Apache-2.0
// Giving things back to the vendor, who waits for all that the device runs before memory is freed
// or code unloaded. Nobody who lets go of something waits with it: a thread of the device's own
// does, in the order in which things came, for a graph goes before the code that it launches.
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
