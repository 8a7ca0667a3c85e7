// SPDX-License-Identifier: Apache-2.0
// Words of a run, which the host and the GPU see: counts that the GPU reads, what the host is to
// look at, whether the run is to stop, and a table of grids (device.h says what lies where). Queues
// keep them for later runs.
#include "drivers/metal/memory/memory.h"

keel_status_t metal_words_take(metal_run_t *run)
{
    metal_queue_t *q = metal_queue(run->base.submission.queue);
    metal_device_t *device = metal_run_device(run);
    const unsigned long size = METAL_WORDS + METAL_TABLE;
    if (run->words) return NULL;
    lock_enter(&q->lock);
    if (q->words_count) run->words = q->words[--q->words_count];
    lock_leave(&q->lock);
    if (run->words) return NULL;
    id made = mtl_new_buffer(device->api, device->device, size, METAL_SHARED | METAL_UNTRACKED);
    return metal_memory_add(device, made, size, &run->words);
}

void metal_words_give_back(metal_run_t *run)
{
    metal_queue_t *q = metal_queue(run->base.submission.queue);
    if (!run->words) return;
    lock_enter(&q->lock);
    bool kept = q->words_count < METAL_FENCES;
    if (kept) q->words[q->words_count++] = run->words;
    lock_leave(&q->lock);
    if (!kept) metal_memory_remove(metal_run_device(run), run->words);
    run->words = NULL;
}
