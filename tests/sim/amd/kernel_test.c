// SPDX-License-Identifier: Apache-2.0
// kernel_test FILE...: the kernels of conformance/language, compiled for a GPU into each file, keep
// the bounds of <keel/kernel.h>, by either entry point. The name of a file begins with its target.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/language/check.h"
#include "sim/amd/bench/device.h"

enum { ITEMS = 4096, BINDINGS = 2 };

// The block of arguments of docs/kernels.md, for two bindings and four bytes of constants.
typedef struct binding_t {
    uint64_t address, length;
} binding_t;
typedef struct direct_t {
    uint32_t groups[3], zero;
    binding_t bindings[BINDINGS];
    uint32_t constant;
} direct_t;
typedef struct walk_t {
    uint32_t groups[3], zero;
    uint64_t counts, table;
    binding_t bindings[BINDINGS];
    uint32_t constant;
} walk_t;

typedef enum { DIRECT, WALK, WALK_READ } way_t; // the last reads counts and bindings from memory

typedef struct call_t {
    const char *kernel;
    uint32_t group[2], groups[2];
    void *in, *out;
    size_t in_size, out_size;
} call_t;

static bool launch(isa_t *isa, uint64_t kernel, const uint32_t grid[2], const uint32_t group[2],
                   const void *arguments, size_t size)
{
    uint8_t *kernarg = device_alloc(size + 256);
    memcpy(kernarg, arguments, size);
    uint16_t *packet = device_alloc(64);
    packet[2] = (uint16_t)group[0];
    packet[3] = (uint16_t)group[1];
    packet[4] = 1;
    uint32_t items[3] = {grid[0] * group[0], grid[1] * group[1], 1};
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
    bool done = isa_dispatch(isa, &dispatch);
    if (!done) printf("%s\n", isa_fault(isa)->text);
    device_free(packet);
    device_free(kernarg);
    return done;
}

static bool call(isa_t *isa, const module_t *module, const call_t *c, way_t way)
{
    char symbol[64];
    snprintf(symbol, sizeof symbol, "%s%s.kd", c->kernel, way == DIRECT ? "" : "$walk");
    uint64_t kernel = module_symbol(module, symbol);
    binding_t bindings[BINDINGS] = {{(uintptr_t)c->in, c->in_size},
                                    {(uintptr_t)c->out, c->out_size}};
    if (way == DIRECT) {
        direct_t direct = {.groups = {c->groups[0], c->groups[1], 1}, .constant = TRANSPOSED};
        memcpy(direct.bindings, bindings, sizeof bindings);
        return launch(isa, kernel, c->groups, c->group, &direct, sizeof direct);
    }
    uint8_t *memory = device_alloc(sizeof bindings + 12);
    memcpy(memory, bindings, sizeof bindings);
    memcpy(memory + sizeof bindings, (uint32_t[]){c->groups[0], c->groups[1], 1}, 12);
    walk_t walk = {.groups = {c->groups[0], c->groups[1], 1}, .constant = TRANSPOSED};
    memcpy(walk.bindings, bindings, sizeof bindings);
    if (way == WALK_READ) {
        walk = (walk_t){.constant = TRANSPOSED,
                        .table = (uintptr_t)memory,
                        .counts = (uintptr_t)memory + sizeof bindings};
    }
    bool done = launch(isa, kernel, (uint32_t[]){4, 1}, c->group, &walk, sizeof walk);
    device_free(memory);
    return done;
}

static unsigned numbers(isa_t *isa, const module_t *module, way_t way)
{
    item_t *items = device_alloc(ITEMS * sizeof *items);
    answer_t *answers = device_alloc(ITEMS * sizeof *answers);
    items_make(items, ITEMS);
    memset(answers, 0xff, ITEMS * sizeof *answers);
    call_t c = {"numbers",
                {64, 1},
                {ITEMS / 64, 1},
                items,
                answers,
                ITEMS * sizeof *items,
                ITEMS * sizeof *answers};
    unsigned wrong = call(isa, module, &c, way) ? items_judge(items, answers, ITEMS) : 1;
    device_free(items);
    device_free(answers);
    return wrong;
}

static unsigned atomics(isa_t *isa, const module_t *module, way_t way)
{
    uint32_t *words = device_alloc(ATOMIC_ITEMS * 4);
    tally_t *tally = device_alloc(sizeof *tally);
    words_make(words);
    tally_begin(tally);
    call_t c = {"atomics",        {128, 1},     {ATOMIC_ITEMS / 128, 1}, words, tally,
                ATOMIC_ITEMS * 4, sizeof *tally};
    unsigned wrong = call(isa, module, &c, way) ? tally_judge(words, tally) : 1;
    device_free(words);
    device_free(tally);
    return wrong;
}

static unsigned transpose(isa_t *isa, const module_t *module, way_t way)
{
    size_t size = sizeof(float) * TRANSPOSED * TRANSPOSED;
    float *in = device_alloc(size), *out = device_alloc(size);
    matrix_make(in);
    call_t c = {"transpose", {16, 16}, {TRANSPOSED / 16, TRANSPOSED / 16}, in, out, size, size};
    unsigned wrong = call(isa, module, &c, way) ? matrix_judge(in, out) : 1;
    device_free(in);
    device_free(out);
    return wrong;
}

int main(int argc, char **argv)
{
    unsigned wrong = 0;
    for (int i = 1; i < argc; i++) {
        const char *slash = strrchr(argv[i], '/'), *name = slash ? slash + 1 : argv[i];
        gfx_t gfx = gfx_parse(name, strcspn(name, "-"));
        isa_t *isa = isa_create(gfx, DEVICE_NODE, &(isa_host_t){0});
        module_t module = module_load(argv[i]);
        for (way_t way = DIRECT; way <= WALK_READ; way++) {
            unsigned here = numbers(isa, &module, way) + atomics(isa, &module, way) +
                            transpose(isa, &module, way);
            if (here) printf("%s: %u wrong, way %d\n", name, here, way);
            wrong += here;
        }
        module_unload(&module);
        isa_destroy(isa);
    }
    printf("%u wrong in %d files\n", wrong, argc - 1);
    return wrong || argc < 2;
}
