// SPDX-License-Identifier: Apache-2.0
// Giving things back to the vendor, who waits for all that the device runs before memory is freed
// or code unloaded, and lets nobody launch anything meanwhile. So a thread of the device's own does
// it when the device rests, and nobody issues meanwhile: what is submitted comes later.
// If somebody needs the memory, busy queues are held up, too, longer each time: what runs may need
// what comes, which has its turn between; if the device just does not rest, seldom and for a
// moment. Graphs go at once, if the device changes no launch of theirs, and before their code.
#include "base/clock.h"
#include "base/memory.h"
#include "drivers/stream/stream.h"

enum {
    PATIENCE_NS = 250000000, // for a device to come to rest, at first
    MOMENT_NS = 128000000,   // for which it is held up at most if it does not
    HOLD_NS = 1000000,       // for which busy queues are held up first
    BATCH_NS = 5000000,      // for which things are given back then
    POLL_NS = 50000,
};

typedef struct gift_t {
    chore_t chore;
    stream_give_t *give;
    void *what;
} gift_t;

static void queues_let_go(stream_device_t *device)
{
    device->held_until = 0;
    atomic_store(&device->holding, false);
    for (stream_queue_t *q = stream_queue_next(device, NULL); q; q = stream_queue_next(device, q))
        stream_queue_go_on(q);
}

void stream_chore_end(stream_device_t *device, bool more)
{
    const chores_list_t *list = &device->chores.timed;
    if (!stream_device_is_ours(device)) return; // who waits for it has stayed with the parent
    more |= atomic_load(&list->added) - atomic_load(&list->over) <= 1; // or it was the last
    bool holds = helper_here() == &device->chores.helper && device->held_until;
    if (holds && (more || keel_now_ns() >= device->held_until)) queues_let_go(device);
    stream_frees_tell(device, 1);
}

static void gift_give(void *owner, chore_t *chore)
{
    stream_device_t *device = owner;
    const gift_t *gift = (const gift_t *)chore;
    stream_entered_t entered;
    if (stream_enter(device, &entered)) {
        gift->give(device->vendor, gift->what);
        stream_leave(&entered);
    }
    stream_chore_end(device, false);
}

// If `holding`, they do not get anything, either.
static bool queues_are_idle(stream_device_t *device)
{
    bool idle = true;
    for (stream_queue_t *q = stream_queue_next(device, NULL); q; q = stream_queue_next(device, q)) {
        stream_queue_poll(q, true);
        bool issued = inbox_is_taken(&q->inbox) && !atomic_load(&q->parked);
        idle &= !issued && stream_queue_is_idle(q);
    }
    return idle;
}

bool stream_may_free(void *owner, uint64_t waited)
{
    stream_device_t *device = owner;
    bool wanted = device->chores.wanted || device->starved, idle;
    if (device->held_until || stream_device_is_lost(device)) return true;
    if (!waited) device->patience_ns = PATIENCE_NS;
    bool needed = wanted || waited > device->patience_ns;
    if (!needed && !queues_are_idle(device)) return false;
    atomic_store(&device->holding, true); // and then look; issuers do it the other way round
    uint64_t moment = waited / 8 < MOMENT_NS ? waited / 8 : MOMENT_NS;
    uint64_t deadline = clock_deadline(wanted ? HOLD_NS + device->hold_ns : moment);
    while (!(idle = queues_are_idle(device)) && needed && keel_now_ns() < deadline)
        clock_sleep(POLL_NS);
    if (!idle) queues_let_go(device);
    device->hold_ns = idle || !wanted ? 0 : device->hold_ns * 2 + HOLD_NS;
    if (waited > device->patience_ns) device->patience_ns = waited + (idle ? PATIENCE_NS : waited);
    device->held_until = !idle ? 0 : needed ? clock_deadline(BATCH_NS) : 1;
    return idle;
}

void stream_chore_add(stream_device_t *device, chore_t *chore)
{
    atomic_fetch_add(&device->frees, 1); // an alloca that finds no memory waits for this one
    chore->timed &= device->limits.quirks.free_waits;
    chores_add(&device->chores, chore);
}

void stream_free(stream_device_t *device, bool waits, stream_give_t *give, void *what)
{
    if (!what) return;
    gift_t at_once = {{.run = gift_give, .timed = waits}, give, what};
    gift_t *gift = mem_alloc(sizeof *gift);
    if (gift) {
        *gift = at_once;
        stream_chore_add(device, &gift->chore);
    } else {
        atomic_fetch_add(&device->frees, 1);
        gift_give(device, &at_once.chore);
    }
}
