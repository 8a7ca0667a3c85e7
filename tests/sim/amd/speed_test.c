// SPDX-License-Identifier: Apache-2.0
// speed_test FILE: runs the kernels of speed.c, checks what they computed, and prints how many
// instructions of a wave were run in a second of processor time.
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "device.h"

// Of this thread alone, whatever else the machine does.
static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static double million_per_second(isa_t *isa, uint64_t kernel, uint32_t groups,
                                 const void *arguments, size_t size)
{
    if (!device_run(isa, kernel, groups, 256, arguments, size)) return 0; // decodes, too
    double best = 0;
    for (unsigned k = 0; k < 5; k++) {
        uint64_t before = isa_count(isa);
        double start = seconds();
        device_run(isa, kernel, groups, 256, arguments, size);
        double rate = (double)(isa_count(isa) - before) / (seconds() - start) * 1e-6;
        if (rate > best) best = rate;
    }
    return best;
}

enum { COUNT = 1 << 18, ROUNDS = 200, LOOPS = 64 * 256, SIZE = 64 };

static unsigned vadd(isa_t *isa, const module_t *module)
{
    float *a = device_alloc(COUNT * 4), *b = device_alloc(COUNT * 4), *c = device_alloc(COUNT * 4);
    for (unsigned n = 0; n < COUNT; n++) {
        a[n] = (float)n;
        b[n] = 0.5f * (float)n;
    }
    struct {
        float *a, *b, *c;
        uint32_t count;
    } arguments = {a, b, c, COUNT};
    double rate = million_per_second(isa, module_symbol(module, "vadd.kd"), COUNT / 256, &arguments,
                                     sizeof arguments);
    unsigned wrong = 0;
    for (unsigned n = 0; n < COUNT; n++) wrong += c[n] != a[n] + b[n];
    printf("vadd          %6.1f M wave-instructions/s, %u wrong\n", rate, wrong);
    device_free(a);
    device_free(b);
    device_free(c);
    return wrong;
}

static uint32_t integer_loop(uint32_t n)
{
    uint32_t x = n, y = n * 2654435761u;
    for (uint32_t k = 0; k < ROUNDS; k++) {
        x = (x ^ y) + (y >> 3);
        y = (y & x) - (x << 5);
        x += y ^ 0x9e3779b9;
        y = y < x ? y + 7 : y ^ x;
    }
    return x + y;
}

static unsigned loop(isa_t *isa, const module_t *module)
{
    uint32_t *out = device_alloc(LOOPS * 4);
    struct {
        uint32_t *out;
        uint32_t rounds;
    } arguments = {out, ROUNDS};
    double rate = million_per_second(isa, module_symbol(module, "integer_loop.kd"), LOOPS / 256,
                                     &arguments, sizeof arguments);
    unsigned wrong = 0;
    for (unsigned n = 0; n < LOOPS; n++) wrong += out[n] != integer_loop(n);
    printf("integer loop  %6.1f M wave-instructions/s, %u wrong\n", rate, wrong);
    device_free(out);
    return wrong;
}

static unsigned matmul(isa_t *isa, const module_t *module)
{
    enum { BYTES = SIZE * SIZE * 4 };
    float *a = device_alloc(BYTES), *b = device_alloc(BYTES), *c = device_alloc(BYTES);
    for (unsigned n = 0; n < SIZE * SIZE; n++) {
        a[n] = (float)(n % 7) - 3;
        b[n] = (float)(n % 5) - 2;
    }
    struct {
        float *a, *b, *c;
        uint32_t size;
    } arguments = {a, b, c, SIZE};
    double rate = million_per_second(isa, module_symbol(module, "matmul.kd"), SIZE * SIZE / 256,
                                     &arguments, sizeof arguments);
    unsigned wrong = 0;
    for (unsigned n = 0; n < SIZE * SIZE; n++) {
        float sum = 0;
        for (unsigned k = 0; k < SIZE; k++) sum += a[n / SIZE * SIZE + k] * b[k * SIZE + n % SIZE];
        wrong += c[n] != sum;
    }
    printf("LDS matmul    %6.1f M wave-instructions/s, %u wrong\n", rate, wrong);
    device_free(a);
    device_free(b);
    device_free(c);
    return wrong;
}

int main(int argc, char **argv)
{
    if (argc != 2) return 2;
    const char *file = strrchr(argv[1], '/') ? strrchr(argv[1], '/') + 1 : argv[1];
    gfx_t gfx = gfx_parse(file, strcspn(file, "-"));
    if (gfx == GFX_COUNT) return 2;
    isa_t *isa = isa_create(gfx, DEVICE_NODE, NULL);
    module_t module = module_load(argv[1]);
    unsigned wrong = vadd(isa, &module) + loop(isa, &module) + matmul(isa, &module);
    module_unload(&module);
    isa_destroy(isa);
    return wrong != 0;
}
