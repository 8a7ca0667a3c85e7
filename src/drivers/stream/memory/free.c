// SPDX-License-Identifier: Apache-2.0
// Giving things back to the vendor. Some vendors wait for all that the device runs before they free
// memory or unload code, and let no other thread launch anything meanwhile (quirk free_waits). So a
// thread of the device's does it when the device has nothing to do, and no thread issues meanwhile:
// what is submitted is issued right after.
//
// If an alloca waits for memory, busy queues are held up too, longer each time: what runs may need
// what comes, which has its turn between. If the device just does not come to rest, they are held
// up seldom and for a moment. Graphs go at once, unless the device changes launches of theirs, and
// before their code.
#include "base/clock.h"
#include "base/memory.h"
#include "drivers/stream/memory/memory.h"

enum {
    PATIENCE_NS = 250000000, // for a device to come to rest, at first
    MOMENT_NS = 128000000,   // for which it is held up at most if it does not
    HOLD_NS = 1000000,       // for which busy queues are held up first
    BATCH_NS = 5000000,      // for which things are given back then
    POLL_NS = 50000,
};

typedef struct giveback_t {
    chore_t chore;
    stream_give_t *give;
    void *what;
} giveback_t;

static void queues_let_go(stream_device_t *device)
{
    device->hold.until = 0;
    atomic_store(&device->hold.on, false);
    STREAM_EACH_QUEUE(q, device)
    stream_queue_go_on(q);
}

void stream_chore_end(stream_device_t *device, bool more)
{
    const chores_list_t *list = &device->chores.timed;
    if (!stream_device_is_ours(device)) return; // what waits for it has stayed with the parent
    more |= atomic_load(&list->added) - atomic_load(&list->over) <= 1; // or it was the last
    bool holds = helper_here() == &device->chores.helper && device->hold.until;
    if (holds && (more || keel_now_ns() >= device->hold.until)) queues_let_go(device);
    reclaim_end(&device->reclaim, 1);
}

static void giveback_run(void *owner, chore_t *chore)
{
    stream_device_t *device = owner;
    const giveback_t *giveback = (const giveback_t *)chore;
    stream_entered_t entered;
    if (stream_enter(device, &entered)) {
        giveback->give(device->vendor, giveback->what);
        stream_leave(&entered);
    }
    stream_chore_end(device, false);
}

// Whether no queue has work. If queues are held up, they get none, either.
static bool queues_are_idle(stream_device_t *device)
{
    bool idle = true;
    STREAM_EACH_QUEUE(q, device)
    {
        stream_queue_poll(q, true);
        bool issued = inbox_is_taken(&q->inbox) && atomic_load(&q->turn) != STREAM_TURN_HELD;
        idle &= !issued && stream_queue_is_idle(q);
    }
    return idle;
}

bool stream_may_free(void *owner, uint64_t waited)
{
    stream_device_t *device = owner;
    bool wanted = device->chores.wanted || reclaim_is_awaited(&device->reclaim), idle;
    if (device->hold.until || stream_device_is_lost(device)) return true;
    if (!waited) device->hold.patience_ns = PATIENCE_NS;
    bool needed = wanted || waited > device->hold.patience_ns;
    if (!needed && !queues_are_idle(device)) return false;
    atomic_store(&device->hold.on, true); // and then look; issuers do it the other way round
    uint64_t moment = waited / 8 < MOMENT_NS ? waited / 8 : MOMENT_NS;
    uint64_t deadline = clock_deadline(wanted ? HOLD_NS + device->hold.busy_ns : moment);
    while (!(idle = queues_are_idle(device)) && needed && keel_now_ns() < deadline)
        clock_sleep(POLL_NS);
    if (!idle) queues_let_go(device);
    device->hold.busy_ns = idle || !wanted ? 0 : device->hold.busy_ns * 2 + HOLD_NS;
    if (waited > device->hold.patience_ns)
        device->hold.patience_ns = waited + (idle ? PATIENCE_NS : waited);
    device->hold.until = !idle ? 0 : needed ? clock_deadline(BATCH_NS) : 1;
    return idle;
}

void stream_chore_add(stream_device_t *device, chore_t *chore)
{
    reclaim_begin(&device->reclaim); // an alloca that finds no memory waits for this one
    chore->timed &= device->limits.quirks.free_waits;
    chores_add(&device->chores, chore);
}

void stream_free(stream_device_t *device, bool waits, stream_give_t *give, void *what)
{
    if (!what) return;
    giveback_t at_once = {{.run = giveback_run, .timed = waits}, give, what};
    giveback_t *giveback = mem_alloc(sizeof *giveback);
    if (giveback) {
        *giveback = at_once;
        stream_chore_add(device, &giveback->chore);
    } else {
        reclaim_begin(&device->reclaim);
        giveback_run(device, &at_once.chore);
    }
}
