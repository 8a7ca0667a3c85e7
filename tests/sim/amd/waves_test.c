// SPDX-License-Identifier: Apache-2.0
// waves_test FILE: a wave knows nothing of the wave that ran in its place before.
#include <stdio.h>

#include "sim/amd/bench/device.h"

enum { GROUPS = 4, SIZE = 64 };

int main(int argc, char **argv)
{
    unsigned wrong = 0;
    if (argc != 2) return 2;
    module_t module = module_load(argv[1]);
    isa_t *isa = isa_create(GFX90A, DEVICE_NODE, NULL);
    uint32_t *data = device_alloc(GROUPS * SIZE * sizeof *data);
    bool ran =
        device_run(isa, module_symbol(&module, "lanes_off.kd"), GROUPS, SIZE, &data, sizeof data);
    for (unsigned k = 0; k < GROUPS * SIZE; k++) wrong += data[k] != 1;
    printf("%u lanes written that were off\n", wrong);
    device_free(data);
    isa_destroy(isa);
    module_unload(&module);
    return !ran || wrong;
}
