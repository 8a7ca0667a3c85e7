// SPDX-License-Identifier: Apache-2.0
// matrix_test FILE...: the kernels of matrix.c multiply small matrices as the host does. Numbers
// are small enough to be exact in every type.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/amd/bench/device.h"

enum { OLD = 1, NEW = 2, NEWER = 4, ALL = 7 }; // gfx908, gfx90a, gfx942

typedef struct {
    const char *symbol;
    unsigned m, k, blocks;
    int block_a, block_b; // of which block they are taken; -1: each its own
    unsigned targets;
    bool sparse;
    float scale; // of the result; 0: 1
} case_t;

#define DENSE(name, m, k, blocks, targets) {#name ".kd", m, k, blocks, -1, -1, targets, false, 0}
#define SPARSE(name, m, k)                 {#name ".kd", m, k, 1, -1, -1, NEWER, true, 0}

static const case_t cases[] = {
    DENSE(f32_16x16x4, 16, 4, 1, ALL),
    DENSE(f32_32x32x2, 32, 2, 1, ALL),
    DENSE(f32_32x32x1, 32, 1, 2, ALL),
    {"f32_shared_a.kd", 32, 1, 2, 1, -1, ALL, false, 0},
    {"f32_shared_b.kd", 32, 1, 2, -1, 0, ALL, false, 0},
    DENSE(f32_16x16x1, 16, 1, 4, ALL),
    DENSE(f32_4x4x1, 4, 1, 16, ALL),
    DENSE(f16_32x32x8, 32, 8, 1, ALL),
    DENSE(f16_16x16x16, 16, 16, 1, ALL),
    DENSE(bf16_16x16x8, 16, 8, 1, OLD | NEW),
    DENSE(i8_32x32x8, 32, 8, 1, OLD | NEW),
    DENSE(i8_16x16x16, 16, 16, 1, OLD | NEW),
    DENSE(bf16_16x16x16_1k, 16, 16, 1, NEW | NEWER),
    DENSE(f64_16x16x4, 16, 4, 1, NEW | NEWER),
    DENSE(f64_4x4x4, 4, 4, 4, NEW | NEWER),
    DENSE(xf32_16x16x8, 16, 8, 1, NEWER),
    DENSE(xf32_32x32x4, 32, 4, 1, NEWER),
    DENSE(xf32_rounds, 16, 8, 1, NEWER),
    DENSE(i8_16x16x32, 16, 32, 1, NEWER),
    DENSE(i8_32x32x16, 32, 16, 1, NEWER),
    DENSE(fp8_fp8_16x16x32, 16, 32, 1, NEWER),
    DENSE(fp8_bf8_16x16x32, 16, 32, 1, NEWER),
    DENSE(bf8_fp8_16x16x32, 16, 32, 1, NEWER),
    DENSE(bf8_bf8_16x16x32, 16, 32, 1, NEWER),
    DENSE(fp8_fp8_32x32x16, 32, 16, 1, NEWER),
    DENSE(fp8_bf8_32x32x16, 32, 16, 1, NEWER),
    DENSE(bf8_fp8_32x32x16, 32, 16, 1, NEWER),
    DENSE(bf8_bf8_32x32x16, 32, 16, 1, NEWER),
    {"f64_signs.kd", 16, 4, 1, -1, -1, NEWER, false, -1},
    SPARSE(sparse_f16_16, 16, 32),
    SPARSE(sparse_f16_set, 16, 32),
    SPARSE(sparse_f16_first, 16, 32),
    SPARSE(sparse_f16_32, 32, 16),
    SPARSE(sparse_bf16_16, 16, 32),
    SPARSE(sparse_bf16_32, 32, 16),
    SPARSE(sparse_i8_16, 16, 64),
    SPARSE(sparse_i8_32, 32, 32),
    SPARSE(sparse_fp8_fp8_16, 16, 64),
    SPARSE(sparse_fp8_bf8_16, 16, 64),
    SPARSE(sparse_bf8_fp8_16, 16, 64),
    SPARSE(sparse_bf8_bf8_16, 16, 64),
    SPARSE(sparse_fp8_fp8_32, 32, 32),
    SPARSE(sparse_fp8_bf8_32, 32, 32),
    SPARSE(sparse_bf8_fp8_32, 32, 32),
    SPARSE(sparse_bf8_bf8_32, 32, 32),
};

enum { FACTORS = 1024, RESULTS = 2048 };

// Whether an element of A is given: of every four two are, those of one of the six pairs.
static bool given(const case_t *test, unsigned row, unsigned e)
{
    static const uint8_t masks[6] = {3, 5, 9, 6, 10, 12};
    return !test->sparse || masks[(row + e / 4) % 6] >> e % 4 & 1;
}

static float wanted(const case_t *test, const float *a, const float *b, unsigned n)
{
    unsigned m = test->m, k = test->k, block = n / (m * m), row = n / m % m, column = n % m;
    unsigned block_a = test->block_a < 0 ? block : (unsigned)test->block_a;
    unsigned block_b = test->block_b < 0 ? block : (unsigned)test->block_b;
    float sum = 0;
    for (unsigned e = 0; e < k; e++) {
        if (!given(test, row, e)) continue;
        sum += a[(block_a * m + row) * k + e] * b[(block_b * k + e) * m + column];
    }
    return test->scale != 0 ? test->scale * sum : sum;
}

static unsigned run(isa_t *isa, const module_t *module, const case_t *test, float *memory)
{
    float *a = memory, *b = memory + FACTORS, *d = memory + 2 * FACTORS;
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
    float *memory = device_alloc((2 * FACTORS + RESULTS) * sizeof *memory);
    for (unsigned n = 0; n < 2 * FACTORS; n++) memory[n] = (float)(random_next(&state) % 15) - 7;
    for (int k = 1; k < argc; k++) {
        const char *file = strrchr(argv[k], '/') ? strrchr(argv[k], '/') + 1 : argv[k];
        gfx_t gfx = gfx_parse(file, strcspn(file, "-"));
        if (gfx == GFX_COUNT) return 2;
        unsigned target = gfx == GFX908 ? OLD : gfx == GFX90A ? NEW : NEWER;
        isa_t *isa = isa_create(gfx, DEVICE_NODE, NULL);
        module_t module = module_load(argv[k]);
        for (unsigned n = 0; n < sizeof cases / sizeof *cases; n++) {
            if (cases[n].targets & target) bad += run(isa, &module, &cases[n], memory);
        }
        module_unload(&module);
        isa_destroy(isa);
    }
    device_free(memory);
    printf("%u wrong\n", bad);
    return bad != 0 || argc < 2;
}
