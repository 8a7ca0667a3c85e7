// SPDX-License-Identifier: Apache-2.0
// order_test FILE: workgroups run in order, or in the order of a seed, and every one of them once.
#include <stdio.h>
#include <string.h>

#include "sim/amd/bench/device.h"

enum { GROUPS = 100 };

static isa_t *isa;
static uint64_t kernel;
static uint32_t *order;

static bool run(uint64_t seed, uint32_t *out)
{
    uint32_t seen[GROUPS] = {0};
    memset(order, 0, 4096);
    isa_shuffle(isa, seed);
    if (!device_run(isa, kernel, GROUPS, 64, &order, sizeof order) || order[0] != GROUPS)
        return false;
    memcpy(out, order + 1, GROUPS * sizeof *out);
    for (unsigned k = 0; k < GROUPS; k++) {
        if (out[k] >= GROUPS || seen[out[k]]++) return false;
    }
    return true;
}

int main(int argc, char **argv)
{
    uint32_t plain[GROUPS], one[GROUPS], again[GROUPS], other[GROUPS];
    if (argc != 2) return 2;
    module_t module = module_load(argv[1]);
    isa = isa_create(GFX90A, DEVICE_NODE, NULL);
    kernel = module_symbol(&module, "append_group.kd");
    order = device_alloc(4096);
    bool all = run(0, plain) && run(1, one) && run(1, again) && run(2, other);
    bool in_order = true;
    for (unsigned k = 0; k < GROUPS; k++) in_order = in_order && plain[k] == k;
    bool repeats = !memcmp(one, again, sizeof one);
    bool differs = memcmp(one, plain, sizeof one) && memcmp(one, other, sizeof one);
    // On several threads too, whose order is not known.
    all = all && isa_threads(isa, 4) && run(0, other) && run(3, other);
    printf("every group once %d, in order %d, repeats %d, differs %d\n", all, in_order, repeats,
           differs);
    device_free(order);
    isa_destroy(isa);
    module_unload(&module);
    return !(all && in_order && repeats && differs);
}
