// SPDX-License-Identifier: Apache-2.0
// The GPUs that there are.
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "amd/engine/engine.h"

static gfx_t gpus[GPU_MAX];
static unsigned gpus_found;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void gpus_read(void)
{
    const char *text = getenv("KEEL_SIM_GPUS");
    if (!text || !*text) text = "gfx90a";
    while (*text && gpus_found < GPU_MAX) {
        size_t length = strcspn(text, ",");
        gfx_t gfx = gfx_parse(text, length);
        if (gfx == GFX_COUNT) {
            log_line(LOG_ERROR,
                     "KEEL_SIM_GPUS: %.*s is none of gfx900, gfx906, gfx908, gfx90a, gfx942",
                     (int)length, text);
        } else {
            gpus[gpus_found++] = gfx;
        }
        text += length + (text[length] == ',');
    }
}

unsigned gpu_count(void)
{
    pthread_once(&once, gpus_read);
    return gpus_found;
}

bool gpu_is(unsigned node)
{
    return node >= NODE_FIRST_GPU && node - NODE_FIRST_GPU < gpu_count();
}

gfx_t gpu_gfx(unsigned node)
{
    return gpus[node - NODE_FIRST_GPU];
}
