// SPDX-License-Identifier: Apache-2.0
// fail_test LIBRARY REAL: the library that lets HIP fail forwards to the real one, counts, and lets
// the calls fail that it was told.
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/forward/fail.h"

static void *library;
static const char *real;

// Calls a function by its name, with two words.
static int call(const char *name, void *a, void *b)
{
    int (*function)(void *, void *);
    void *found = dlsym(library, name);
    if (!found) abort();
    memcpy(&function, &found, sizeof function);
    return function(a, b);
}

// Gives the library new rules, which it reads when it is asked for devices. What it has counted.
static counters_t counters_of(const char *rules)
{
    int count = 0;
    counters_t counters = rules_set("KEEL_SIM_HIP", real, rules);
    CHECK(call("hipGetDeviceCount", &count, NULL) == 0);
    CHECK(count == 1);
    return counters;
}

static int alloc(void **memory)
{
    return call("hipMalloc", memory, (void *)256);
}

int main(int count, char **words)
{
    enum { NO_MEMORY = 2, UNKNOWN = 999 };
    void *memory = NULL, *other = NULL;
    if (count != 3) return 2;
    real = words[2];
    counters_open();
    rules_set("KEEL_SIM_HIP", real, "");
    library = dlopen(words[1], RTLD_NOW);
    if (!library) return 2;
    CHECK(call("hipInit", NULL, NULL) == 0);
    (void)counters_of(",fail=hipMalloc:2:2");
    CHECK(alloc(&memory) == 0);
    CHECK(alloc(&other) == NO_MEMORY);
    CHECK(alloc(&other) == 0);
    CHECK(call("hipFree", other, NULL) == 0);
    counters_t seen = counters_of(",lose=hipFree:1");
    CHECK(seen.hit == 1);
    CHECK(seen.calls == 6); // hipInit among them
    CHECK(counted(&seen, "hipMalloc") == 3);
    CHECK(call("hipFree", memory, NULL) == UNKNOWN);
    CHECK(alloc(&other) == UNKNOWN);
    (void)counters_of(",fail=hipMalloc:2"); // with other rules it is there again
    CHECK(alloc(&other) == 0);
    CHECK(call("hipFree", other, NULL) == 0);
    return failures != 0;
}
