// SPDX-License-Identifier: Apache-2.0
// dies_test FILE...: workgroups are dealt out among the dies of a GPU in which they have compute
// units, in whatever order they run. The name of a file begins with its target.
#include <stdio.h>
#include <string.h>

#include "sim/amd/bench/device.h"

enum { GROUPS = 20 };

// Workgroups that were not on the die that is their turn's.
static unsigned misplaced(isa_t *isa, dispatch_t dispatch, uint32_t *out, const uint32_t *dies,
                          unsigned count)
{
    unsigned wrong = 0;
    memset(out, 0xee, GROUPS * sizeof *out);
    wrong += !device_launch(isa, dispatch, &out, sizeof out);
    for (uint32_t group = 0; group < GROUPS; group++) wrong += out[group] != dies[group % count];
    return wrong;
}

static unsigned check(const char *path, uint32_t *out)
{
    const char *file = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
    gfx_t gfx = gfx_parse(file, strcspn(file, "-"));
    unsigned dies = gfx == GFX942 ? 8 : 1, wrong = gfx_dies(gfx) != dies;
    static const uint32_t all[] = {0, 1, 2, 3, 4, 5, 6, 7}, some[] = {0, 2};
    module_t module = module_load(path);
    isa_t *isa = isa_create(gfx, DEVICE_NODE, NULL);
    isa_shuffle(isa, 3);
    dispatch_t dispatch = device_dispatch(module_symbol(&module, "die.kd"), GROUPS, 64);
    wrong += misplaced(isa, dispatch, out, all, dies);
    dispatch.units = 1 | 1 << 2 | 1 << dies; // one of another die, two of the first
    wrong += misplaced(isa, dispatch, out, some, dies == 1 ? 1 : 2);
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
