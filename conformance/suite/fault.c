// SPDX-License-Identifier: Apache-2.0
// The calls of a vendor's library. A software stand-in for one can be told, by a variable of the
// environment, to count them into a file, to let one fail, and to lose its devices. It reads the
// variable when the device is opened, in the process of the test.
#include "suite/run.h"

#include <dlfcn.h>
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

const vendor_t *fault_vendor(const char *uri)
{
    static const vendor_t vendors[] = {
        {"amdgpu", "KEEL_SIM_HSA", "KEEL_SIM_SEED", true, ":", ":4104"},
        {"cuda", "KEEL_SIM_CUDA", NULL, false, ":", ":2"},
        {"hip", "KEEL_SIM_HIP", "KEEL_SIM_SEED", true, ":", ":2"},
        {"metal", "KEEL_SIM_METAL", NULL, false, "/", ""},
    };
    size_t length = strcspn(uri, ":");
    for (size_t i = 0; i < sizeof vendors / sizeof *vendors; i++) {
        if (strlen(vendors[i].driver) != length || strncmp(uri, vendors[i].driver, length))
            continue;
        return &vendors[i];
    }
    return NULL;
}

void fault_seed(const settings_t *settings, const job_t *job)
{
    const vendor_t *vendor = fault_vendor(settings->uri);
    char text[32];
    if (settings->mode != MODE_SHUFFLE || !vendor || !vendor->seed) return;
    snprintf(text, sizeof text, "%llu", (unsigned long long)job->seed);
    setenv(vendor->seed, text, 1);
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
    const vendor_t *vendor = fault_vendor(settings->uri);
    char text[400];
    bool seeds = settings->mode == MODE_SHUFFLE && vendor && !vendor->seed;
    if (!vendor || (settings->mode != MODE_FAULT && !seeds)) return;
    const char *before = getenv(vendor->variable);
    int used = snprintf(text, sizeof text, "%s%s", before ? before : "", before ? "," : "");
    if (used < 0 || (size_t)used >= sizeof text) abort();
    char *rest = text + used;
    size_t room = sizeof text - (size_t)used;
    if (seeds) {
        snprintf(rest, room, "seed=%llu", (unsigned long long)job->seed);
    } else if (job->fail_at) {
        const char *symbol = job->symbol ? job->symbol : "";
        snprintf(rest, room, "counters=%d,%s=%s%s%llu%s", counters_open(),
                 job->fault == FAULT_LOST ? "lose" : "fail", symbol, *symbol ? vendor->mark : "",
                 (unsigned long long)job->fail_at,
                 job->fault == FAULT_REFUSED ? vendor->refusal : "");
    } else {
        snprintf(rest, room, "counters=%d", counters_open());
    }
    setenv(vendor->variable, text, 1);
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

size_t fault_left(const char *uri, char *text, size_t size)
{
    char path[1024];
    *text = '\0';
    void *library =
        uri_library(uri, path, sizeof path) ? dlopen(path, RTLD_NOW | RTLD_NOLOAD) : NULL;
    if (!library) return 0;
    void *found = dlsym(library, "keel_sim_left");
    size_t (*left)(char *, size_t);
    memcpy(&left, &found, sizeof left);
    size_t count = found ? left(text, size) : 0;
    dlclose(library);
    return count;
}
