// SPDX-License-Identifier: Apache-2.0
// matrix_test FILE...: the kernels of matrix.c multiply small matrices as the host does. Numbers
// are small enough to be exact in every type.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/amd/bench/device.h"

typedef struct {
    const char *symbol;
    unsigned m, k, blocks;
    int block_a, block_b; // of which block they are taken; -1: each its own
    bool new;             // not on gfx908
} case_t;

static const case_t cases[] = {
    {"f32_16x16x4.kd", 16, 4, 1, -1, -1, false},      {"f32_32x32x2.kd", 32, 2, 1, -1, -1, false},
    {"f32_32x32x1.kd", 32, 1, 2, -1, -1, false},      {"f32_shared_a.kd", 32, 1, 2, 1, -1, false},
    {"f32_shared_b.kd", 32, 1, 2, -1, 0, false},      {"f32_16x16x1.kd", 16, 1, 4, -1, -1, false},
    {"f32_4x4x1.kd", 4, 1, 16, -1, -1, false},        {"f16_32x32x8.kd", 32, 8, 1, -1, -1, false},
    {"f16_16x16x16.kd", 16, 16, 1, -1, -1, false},    {"bf16_16x16x8.kd", 16, 8, 1, -1, -1, false},
    {"i8_32x32x8.kd", 32, 8, 1, -1, -1, false},       {"i8_16x16x16.kd", 16, 16, 1, -1, -1, false},
    {"bf16_16x16x16_1k.kd", 16, 16, 1, -1, -1, true}, {"f64_16x16x4.kd", 16, 4, 1, -1, -1, true},
    {"f64_4x4x4.kd", 4, 4, 4, -1, -1, true},
};

enum { RESULTS = 2048 };

static float wanted(const case_t *test, const float *a, const float *b, unsigned n)
{
    unsigned m = test->m, k = test->k, block = n / (m * m), row = n / m % m, column = n % m;
    unsigned block_a = test->block_a < 0 ? block : (unsigned)test->block_a;
    unsigned block_b = test->block_b < 0 ? block : (unsigned)test->block_b;
    float sum = 0;
    for (unsigned e = 0; e < k; e++) {
        sum += a[(block_a * m + row) * k + e] * b[(block_b * k + e) * m + column];
    }
    return sum;
}

static unsigned run(isa_t *isa, const module_t *module, const case_t *test, float *memory)
{
    float *a = memory, *b = memory + 256, *d = memory + 512;
    struct {
        const float *a, *b;
        float *d;
    } arguments = {a, b, d};
    memset(d, 0xee, RESULTS * sizeof *d);
    if (!device_run(isa, module_symbol(module, test->symbol), 1, 64, &arguments,
                    sizeof arguments)) {
        printf("%s: %s\n", test->symbol, isa_fault(isa)->text);
        return 1;
    }
    for (unsigned n = 0; n < test->m * test->m * test->blocks; n++) {
        if (d[n] == wanted(test, a, b, n)) continue;
        printf("%s: element %u is %g, not %g\n", test->symbol, n, (double)d[n],
               (double)wanted(test, a, b, n));
        return 1;
    }
    return 0;
}

int main(int argc, char **argv)
{
    unsigned bad = 0;
    uint64_t state = 5;
    float *memory = device_alloc((512 + RESULTS) * sizeof *memory);
    for (unsigned n = 0; n < 512; n++) memory[n] = (float)(random_next(&state) % 23) - 11;
    for (int k = 1; k < argc; k++) {
        const char *file = strrchr(argv[k], '/') ? strrchr(argv[k], '/') + 1 : argv[k];
        gfx_t gfx = gfx_parse(file, strcspn(file, "-"));
        if (gfx == GFX_COUNT) return 2;
        isa_t *isa = isa_create(gfx, DEVICE_NODE, NULL);
        module_t module = module_load(argv[k]);
        for (unsigned n = 0; n < sizeof cases / sizeof *cases; n++) {
            if (!cases[n].new || gfx == GFX90A) bad += run(isa, &module, &cases[n], memory);
        }
        module_unload(&module);
        isa_destroy(isa);
    }
    device_free(memory);
    printf("%u wrong\n", bad);
    return bad != 0 || argc < 2;
}
