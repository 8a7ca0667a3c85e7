// SPDX-License-Identifier: Apache-2.0
// open_test LIBRARY RUNTIME: a program that opens the software GPU by its path, before it opens
// ROCm's runtime, needs nothing in its environment.
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
    int (*init)(void) = NULL, (*shut_down)(void) = NULL;
    if (argc != 3) return 2;
    void *library = dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL);
    void *runtime = library ? dlopen(argv[2], RTLD_NOW) : NULL;
    void *symbol = runtime ? dlsym(runtime, "hsa_init") : NULL;
    if (!symbol) {
        printf("%s\n", dlerror());
        return 1;
    }
    memcpy(&init, &symbol, sizeof init);
    symbol = dlsym(runtime, "hsa_shut_down");
    memcpy(&shut_down, &symbol, sizeof shut_down);
    int status = init();
    printf("hsa_init: %x\n", (unsigned)status);
    return status || shut_down();
}
