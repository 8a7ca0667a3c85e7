// SPDX-License-Identifier: Apache-2.0
// open_test LIBRARY RUNTIME: a program that opens the software GPU by its path, before it opens
// ROCm's runtime, needs nothing in its environment.
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

// Finds a function of a library; false, after a message, when it has none of this name.
static bool find(void *library, const char *name, void *out, size_t size)
{
    void *symbol = library ? dlsym(library, name) : NULL;
    if (symbol) memcpy(out, &symbol, size);
    if (!symbol) printf("%s\n", dlerror());
    return symbol != NULL;
}

int main(int argc, char **argv)
{
    int (*enter)(char **) = NULL, (*init)(void) = NULL, (*shut_down)(void) = NULL;
    if (argc != 3) return 2;
    void *library = dlopen(argv[1], RTLD_NOW);
    if (!find(library, "keel_sim_enter", &enter, sizeof enter)) return 1;
    int error = enter(argv);
    if (error) {
        printf("keel_sim_enter: %s\n", strerror(error));
        return 1;
    }
    void *runtime = dlopen(argv[2], RTLD_NOW);
    if (!find(runtime, "hsa_init", &init, sizeof init)) return 1;
    if (!find(runtime, "hsa_shut_down", &shut_down, sizeof shut_down)) return 1;
    int status = init();
    printf("hsa_init: %x\n", (unsigned)status);
    return status || shut_down();
}
