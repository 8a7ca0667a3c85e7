// SPDX-License-Identifier: Apache-2.0
// For tests of libraries that let a vendor's fail (sim/forward): tells them rules, and reads what
// they have counted.
#ifndef TESTS_SIM_FORWARD_FAIL_H_
#define TESTS_SIM_FORWARD_FAIL_H_

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

static FILE *counters_file;
static int failures;

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (condition) break;                                                                      \
        fprintf(stderr, "%s:%d: %s does not hold\n", __FILE__, __LINE__, #condition);              \
        failures++;                                                                                \
    } while (0)

static inline void counters_open(void)
{
    counters_t none = {0};
    counters_file = tmpfile();
    if (!counters_file || fwrite(&none, sizeof none, 1, counters_file) != 1) abort();
    if (fflush(counters_file)) abort();
    setvbuf(counters_file, NULL, _IONBF, 0);
}

// Sets the variable: the library at `real` behind it, and the rules, each with a comma before it.
// Returns what was counted so far.
static inline counters_t rules_set(const char *variable, const char *real, const char *rules)
{
    counters_t counters;
    char text[1024];
    snprintf(text, sizeof text, "library=%s,counters=%d%s", real, fileno(counters_file), rules);
    if (fseek(counters_file, 0, SEEK_SET)) abort();
    if (fread(&counters, sizeof counters, 1, counters_file) != 1) abort();
    setenv(variable, text, 1);
    return counters;
}

// How often a function was called.
static inline uint64_t counted(const counters_t *counters, const char *name)
{
    for (size_t i = 0; i < sizeof counters->tallies / sizeof *counters->tallies; i++)
        if (!strcmp(counters->tallies[i].name, name)) return counters->tallies[i].calls;
    return 0;
}

#endif
