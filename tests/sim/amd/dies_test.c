// SPDX-License-Identifier: Apache-2.0
// dies_test FILE...: workgroups are dealt out among the dies of a GPU, in whatever order they run.
// The name of a file begins with its target.
#include <stdio.h>
#include <string.h>

#include "sim/amd/bench/device.h"

enum { GROUPS = 20 };

static unsigned check(const char *path, uint32_t *out)
{
    const char *file = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
    gfx_t gfx = gfx_parse(file, strcspn(file, "-"));
    unsigned dies = gfx == GFX942 ? 8 : 1, wrong = gfx_dies(gfx) != dies;
    module_t module = module_load(path);
    isa_t *isa = isa_create(gfx, DEVICE_NODE, NULL);
    isa_shuffle(isa, 3);
    memset(out, 0xee, GROUPS * sizeof *out);
    wrong += !device_run(isa, module_symbol(&module, "die.kd"), GROUPS, 64, &out, sizeof out);
    for (uint32_t group = 0; group < GROUPS; group++) wrong += out[group] != group % dies;
    isa_destroy(isa);
    module_unload(&module);
    printf("%s: %u wrong\n", file, wrong);
    return wrong;
}

int main(int argc, char **argv)
{
    unsigned wrong = 0;
    uint32_t *out = device_alloc(GROUPS * sizeof *out);
    for (int k = 1; k < argc; k++) wrong += check(argv[k], out);
    device_free(out);
    return wrong != 0 || argc < 2;
}
