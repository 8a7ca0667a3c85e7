// SPDX-License-Identifier: Apache-2.0
// instructions_test GFX90A_FILE GFX908_FILE GFX942_FILE: every case of kernels/instructions*.def
// leaves the registers it should.
#include <stdio.h>
#include <string.h>

#include "sim/amd/bench/device.h"

typedef struct {
    uint32_t v[4];
    uint64_t s, vcc;
} inputs_t;

typedef struct {
    uint32_t v[64][2];
    uint64_t vcc, s;
    uint32_t exec[2], scc;
} outputs_t;

enum { K4 = 0x55555555, K5 = 0x66666666, LANE_COUNT = 64 };

static bool report(const char *name, const char *what, uint64_t want, uint64_t got)
{
    if (want == got) return true;
    printf("%s: %s is %llx, not %llx\n", name, what, (unsigned long long)got,
           (unsigned long long)want);
    return false;
}

// What differs between lanes, for cases that write some of them.
static uint32_t carried(unsigned lane)
{
    return lane >= 4 && lane < 8 ? 0 : ~0u;
}
static uint32_t nine(unsigned lane)
{
    return lane == 0 || lane == 63 ? 9 : K4;
}

typedef struct {
    const char *name, *code;
    inputs_t in;
    uint32_t v[2];
    uint64_t vcc, s;
    uint32_t scc;
    uint32_t (*lane)(unsigned l); // instead of v[0]
} case_t;

// Case by case, the functions of LANES and the marks that stand for a function in CASE.
#define CASE(...)
#define TEXT(...)
#define LANES(name, code, inputs, scalars, result)                                                 \
    static uint32_t lane_##name(unsigned l)                                                        \
    {                                                                                              \
        return (uint32_t)(result);                                                                 \
    }
#include "kernels/instructions.def"
#include "kernels/instructions_gfx908.def"
#include "kernels/instructions_gfx942.def"
#undef CASE
#undef LANES

enum { M = 0x0c0ffee0, M9 = 0x0c0ffee9 };
#define STRIP(...)   __VA_ARGS__
#define INPUTS(...)  {__VA_ARGS__}
#define FIRST(a, b)  a
#define SECOND(a, b) b
#define CASE(name, code, inputs, scalars, results, masks)                                          \
    {#name,          #code,       {INPUTS inputs, FIRST scalars, SECOND scalars},                  \
     INPUTS results, STRIP masks, NULL},
#define LANES(name, code, inputs, scalars, result)                                                 \
    {#name, #code, {INPUTS inputs, FIRST scalars, SECOND scalars}, {0, K5}, 0, 0, 0, lane_##name},
static const case_t cases[] = {
#include "kernels/instructions.def"
};
static const case_t cases_gfx908[] = {
#include "kernels/instructions_gfx908.def"
};

static const case_t cases_gfx942[] = {
#include "kernels/instructions_gfx942.def"
};

static bool check(const case_t *test, const outputs_t *out)
{
    char what[32];
    bool good = true;
    bool lanes = test->lane != NULL;
    for (unsigned l = 0; l < LANE_COUNT && good; l++) {
        uint32_t want = lanes              ? test->lane(l)
                        : test->v[0] == M  ? carried(l)
                        : test->v[0] == M9 ? nine(l)
                                           : test->v[0];
        snprintf(what, sizeof what, "v4 of lane %u", l);
        good = report(test->name, what, want, out->v[l][0]);
        snprintf(what, sizeof what, "v5 of lane %u", l);
        if (!lanes) good = good && report(test->name, what, test->v[1], out->v[l][1]);
    }
    if (lanes) return good;
    good = report(test->name, "vcc", test->vcc, out->vcc) && good;
    good = report(test->name, "s[8:9]", test->s, out->s) && good;
    return report(test->name, "scc", test->scc, out->scc) && good;
}

static unsigned run(const char *path, gfx_t gfx, const case_t *tests, unsigned count)
{
    module_t module = module_load(path);
    isa_t *isa = isa_create(gfx, DEVICE_NODE, NULL);
    inputs_t *in = device_alloc(sizeof *in);
    outputs_t *out = device_alloc(sizeof *out);
    unsigned bad = 0;
    for (unsigned k = 0; k < count; k++) {
        char symbol[64];
        snprintf(symbol, sizeof symbol, "case_%s", tests[k].name);
        struct {
            const inputs_t *in;
            outputs_t *out;
            uint64_t code;
        } arguments = {in, out, module_symbol(&module, symbol)};
        *in = tests[k].in;
        memset(out, 0xee, sizeof *out);
        bool ran =
            device_run(isa, module_symbol(&module, "run.kd"), 1, 64, &arguments, sizeof arguments);
        if (!ran) printf("%s: %s\n", tests[k].name, isa_fault(isa)->text);
        if (ran && check(&tests[k], out)) continue;
        printf("    %s\n", tests[k].code);
        bad++;
    }
    device_free(out);
    device_free(in);
    isa_destroy(isa);
    module_unload(&module);
    printf("%u of %u cases wrong\n", bad, count);
    return bad;
}

int main(int argc, char **argv)
{
    if (argc != 4) return 2;
    unsigned count = sizeof cases / sizeof *cases, bad = run(argv[1], GFX90A, cases, count);
    bad += run(argv[2], GFX908, cases_gfx908, sizeof cases_gfx908 / sizeof *cases_gfx908);
    bad += run(argv[3], GFX942, cases, count);
    bad += run(argv[3], GFX942, cases_gfx942, sizeof cases_gfx942 / sizeof *cases_gfx942);
    return bad != 0;
}
