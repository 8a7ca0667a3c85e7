// SPDX-License-Identifier: Apache-2.0
// csmith_test FILE: runs a program of csmith, compiled into FILE as a kernel, on one lane, and
// prints its checksum. csmith.py makes the files and compares.
#include <stdio.h>
#include <string.h>

#include "sim/amd/bench/device.h"

int main(int argc, char **argv)
{
    if (argc != 2) return 2;
    const char *file = strrchr(argv[1], '/') ? strrchr(argv[1], '/') + 1 : argv[1];
    gfx_t gfx = gfx_parse(file, strcspn(file, "-"));
    if (gfx == GFX_COUNT) return 2;
    isa_t *isa = isa_create(gfx, DEVICE_NODE, NULL);
    module_t module = module_load(argv[1]);
    uint32_t *out = device_alloc(4);
    bool ran = device_run(isa, module_symbol(&module, "csmith_kernel.kd"), 1, 1, &out, sizeof out);
    if (ran) printf("%08x\n", *out);
    if (!ran) printf("%s\n", isa_fault(isa)->text);
    device_free(out);
    module_unload(&module);
    isa_destroy(isa);
    return !ran;
}
