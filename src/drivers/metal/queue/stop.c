// SPDX-License-Identifier: Apache-2.0
// Cancelling what went ahead (ahead.c). A command buffer that was committed cannot be taken back,
// and the host must not write what the GPU may be reading. So a blit does, on a command queue of
// its own that nothing holds up: it fills a word of the run. The guard looks at that word with one
// thread, and makes the grids empty if it is filled. It notes that in a second word, by which later
// guards of the run know, and the host when the command buffer has ended.
//
// A blit that comes too late does no harm: the run then ends as if it had not been cancelled. There
// is one at a time, for all that were cancelled meanwhile, so the queue never has too many command
// buffers. Each run waits for its blit: its words are not used again before.
#include "base/list.h"
#include "drivers/metal/memory/memory.h"
#include "drivers/metal/queue/queue.h"
#include "kit/submission.h"

void metal_stop_begin(metal_run_t *run)
{
    metal_stops_t *stops = &metal_run_device(run)->stops;
    run->stop = (metal_stop_t){.run = run, .listed = run->table.gone != NULL};
    if (!run->stop.listed) return;
    lock_enter(&stops->lock);
    LIST_ADD(stops->all, &run->stop);
    lock_leave(&stops->lock);
}

void metal_stop_end(metal_run_t *run)
{
    metal_stops_t *stops = &metal_run_device(run)->stops;
    if (!run->stop.listed) return;
    lock_enter(&stops->lock);
    LIST_REMOVE(stops->all, &run->stop);
    lock_leave(&stops->lock);
    run->stop.listed = false;
}

// Those to be told, which stay until stops_done; NULL: there are none, or others are being told.
static metal_stop_t *stops_take(metal_stops_t *stops)
{
    metal_stop_t *first = NULL;
    lock_enter(&stops->lock);
    if (!stops->first) {
        atomic_store(&stops->due, false);
        for (metal_stop_t *s = stops->all; s; s = s->next) {
            if (s->told || !submission_is_cancelled(&s->run->base.submission)) continue;
            s->told = true;
            run_begin(&s->run->base); // it is listed, and so has not ended
            s->also = first;
            first = s;
        }
        stops->first = first;
    }
    lock_leave(&stops->lock);
    return first;
}

// They were told, or cannot be. The device may close when the last of them has ended.
static void stops_done(metal_device_t *device)
{
    metal_stops_t *stops = &device->stops;
    lock_enter(&stops->lock);
    metal_stop_t *first = stops->first;
    stops->first = NULL;
    lock_leave(&stops->lock);
    if (atomic_load(&stops->due)) helper_wake(&device->runs.worker);
    for (metal_stop_t *next; first; first = next) {
        next = first->also; // its run may go with this
        run_done(&first->run->base);
    }
}

// On a thread of Metal's.
static void stops_told(metal_block_t *block, id command)
{
    (void)command;
    metal_device_t *device = block->user;
    stops_done(device);
    atomic_fetch_sub(&device->runs.handlers, 1);
}

// False: Metal has no queue, or no command buffer. They come to their end then.
static bool stops_tell(metal_device_t *device, const metal_stop_t *first)
{
    const metal_api_t *api = device->api;
    metal_stops_t *stops = &device->stops;
    if (!stops->queue) stops->queue = mtl_new_queue(api, device->device, METAL_FETCHES);
    id command = mtl_command_buffer(api, stops->queue), blit = mtl_blit_encoder(api, command);
    if (!blit) return false;
    for (; first; first = first->also)
        mtl_fill_buffer(api, blit, metal_memory_buffer(first->run->words),
                        (metal_range_t){METAL_STOP * sizeof(uint32_t), sizeof(uint32_t)}, 1);
    mtl_end_encoding(api, blit);
    metal_block_t block = metal_block(api, stops_told, device);
    mtl_on_completed(api, command, &block);
    atomic_fetch_add(&device->runs.handlers, 1);
    mtl_commit(api, command);
    return true;
}

static void stops_go(metal_device_t *device)
{
    const metal_api_t *api = device->api; // the device may be gone when they are told
    metal_stop_t *first = stops_take(&device->stops);
    if (!first) return;
    void *pool = metal_enter(api);
    if (!stops_tell(device, first)) stops_done(device);
    metal_leave(api, pool);
}

// Each has a cause of its own, which metal_settle finds.
void metal_queue_cancel(keel_queue_t *queue, keel_status_t cause)
{
    metal_device_t *device = metal_device(queue->device);
    (void)cause;
    if (atomic_load(&device->failed)) return; // Metal ends them all
    atomic_store(&device->stops.due, true);
    stops_go(device);
}

void metal_stops_go_on(metal_device_t *device)
{
    if (atomic_load(&device->stops.due)) stops_go(device);
}
