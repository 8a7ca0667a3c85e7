// SPDX-License-Identifier: Apache-2.0
// The calls of a vendor's library. A software stand-in for one can be told, by a variable of the
// environment, to count them into a file, to let one fail, and to lose its devices. It reads the
// variable when the device is opened, in the process of the test.
#include "suite/run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

// Written by the library.
typedef struct counters_t {
    uint64_t calls;
    uint64_t hit; // a call was made to fail
    tally_t tallies[TALLIES_MAX];
} counters_t;

static counters_t *counters;

const char *fault_variable(const char *uri)
{
    static const char *const variables[][2] = {{"cuda", "KEEL_SIM_CUDA"}};
    size_t length = strcspn(uri, ":");
    for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++) {
        if (strlen(variables[i][0]) != length || strncmp(uri, variables[i][0], length)) continue;
        return variables[i][1];
    }
    return NULL;
}

static int counters_open(void)
{
    FILE *file = tmpfile();
    if (!file || ftruncate(fileno(file), sizeof *counters)) abort();
    counters = mmap(NULL, sizeof *counters, PROT_READ | PROT_WRITE, MAP_SHARED, fileno(file), 0);
    if (counters == MAP_FAILED) abort();
    return fileno(file);
}

void fault_install(const settings_t *settings, const job_t *job)
{
    const char *variable = fault_variable(settings->uri), *before;
    char text[400];
    if (!variable || (settings->mode != MODE_FAULT && settings->mode != MODE_SHUFFLE)) return;
    before = getenv(variable);
    int used = snprintf(text, sizeof text, "%s%s", before ? before : "", before ? "," : "");
    if (used < 0 || (size_t)used >= sizeof text) abort();
    char *rest = text + used;
    size_t room = sizeof text - (size_t)used;
    if (settings->mode == MODE_SHUFFLE) {
        snprintf(rest, room, "seed=%llu", (unsigned long long)job->seed);
    } else if (job->fail_at) {
        const char *symbol = job->symbol ? job->symbol : "";
        snprintf(rest, room, "counters=%d,%s=%s%s%llu%s", counters_open(),
                 job->fault == FAULT_LOST ? "lose" : "fail", symbol, *symbol ? ":" : "",
                 (unsigned long long)job->fail_at, job->fault == FAULT_REFUSED ? ":2" : "");
    } else {
        snprintf(rest, room, "counters=%d", counters_open());
    }
    setenv(variable, text, 1);
}

uint64_t fault_calls(tally_t tallies[TALLIES_MAX])
{
    if (!counters) return 0;
    memcpy(tallies, counters->tallies, sizeof counters->tallies);
    return __atomic_load_n(&counters->calls, __ATOMIC_RELAXED);
}

bool faulted(void)
{
    return fault_hit();
}

bool fault_hit(void)
{
    return counters && __atomic_load_n(&counters->hit, __ATOMIC_RELAXED);
}
