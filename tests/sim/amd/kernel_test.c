// SPDX-License-Identifier: Apache-2.0
// kernel_test FILE...: the kernels of the kernel language, compiled for a GPU into each file. The
// name of a file begins with its target.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "language.h"
#include "sim/amd/bench/device.h"

typedef struct target_t {
    isa_t *isa;
    module_t module;
} target_t;

static bool launch(void *user, const char *symbol, const uint32_t groups[2],
                   const uint32_t group[2], const void *arguments, size_t size)
{
    const target_t *target = user;
    uint64_t kernel = module_symbol(&target->module, symbol);
    uint8_t *kernarg = device_alloc(size + 256);
    memcpy(kernarg, arguments, size);
    uint16_t *packet = device_alloc(64);
    packet[2] = (uint16_t)group[0];
    packet[3] = (uint16_t)group[1];
    packet[4] = 1;
    uint32_t items[3] = {groups[0] * group[0], groups[1] * group[1], 1};
    memcpy(packet + 6, items, sizeof items);
    const uint32_t *descriptor = (const uint32_t *)(uintptr_t)kernel;
    dispatch_t dispatch = {
        .grid = {items[0], items[1], 1},
        .group = {group[0], group[1], 1},
        .lds_size = descriptor[0],
        .scratch_size = descriptor[1],
        .kernel = kernel,
        .kernarg = (uint64_t)(uintptr_t)kernarg,
        .packet = (uint64_t)(uintptr_t)packet,
    };
    bool done = isa_dispatch(target->isa, &dispatch);
    if (!done) printf("%s\n", isa_fault(target->isa)->text);
    device_free(packet);
    device_free(kernarg);
    return done;
}

int main(int argc, char **argv)
{
    unsigned wrong = 0;
    for (int i = 1; i < argc; i++) {
        const char *slash = strrchr(argv[i], '/'), *name = slash ? slash + 1 : argv[i];
        gfx_t gfx = gfx_parse(name, strcspn(name, "-"));
        target_t target = {isa_create(gfx, DEVICE_NODE, &(isa_host_t){0}), module_load(argv[i])};
        unsigned here = language_run(&(language_gpu_t){device_alloc, device_free, launch, &target});
        if (here) printf("%s: %u wrong\n", name, here);
        wrong += here;
        module_unload(&target.module);
        isa_destroy(target.isa);
    }
    printf("%u wrong in %d files\n", wrong, argc - 1);
    return wrong || argc < 2;
}
