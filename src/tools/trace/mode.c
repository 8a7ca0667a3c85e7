// SPDX-License-Identifier: Apache-2.0
#include "tools/trace/mode.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/place.h"

static const char library[] = "/libkeeltrace.so";

static bool mode_is_known(const char *mode)
{
    static const char *const modes[] = {"auto", "hip", "standard", "lite"};
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++)
        if (strcmp(modes[i], mode) == 0) return true;
    fprintf(stderr, "keel trace: -m: '%s' is none of auto, hip, standard, lite\n", mode);
    return false;
}

// The modes with calls of HIP have the library preloaded. All have it as a tool of ROCm's runtime,
// which from version 6 on leaves such tools out if it knows another, unless it is told not to.
static bool environment_set(const char *mode, const char *folder)
{
    bool calls = strcmp(mode, "auto") == 0 || strcmp(mode, "hip") == 0;
    if (setenv("KEEL_TRACE_MODE", mode, 1) == 0 &&
        setenv("HSA_TOOLS_ROCPROFILER_V1_TOOLS", "1", 0) == 0 &&
        place_prepend("HSA_TOOLS_LIB", " ", folder, library) &&
        (!calls || place_prepend("LD_PRELOAD", " ", folder, library)))
        return true;
    fprintf(stderr, "keel trace: memory is short\n");
    return false;
}

bool mode_apply(const char *mode)
{
    char folder[4096];
    if (!mode_is_known(mode)) return false;
    if (place_find(folder, sizeof folder, library, ".", "../" KEEL_LIBDIR))
        return environment_set(mode, folder);
    if (strcmp(mode, "auto") == 0) return true; // Keel itself is recorded without it
    fprintf(stderr, "keel trace: no libkeeltrace.so beside this program, nor where it is "
                    "installed\n");
    return false;
}
