// SPDX-License-Identifier: Apache-2.0
// late HIP: a program that asks for a function of HIP, and calls it, before and after it opens HIP.
// What was not there is found once it is. Ends with 7 if all is as it should be.
#include <dlfcn.h>
#include <stdio.h>

typedef int (*malloc_fn)(void **memory, size_t size);
int hipMalloc(void **memory, size_t size) __attribute__((weak)); // of a preloaded library

static int bad;

static void check(int line, int good)
{
    if (good) return;
    fprintf(stderr, "line %d\n", line);
    bad = 1;
}
#define CHECK(condition) check(__LINE__, condition)

int main(int argc, char **argv)
{
    enum { SYMBOL_NOT_FOUND = 302 };
    void *memory = NULL;
    for (int i = 0; i < 2; i++) {
        CHECK(!dlsym(RTLD_DEFAULT, "hipMalloc"));
        if (hipMalloc) CHECK(hipMalloc(&memory, 16) == SYMBOL_NOT_FOUND);
    }
    void *hip = argc == 2 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    malloc_fn found = hip ? (malloc_fn)dlsym(hip, "hipMalloc") : NULL;
    CHECK(found && found(&memory, 16) == 0 && memory);
    if (hipMalloc) CHECK(hipMalloc(&memory, 16) == 0);
    puts(bad ? "wrong" : "right");
    return bad ? 1 : 7;
}
