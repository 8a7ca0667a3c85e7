// SPDX-License-Identifier: Apache-2.0
// fail_test LIBRARY REAL: the library that lets HIP fail forwards to the real one, counts, and lets
// the calls fail that it was told.
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct counters_t {
    uint64_t calls, hit;
    struct {
        char name[56];
        uint64_t calls;
    } tallies[8];
} counters_t;

static void *library;
static FILE *file;
static const char *real;
static int failures;

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (condition) break;                                                                      \
        fprintf(stderr, "%s:%d: %s does not hold\n", __FILE__, __LINE__, #condition);              \
        failures++;                                                                                \
    } while (0)

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
    counters_t counters = {0};
    char text[1024];
    int count = 0;
    snprintf(text, sizeof text, "library=%s,counters=%d%s", real, fileno(file), rules);
    if (fseek(file, 0, SEEK_SET) || fread(&counters, sizeof counters, 1, file) != 1) abort();
    setenv("KEEL_SIM_HIP", text, 1);
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
    counters_t none = {0};
    void *memory = NULL, *other = NULL;
    if (count != 3) return 2;
    real = words[2];
    file = tmpfile();
    if (!file || fwrite(&none, sizeof none, 1, file) != 1 || fflush(file)) return 2;
    setvbuf(file, NULL, _IONBF, 0);
    char text[1024];
    snprintf(text, sizeof text, "library=%s", real);
    setenv("KEEL_SIM_HIP", text, 1);
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
    CHECK(seen.calls == 5);
    CHECK(!strcmp(seen.tallies[1].name, "hipMalloc") && seen.tallies[1].calls == 3);
    CHECK(call("hipFree", memory, NULL) == UNKNOWN);
    CHECK(alloc(&other) == UNKNOWN);
    (void)counters_of(",fail=hipMalloc:2"); // with other rules it is there again
    CHECK(alloc(&other) == 0);
    CHECK(call("hipFree", other, NULL) == 0);
    fclose(file);
    return failures != 0;
}
