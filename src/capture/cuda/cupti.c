// SPDX-License-Identifier: Apache-2.0
#include "capture/cuda/cupti.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"

cupti_functions_t cupti;

// By the name that its versions have, loaded already or to be loaded.
static void *name_open(int flags)
{
    static const char *const names[] = {"libcupti.so.13", "libcupti.so.12", "libcupti.so"};
    void *handle = NULL;
    for (size_t i = 0; !handle && i < sizeof names / sizeof *names; i++)
        handle = dlopen(names[i], RTLD_LAZY | RTLD_LOCAL | flags);
    return handle;
}

// Where CUDA is installed.
static void *place_open(const char *root)
{
    static const char *const places[] = {"extras/CUPTI/lib64", "lib64", "lib"};
    void *handle = NULL;
    for (size_t i = 0; root && *root && !handle && i < sizeof places / sizeof *places; i++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/%s/libcupti.so", root, places[i]);
        handle = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
    }
    return handle;
}

static void *library_open(void)
{
    void *handle = name_open(RTLD_NOLOAD);
    if (!handle) handle = name_open(0);
    if (!handle) handle = place_open(getenv("CUDA_HOME"));
    if (!handle) handle = place_open(getenv("CUDA_PATH"));
    if (!handle) handle = place_open("/usr/local/cuda");
    return handle;
}

// The name of a function that is missing; NULL: none is.
static const char *functions_find(void *handle)
{
    const char *missing = NULL;
#define FUNCTION(name, symbol, parameters)                                                         \
    cupti.name = (int(*) parameters)(uintptr_t)dlsym(handle, #symbol);                             \
    if (!cupti.name) missing = #symbol;
#include "capture/cuda/functions.def"
#undef FUNCTION
    return missing;
}

bool cupti_check(int result, const char *what)
{
    const char *text = NULL;
    if (result == CUPTI_SUCCESS) return true;
    if (cupti.result_string(result, &text) != CUPTI_SUCCESS || !text) text = "no such error";
    log_say(KEEL_LOG_WARNING, "CUDA is not traced as a whole: %s failed with %d (%s)", what, result,
            text);
    return false;
}

bool cupti_open(void)
{
    void *handle = library_open();
    if (!handle) {
        log_say(KEEL_LOG_WARNING, "CUDA is not traced: no libcupti.so of CUDA 12 or 13: put its "
                                  "folder into LD_LIBRARY_PATH");
        return false;
    }
    const char *missing = functions_find(handle);
    if (missing) {
        log_say(KEEL_LOG_WARNING, "CUDA is not traced: libcupti.so has no %s", missing);
        return false;
    }
    uint32_t version = 0;
    if (!cupti_check(cupti.get_version(&version), "cuptiGetVersion")) return false;
    if (version >= CUPTI_OLDEST && version < CUPTI_TOO_NEW) return true;
    log_say(KEEL_LOG_WARNING,
            "CUDA is not traced: CUPTI has version %u; known are %d (CUDA 12.0) to those of 13",
            version, CUPTI_OLDEST);
    return false;
}
