// SPDX-License-Identifier: Apache-2.0
// Buffers that the open encoder has made resident: kernels reach them by address, of which Metal
// knows nothing. Each is named once for each encoder.
#include <string.h>

#include "base/memory.h"
#include "drivers/metal/encode/encode.h"

// Where a buffer lies in the table, or would: at the place that its address says, or at the next
// one that is free.
static id *used_find(id *used, uint32_t room, id buffer)
{
    const uint64_t golden = 0x9e3779b97f4a7c15; // spreads what differs in some bits
    uint32_t at = (uint32_t)((uint64_t)(uintptr_t)buffer * golden >> 32) & (room - 1);
    while (used[at] && used[at] != buffer) at = (at + 1) & (room - 1);
    return &used[at];
}

// False: there is no memory for that.
static bool used_grow(metal_run_t *run)
{
    uint32_t room = 2 * run->used_room;
    id *used = mem_zalloc(room * sizeof *used);
    if (!used) return false;
    for (uint32_t i = 0; i < run->used_room; i++)
        if (run->used[i]) *used_find(used, room, run->used[i]) = run->used[i];
    if (run->used != run->used_few) mem_free(run->used);
    run->used = used;
    run->used_room = room;
    return true;
}

void metal_used_forget(metal_run_t *run)
{
    if (!run->used) {
        run->used = run->used_few;
        run->used_room = METAL_USED;
    }
    memset(run->used, 0, run->used_room * sizeof *run->used);
    run->used_count = 0;
}

void metal_used_release(metal_run_t *run)
{
    if (run->used != run->used_few) mem_free(run->used);
    run->used = NULL;
}

// The table is at most half full. Where it cannot grow it is emptied: a message is then sent twice,
// which does no harm.
void metal_used_add(metal_run_t *run, id buffer)
{
    if (metal_run_device(run)->residency) return;
    if (*used_find(run->used, run->used_room, buffer)) return;
    if (2 * (run->used_count + 1) > run->used_room && !used_grow(run)) metal_used_forget(run);
    *used_find(run->used, run->used_room, buffer) = buffer;
    run->used_count++;
    mtl_use_resource(metal_run_device(run)->api, run->encoder, buffer, METAL_READ | METAL_WRITE);
}
