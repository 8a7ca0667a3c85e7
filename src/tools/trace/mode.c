// SPDX-License-Identifier: Apache-2.0
#include "tools/trace/mode.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/place.h"

static const char library[] = "/libkeeltrace.so";

// Which runtimes a mode is for.
typedef struct known_mode_t {
    const char *name;
    bool rocm, cuda;
    bool preload; // for calls of HIP, or launches of CUDA
    bool alone;   // CUDA does not load the library, so that it may load another
} known_mode_t;

static const known_mode_t *mode_find(const char *name)
{
    static const known_mode_t modes[] = {
        {"auto", .rocm = true, .cuda = true, .preload = true},
        {"hip", .rocm = true, .preload = true},
        {"cuda", .cuda = true},
        {"standard", .rocm = true, .cuda = true},
        {"lite", .rocm = true, .cuda = true, .preload = true, .alone = true},
    };
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++)
        if (strcmp(modes[i].name, name) == 0) return &modes[i];
    fprintf(stderr, "keel trace: -m: '%s' is none of auto, hip, cuda, standard, lite\n", name);
    return NULL;
}

// ROCm's runtime has the library as a tool: from version 6 on it leaves such tools out if it knows
// another, unless it is told not to.
static bool rocm_set(const char *folder)
{
    return setenv("HSA_TOOLS_ROCPROFILER_V1_TOOLS", "1", 0) == 0 &&
           place_prepend("HSA_TOOLS_LIB", " ", folder, library);
}

// The CUDA driver, and NVTX, take one library each. One that is named already is another profiler.
static bool cuda_set(const known_mode_t *mode, const char *folder)
{
    static const char *const names[] = {"NVTX_INJECTION64_PATH", "CUDA_INJECTION64_PATH"};
    size_t count = mode->alone ? 1 : 2;
    char path[4096 + sizeof library];
    snprintf(path, sizeof path, "%s%s", folder, library);
    for (size_t i = 0; i < count; i++) {
        const char *other = getenv(names[i]);
        if (other && *other && strcmp(other, path) != 0)
            fprintf(stderr, "keel trace: %s names another profiler, %s: it is left out\n", names[i],
                    other);
        if (setenv(names[i], path, 1) != 0) return false;
    }
    return true;
}

static bool environment_set(const known_mode_t *mode, const char *folder)
{
    if (setenv("KEEL_TRACE_MODE", mode->name, 1) == 0 && (!mode->rocm || rocm_set(folder)) &&
        (!mode->cuda || cuda_set(mode, folder)) &&
        (!mode->preload || place_prepend("LD_PRELOAD", " ", folder, library)))
        return true;
    fprintf(stderr, "keel trace: memory is short\n");
    return false;
}

bool mode_apply(const char *name)
{
    char folder[4096];
    const known_mode_t *mode = mode_find(name);
    if (!mode) return false;
    if (place_find(folder, sizeof folder, library, ".", "../" KEEL_LIBDIR))
        return environment_set(mode, folder);
    if (strcmp(name, "auto") == 0) return true; // Keel itself is recorded without it
    fprintf(stderr, "keel trace: no libkeeltrace.so beside this program, nor where it is "
                    "installed\n");
    return false;
}
