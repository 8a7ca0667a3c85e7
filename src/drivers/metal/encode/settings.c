// SPDX-License-Identifier: Apache-2.0
// What the open encoder has set, so that nothing is set twice.
#include "drivers/metal/encode/encode.h"

void metal_indices_taken(metal_run_t *run)
{
    run->variables = NULL;
    run->bound.size = 0;
}

void metal_pipeline_set(metal_run_t *run, id pipeline)
{
    if (run->pipeline == pipeline) return;
    run->pipeline = pipeline;
    mtl_set_pipeline(metal_run_device(run)->api, run->encoder, pipeline);
    metal_local_set(run, 0); // that was the other's
}

void metal_local_set(metal_run_t *run, unsigned long bytes)
{
    if (run->local == bytes) return;
    run->local = bytes;
    mtl_set_local(metal_run_device(run)->api, run->encoder, bytes, 0);
}

void metal_settings_forget(metal_run_t *run)
{
    run->pipeline = NULL;
    metal_indices_taken(run);
    run->named = NULL;
    run->local = 0;
    metal_used_forget(run);
}
