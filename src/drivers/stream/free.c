// SPDX-License-Identifier: Apache-2.0
// Giving things back to the vendor, who may wait for all that the device runs before memory is
// freed or code unloaded. Whoever lets go of something waits with it, as he would without us. But
// what work in flight has kept is let go by the thread that tells its end, and that one has more to
// tell: there a thread of its own does it.
#include "base/memory.h"
#include "drivers/stream/stream.h"

typedef struct stream_chore_t {
    struct stream_chore_t *next;
    stream_free_t *work;
    void *what;
} stream_chore_t;

static stream_chore_t *chore_take(stream_device_t *device)
{
    lock_enter(&device->chore_lock);
    stream_chore_t *chore = device->chores;
    if (chore) device->chores = chore->next;
    lock_leave(&device->chore_lock);
    return chore;
}

static void chore_do(stream_device_t *device, stream_free_t *work, void *what)
{
    stream_entered_t entered;
    bool vendor = stream_enter(device, &entered);
    work(device, what, vendor);
    if (vendor) stream_leave(&entered);
}

uint64_t stream_device_free(void *argument)
{
    stream_device_t *device = argument;
    for (stream_chore_t *chore; (chore = chore_take(device));) {
        chore_do(device, chore->work, chore->what);
        mem_free(chore);
        stream_frees_tell(device, 1);
    }
    return KEEL_FOREVER;
}

void stream_free(stream_device_t *device, stream_free_t *work, void *what)
{
    if (submission_is_inside(&device->base))
        stream_free_later(device, work, what);
    else
        chore_do(device, work, what);
}

void stream_free_later(stream_device_t *device, stream_free_t *work, void *what)
{
    stream_chore_t *chore = stream_device_is_ours(device) ? mem_zalloc(sizeof *chore) : NULL;
    if (!chore) {
        chore_do(device, work, what);
        return;
    }
    *chore = (stream_chore_t){.work = work, .what = what};
    atomic_fetch_add(&device->frees, 1); // an alloca that finds no memory waits for this one
    lock_enter(&device->chore_lock);
    chore->next = device->chores;
    device->chores = chore;
    lock_leave(&device->chore_lock);
    if (!helper_wake(&device->freer)) stream_device_free(device);
}
