// SPDX-License-Identifier: Apache-2.0
// atomics_test FILE: where no atomic operations come to memory of the host, they leave it as it is
// and return 0, and plain stores arrive (KEEL_SIM_ATOMICS=0). Memory of the GPU takes them.
#include <stdio.h>

#include "sim/amd/bench/device.h"
#include "sim/amd/map.h"

// A kernel counts entries by an atomic operation, and writes its value behind the last one.
static bool appends(isa_t *isa, uint64_t kernel, bool local)
{
    uint32_t *log = device_alloc(4 * sizeof *log);
    struct {
        uint32_t *log, value;
    } arguments = {log, 5};
    bool good = !local || map_coarse((uint64_t)(uintptr_t)log, DEVICE_NODE);
    for (int k = 0; k < 2; k++)
        good = device_run(isa, kernel, 1, 64, &arguments, sizeof arguments) && good;
    good = good && log[0] == (local ? 2u : 0u) && log[1] == 5 && log[2] == (local ? 5u : 0u);
    if (!good)
        printf("%s: %u, %u, %u\n", local ? "the GPU's" : "the host's", log[0], log[1], log[2]);
    device_free(log);
    return good;
}

int main(int argc, char **argv)
{
    if (argc != 2) return 2;
    module_t module = module_load(argv[1]);
    isa_t *isa = isa_create(GFX90A, DEVICE_NODE, NULL);
    uint64_t kernel = module_symbol(&module, "append.kd");
    bool good = appends(isa, kernel, false);
    good = appends(isa, kernel, true) && good;
    isa_destroy(isa);
    module_unload(&module);
    puts(good ? "done" : "wrong");
    return !good;
}
