// SPDX-License-Identifier: Apache-2.0
// Memory of a run that both the host and the GPU see, until the run has ended.
#include "drivers/metal/memory/pieces.h"

enum {
    CHUNK = 1 << 16, // that small pieces are cut from
    ALIGNED = 256    // what every GPU takes as the offset of constants
};

keel_status_t metal_stage(metal_run_t *run, uint64_t size, metal_memory_t **memory)
{
    metal_device_t *device = metal_run_device(run);
    size = metal_round_up(size ? size : 1, METAL_WORD);
    id made = mtl_new_buffer(device->api, device->device, size, METAL_SHARED | METAL_UNTRACKED);
    KEEL_TRY(metal_memory_add(device, made, size, memory));
    (*memory)->also = run->staging;
    run->staging = *memory;
    return NULL;
}

keel_status_t metal_stage_cut(metal_run_t *run, uint64_t size, metal_place_t *place, void **data)
{
    uint64_t taken = (size + ALIGNED - 1) / ALIGNED * ALIGNED;
    if (!run->chunk || run->chunk_used + taken > CHUNK) {
        KEEL_TRY(metal_stage(run, taken > CHUNK ? taken : CHUNK, &run->chunk));
        run->chunk_used = 0;
    }
    id buffer = metal_memory_buffer(run->chunk);
    *place = (metal_place_t){buffer, (unsigned long)run->chunk_used, (unsigned long)size, NULL};
    *data = (char *)mtl_contents(metal_run_device(run)->api, buffer) + run->chunk_used;
    run->chunk_used += taken;
    return NULL;
}

void metal_stages_release(metal_run_t *run)
{
    for (metal_memory_t *memory; (memory = run->staging) != NULL;) {
        run->staging = memory->also;
        metal_memory_remove(metal_run_device(run), memory);
    }
    run->chunk = NULL; // was one of these
}
