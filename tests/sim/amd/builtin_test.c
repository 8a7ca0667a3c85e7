// SPDX-License-Identifier: Apache-2.0
// builtin_test FILE...: the built-in kernels (src/builtin), compiled for a GPU into each file. The
// name of a file begins with its target.
#include <stdio.h>
#include <string.h>

#include "builtin/judge.h"
#include "sim/amd/bench/device.h"

typedef struct target_t {
    isa_t *isa;
    module_t module;
} target_t;

static bool launch(void *user, const char *kernel, uint32_t groups, uint32_t group_size,
                   const void *arguments, size_t size)
{
    const target_t *target = user;
    char symbol[64];
    snprintf(symbol, sizeof symbol, "%s.kd", kernel);
    uint64_t found = module_symbol(&target->module, symbol);
    bool done = device_run(target->isa, found, groups, group_size, arguments, size);
    if (!done) printf("%s\n", isa_fault(target->isa)->text);
    return done;
}

int main(int argc, char **argv)
{
    unsigned wrong = 0;
    for (int i = 1; i < argc; i++) {
        const char *slash = strrchr(argv[i], '/'), *name = slash ? slash + 1 : argv[i];
        gfx_t gfx = gfx_parse(name, strcspn(name, "-"));
        target_t target = {isa_create(gfx, DEVICE_NODE, &(isa_host_t){0}), module_load(argv[i])};
        unsigned here = judge_run(&(judge_device_t){device_alloc, device_free, launch, &target});
        if (here) printf("%s: %u wrong\n", name, here);
        wrong += here;
        module_unload(&target.module);
        isa_destroy(target.isa);
    }
    printf("%u wrong in %d files\n", wrong, argc - 1);
    return wrong || argc < 2;
}
