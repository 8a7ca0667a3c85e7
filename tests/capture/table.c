// SPDX-License-Identifier: Apache-2.0
// table LIBRARY: what a HIP that was built with rocprofiler-register does: it hands its table over,
// and calls through it. Calls arrive with what they were given and return what they should; tables
// of unknown versions, of other libraries, and those of a second HIP stay as they are.
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { MALLOC = 215, FREE = 90, SHORT_OF = 200, SLOTS = 500, REGISTER = 3 };
typedef void (*slot_fn)(void);

typedef struct table_t {
    size_t size;
    slot_fn slots[SLOTS];
} table_t;

typedef int (*set_table_fn)(const char *, uint64_t, uint64_t, void **, uint64_t);
static set_table_fn set_table;
static int mallocs, frees, bad;

static int own_malloc(void **memory, size_t size)
{
    *memory = &mallocs;
    mallocs++;
    return (int)size;
}

static int own_free(void *memory)
{
    frees++;
    return memory == &mallocs ? 0 : 1;
}

static void check(int line, int good)
{
    if (good) return;
    fprintf(stderr, "line %d\n", line);
    bad = 1;
}
#define CHECK(condition) check(__LINE__, condition)

static table_t table_make(size_t slots)
{
    table_t table = {.size = sizeof(size_t) + slots * sizeof(slot_fn)};
    table.slots[MALLOC] = (slot_fn)own_malloc;
    table.slots[FREE] = (slot_fn)own_free;
    table.slots[REGISTER] = (slot_fn)own_free;
    return table;
}

static int hand_over(const char *name, uint64_t version, table_t *table)
{
    void *tables[] = {table};
    return set_table(name, version, 0, tables, 1);
}

static void left_alone(const char *name, uint64_t version)
{
    table_t table = table_make(SLOTS);
    CHECK(hand_over(name, version, &table) != 0);
    CHECK(table.slots[MALLOC] == (slot_fn)own_malloc && table.slots[FREE] == (slot_fn)own_free);
}

static void calls_pass(void)
{
    void *memory = NULL;
    table_t table = table_make(SHORT_OF); // it ends before MALLOC
    CHECK(hand_over("hip", 60443, &table) == 0);
    CHECK(table.slots[FREE] != (slot_fn)own_free);
    CHECK(table.slots[MALLOC] == (slot_fn)own_malloc);
    CHECK(((int (*)(void **, size_t))table.slots[MALLOC])(&memory, 77) == 77);
    CHECK(((int (*)(void *))table.slots[FREE])(memory) == 0);
    CHECK(((int (*)(void *))table.slots[FREE])(NULL) == 1);
    CHECK(mallocs == 1 && frees == 2);
}

int main(int argc, char **argv)
{
    void *library = argc == 2 ? dlopen(argv[1], RTLD_NOW) : NULL;
    void *(*configure)(uint32_t, const char *, uint32_t, void *) =
        library ? (void *(*)(uint32_t, const char *, uint32_t, void *))dlsym(
                      library, "rocprofiler_configure")
                : NULL;
    set_table = library ? (set_table_fn)dlsym(library, "rocprofiler_set_api_table") : NULL;
    if (!configure || !set_table) return fprintf(stderr, "%s\n", dlerror()), 1;
    CHECK(configure(0, "", 0, NULL) == NULL);
    left_alone("hsa", 60443);
    left_alone("hip", 50000);
    left_alone("hip", 80000);
    calls_pass();
    left_alone("hip", 60443);
    table_t compiler = table_make(9);
    CHECK(hand_over("hip_compiler", 60443, &compiler) == 0);
    CHECK(compiler.slots[REGISTER] != (slot_fn)own_free);
    return bad;
}
