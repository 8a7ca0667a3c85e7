// SPDX-License-Identifier: Apache-2.0
#include "capture/mode.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"

typedef struct named_t {
    const char *name;
    capture_mode_t mode;
} named_t;

static const named_t modes[] = {
    {"auto", {.kernels = true, .copies = true, .calls = true}},
    {"hip", {.kernels = true, .copies = true, .calls = true}},
    {"cuda", {.kernels = true, .copies = true, .calls = true}},
    {"standard", {.kernels = true, .copies = true}},
    {"default", {.kernels = true, .copies = true}}, // names of rocm-trace-lite
    {"full", {.kernels = true, .copies = true}},
    {"lite", {.kernels = true, .launches = true}},
};
static capture_mode_t chosen;

static void mode_choose(void)
{
    const char *variable = "KEEL_TRACE_MODE", *name = getenv(variable);
    chosen = modes[0].mode;
    if (!name || !*name) name = getenv(variable = "RTL_MODE");
    if (!name || !*name) return;
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        if (strcmp(modes[i].name, name) != 0) continue;
        chosen = modes[i].mode;
        return;
    }
    log_say(KEEL_LOG_WARNING, "%s is '%s', none of auto, hip, cuda, standard and lite: auto",
            variable, name);
}

static void choose(void)
{
    const char *calls = getenv("KEEL_TRACE_CALLS");
    mode_choose();
    chosen.all_calls = calls && strcmp(calls, "all") == 0;
}

const capture_mode_t *capture_mode(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, choose);
    return &chosen;
}
