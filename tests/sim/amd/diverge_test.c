// SPDX-License-Identifier: Apache-2.0
// diverge_test FILE: runs the plan of dispatches with the kernels of diverge.py in FILE and prints
// their checksums; they must not depend on the order of waves and workgroups.
#include <stdio.h>
#include <string.h>

#include "kernels/plan.h"
#include "sim/amd/bench/device.h"

typedef struct {
    const uint32_t *in;
    uint32_t *out;
    uint32_t size;
} arguments_t;

static isa_t *isa;
static module_t module;
static uint32_t *in, *out;

// False when a kernel failed.
static bool plan_run(uint32_t *sums)
{
    for (uint32_t d = 0; d < PLAN_DISPATCHES; d++) {
        char name[32];
        plan_shape_t shape = plan_shape(d);
        arguments_t arguments = {in, out, shape.size};
        for (uint32_t k = 0; k < PLAN_IN; k++) in[k] = plan_input(d, k);
        memset(out, 0, PLAN_OUT * sizeof *out);
        snprintf(name, sizeof name, "kernel_%u.kd", d % PLAN_KERNELS);
        if (!device_run(isa, module_symbol(&module, name), shape.groups, shape.size, &arguments,
                        sizeof arguments)) {
            printf("%s\n", isa_fault(isa)->text);
            return false;
        }
        sums[d] = plan_checksum(out);
    }
    return true;
}

int main(int argc, char **argv)
{
    uint32_t plain[PLAN_DISPATCHES], random[PLAN_DISPATCHES];
    if (argc != 2) return 2;
    const char *file = strrchr(argv[1], '/') ? strrchr(argv[1], '/') + 1 : argv[1];
    gfx_t gfx = gfx_parse(file, strcspn(file, "-"));
    if (gfx == GFX_COUNT) return 2;
    isa = isa_create(gfx, DEVICE_NODE, NULL);
    module = module_load(argv[1]);
    in = device_alloc(PLAN_IN * sizeof *in);
    out = device_alloc(PLAN_OUT * sizeof *out);
    bool good = plan_run(plain);
    isa_shuffle(isa, 1);
    good = good && plan_run(random);
    for (uint32_t d = 0; good && d < PLAN_DISPATCHES; d++) {
        printf("%08x%s\n", plain[d], plain[d] == random[d] ? "" : " in order, else another");
    }
    device_free(out);
    device_free(in);
    module_unload(&module);
    isa_destroy(isa);
    return !good;
}
