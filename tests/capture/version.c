// SPDX-License-Identifier: Apache-2.0
// version LIBRARY: tables of a ROCm runtime whose version is not known stay as they are, and a
// line says so; those that are known get other functions.
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "capture/hsa/abi.h"

enum { SLOTS = 128 };

typedef struct made_t {
    hsa_version_t version;
    hsa_fn slots[SLOTS];
} made_t;

typedef bool (*load_fn)(void *tables, uint64_t version, uint64_t failed_count,
                        const char *const *failed);

// Stands for every function of the runtime: all succeed and do nothing.
static uint32_t nothing(void)
{
    return 0;
}

// How many functions of the tables are others afterwards; -1: the library was not content.
static int replaced(load_fn load, uint32_t core, uint32_t amd, uint32_t amd_size)
{
    static made_t tables[2];
    struct {
        hsa_version_t version;
        made_t *core, *amd;
    } all = {{3, sizeof all, 0, 0}, &tables[0], &tables[1]};
    int count = 0;
    tables[0].version = (hsa_version_t){core, 16 + 8 * 125, 0, 0};
    tables[1].version = (hsa_version_t){amd, amd_size, 0, 0};
    for (int t = 0; t < 2; t++)
        for (int i = 0; i < SLOTS; i++) tables[t].slots[i] = (hsa_fn)nothing;
    if (!load(&all, 1, 0, NULL)) return -1;
    for (int t = 0; t < 2; t++)
        for (int i = 0; i < SLOTS; i++) count += tables[t].slots[i] != (hsa_fn)nothing;
    return count;
}

static int check(int line, int found, int expected)
{
    if (found == expected) return 0;
    fprintf(stderr, "line %d: %d functions are replaced, not %d\n", line, found, expected);
    return 1;
}

int main(int argc, char **argv)
{
    char folder[] = "/tmp/capture-XXXXXX";
    if (argc != 2 || !mkdtemp(folder) || setenv("KEEL_TRACE", folder, 1) != 0) return 2;
    void *library = dlopen(argv[1], RTLD_NOW);
    load_fn load = library ? (load_fn)dlsym(library, "OnLoad") : NULL;
    if (!load) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    int bad = check(__LINE__, replaced(load, 1, 1, 400), 14);
    bad += check(__LINE__, replaced(load, 2, 2, 16 + 8 * 72), 15);
    bad += check(__LINE__, replaced(load, 1, 1, 408), 0);
    bad += check(__LINE__, replaced(load, 2, 3, 16 + 8 * 72), 0);
    bad += check(__LINE__, replaced(load, 9, 2, 16 + 8 * 72), 0);
    char line[256];
    snprintf(line, sizeof line, "rm -r %s", folder);
    return system(line) != 0 || bad;
}
