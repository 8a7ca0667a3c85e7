// SPDX-License-Identifier: Apache-2.0
// same_test FILE...: the functions of same.h, compiled for a GPU into each file, give the answers
// that the host's compiler gives. The name of a file begins with its target.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/same.h"
#include "sim/amd/bench/device.h"

enum { COUNT = 1000 };

typedef void function_t(const item_t *, answer_t *);

#define ROW(name) {#name, #name "_kernel.kd", name},
static const struct {
    const char *name, *symbol;
    function_t *function;
} functions[] = {SAME(ROW)};

// Every fourth word is one of those that go wrong first.
static uint64_t input(uint64_t *state)
{
    static const uint64_t corners[] = {
        0,
        1,
        ~0ull,
        1ull << 63,
        1ull << 31,
        0x7fffffff7fffffff,
        0x8000000080000000,
        0x7f8000007f800000,
        0xff800000ff800000,
        0x7ff0000000000000,
        0x0000000100000001,
        0x0010000000800000,
        0x3f8000003f800000,
        0x7fefffff7f7fffff,
        0x8000000000000001,
        0xffff,
    };
    uint64_t word = random_next(state);
    return word & 3 ? random_next(state) : corners[word >> 8 & 15];
}

static unsigned compare(const char *file, const char *name, const item_t *in, const answer_t *want,
                        const answer_t *got)
{
    unsigned wrong = 0;
    for (unsigned n = 0; n < COUNT; n++) {
        if (!memcmp(&want[n], &got[n], sizeof *want)) continue;
        if (wrong++ > 2) continue;
        printf("%s: %s of x %016llx y %016llx a %08x b %08x\n    is  %016llx %08x %08x\n    not "
               "%016llx %08x %08x\n",
               file, name, (unsigned long long)in[n].x, (unsigned long long)in[n].y, in[n].a,
               in[n].b, (unsigned long long)want[n].r, want[n].s, want[n].t,
               (unsigned long long)got[n].r, got[n].s, got[n].t);
    }
    if (wrong) printf("%s: %s: %u of %u wrong\n", file, name, wrong, COUNT);
    return wrong;
}

static unsigned file_check(const char *path, const item_t *in, answer_t *got, answer_t *want)
{
    const char *file = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
    gfx_t gfx = gfx_parse(file, strcspn(file, "-"));
    if (gfx == GFX_COUNT) {
        printf("%s: the name does not begin with a target\n", file);
        return 1;
    }
    module_t module = module_load(path);
    isa_t *isa = isa_create(gfx, DEVICE_NODE, NULL);
    unsigned bad = 0;
    isa_shuffle(isa, 7);
    for (unsigned k = 0; k < sizeof functions / sizeof *functions; k++) {
        struct {
            const item_t *in;
            answer_t *out;
            uint32_t count;
        } arguments = {in, got, COUNT};
        memset(want, 0xee, COUNT * sizeof *want);
        memset(got, 0xee, COUNT * sizeof *got);
        for (unsigned n = 0; n < COUNT; n++) functions[k].function(&in[n], &want[n]);
        bool ran = device_run(isa, module_symbol(&module, functions[k].symbol), (COUNT + 63) / 64,
                              64, &arguments, sizeof arguments);
        if (!ran) printf("%s: %s: %s\n", file, functions[k].name, isa_fault(isa)->text);
        if (!ran || compare(file, functions[k].name, in, want, got)) bad++;
    }
    isa_destroy(isa);
    module_unload(&module);
    return bad;
}

int main(int argc, char **argv)
{
    item_t *in = device_alloc(COUNT * sizeof *in);
    answer_t *got = device_alloc(COUNT * sizeof *got), *want = malloc(COUNT * sizeof *want);
    if (argc < 2 || !want) return 2;
    uint64_t state = 1;
    for (unsigned n = 0; n < COUNT; n++) {
        in[n] = (item_t){input(&state), input(&state), (uint32_t)input(&state),
                         (uint32_t)input(&state)};
    }
    unsigned bad = 0;
    for (int k = 1; k < argc; k++) bad += file_check(argv[k], in, got, want);
    free(want);
    device_free(got);
    device_free(in);
    printf("%u wrong\n", bad);
    return bad != 0;
}
