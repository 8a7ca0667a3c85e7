// SPDX-License-Identifier: Apache-2.0
// fault_test FILE: kernels that go wrong are stopped, and the fault says which kernel, which
// instruction, which lane, what address.
#include <stdio.h>
#include <string.h>

#include "sim/amd/bench/device.h"

static unsigned bad;

static void expect(const isa_t *isa, bool ran, fault_kind_t kind, const char *const *words)
{
    const fault_t *fault = isa_fault(isa);
    if (ran || fault->kind != kind) {
        printf("kind %d was wanted, it is %d\n", (int)kind, ran ? -1 : (int)fault->kind);
        bad++;
    }
    for (; *words; words++) {
        if (strstr(fault->text, *words)) continue;
        printf("'%s' does not say '%s'\n", fault->text, *words);
        bad++;
    }
}

#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

int main(int argc, char **argv)
{
    if (argc != 2) return 2;
    module_t module = module_load(argv[1]);
    isa_t *isa = isa_create(GFX90A, DEVICE_NODE, NULL);
    uint32_t *data = device_alloc(4096);
    struct {
        const void *data;
        uint32_t count;
    } arguments = {data, 64};

    bool ran = device_run(isa, module_symbol(&module, "stray.kd"), 1, 64, &data, sizeof data);
    expect(isa, ran, FAULT_MEMORY,
           WORDS("stray", "lane 7", "0xdead0000", "store_dword", "no such"));
    if (isa_fault(isa)->address != 0xdead0000) bad++;

    ran = device_run(isa, module_symbol(&module, "illegal.kd"), 1, 64, &data, sizeof data);
    expect(isa, ran, FAULT_INSTRUCTION, WORDS("kernel illegal", "no such instruction"));

    ran = device_run(isa, module_symbol(&module, "stop_here.kd"), 1, 64, &data, sizeof data);
    expect(isa, ran, FAULT_TRAP, WORDS("kernel stop_here", "s_trap"));

    ran = device_run(isa, module_symbol(&module, "format.kd"), 1, 64, &data, sizeof data);
    expect(isa, ran, FAULT_INSTRUCTION,
           WORDS("kernel format", "buffer_load_format_x", "not modelled"));

    ran = device_run(isa, module_symbol(&module, "beyond.kd"), 1, 64, &data, sizeof data);
    expect(isa, ran, FAULT_APERTURE, WORDS("kernel beyond", "lane 0", "workgroup's memory"));

    ran = device_run(isa, module_symbol(&module, "load_beyond.kd"), 1, 64, &data, sizeof data);
    expect(isa, ran, FAULT_APERTURE,
           WORDS("kernel load_beyond", "buffer_load_dword", "lane 16: byte 256 of 256"));

    ran = device_run(isa, module_symbol(&module, "all_ready.kd"), 1, 64, &arguments.count, 4);
    expect(isa, ran, FAULT_INSTRUCTION, WORDS("ds_gws_init", "not for cooperative launches"));

    // The last lane of the first wave is one word over the end.
    arguments.data = data + 1024 - 63;
    ran =
        device_run(isa, module_symbol(&module, "add_one.kd"), 1, 64, &arguments, sizeof arguments);
    expect(isa, ran, FAULT_MEMORY, WORDS("kernel add_one", "lane 63"));

    // After all that a good kernel runs as if nothing had been.
    arguments.data = data;
    memset(data, 0, 4096);
    ran =
        device_run(isa, module_symbol(&module, "add_one.kd"), 1, 64, &arguments, sizeof arguments);
    if (!ran || data[0] != 1 || data[63] != 1 || data[64] != 0) bad++;

    device_free(data);
    isa_destroy(isa);
    module_unload(&module);
    printf("%u wrong\n", bad);
    return bad != 0;
}
