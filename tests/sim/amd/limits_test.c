// SPDX-License-Identifier: Apache-2.0
// limits_test FILE...: as many workgroups run at a time as the compute units have room for, which
// is a matter of waves, of work-group memory, of registers and of the units that a dispatch may
// use.
#include <stdio.h>
#include <string.h>

#include "sim/amd/bench/device.h"

enum { LOOKS = 100 }; // enough for all that there is room for

static unsigned bad;

// Runs some more workgroups than should be there at a time.
static void crowd(isa_t *isa, const char *what, dispatch_t dispatch, uint32_t want)
{
    uint32_t *words = device_alloc(2 * sizeof *words);
    struct {
        uint32_t *now, *most, looks;
    } arguments = {words, words + 1, LOOKS};
    dispatch.grid[0] = (want + 5) * dispatch.group[0];
    if (!device_launch(isa, dispatch, &arguments, sizeof arguments)) words[1] = 0;
    if (words[1] != want) {
        printf("%s: %u workgroups at a time, not %u\n", what, words[1], want);
        bad++;
    }
    device_free(words);
}

// Every one of so many workgroups waits for all others.
static bool meet(isa_t *isa, uint64_t kernel, uint32_t groups)
{
    uint32_t *count = device_alloc(sizeof *count);
    struct {
        uint32_t *count, groups;
    } arguments = {count, groups};
    bool met = device_run(isa, kernel, groups, 64, &arguments, sizeof arguments);
    device_free(count);
    return met;
}

// The workgroups of a cooperative launch meet at a barrier of the GPU, made ready before.
static void cooperate(isa_t *isa, const module_t *module, uint32_t groups)
{
    uint32_t *words = device_alloc((groups + 1) * sizeof *words);
    dispatch_t ready = device_dispatch(module_symbol(module, "all_ready.kd"), 1, 1);
    dispatch_t all = device_dispatch(module_symbol(module, "all_meet.kd"), groups, 64);
    struct {
        uint32_t *count, groups, *seen;
    } arguments = {words, groups, words + 1};
    ready.gws = all.gws = true;
    bool ran = device_launch(isa, ready, &groups, sizeof groups) &&
               device_launch(isa, all, &arguments, sizeof arguments);
    for (uint32_t k = 1; k <= groups; k++) ran = ran && words[k] == groups;
    if (!ran || words[0] != 3 * groups) {
        printf("%u groups do not meet at a barrier of the GPU\n", groups);
        bad++;
    }
    device_free(words);
}

static void check(const char *path)
{
    const char *file = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
    gfx_t gfx = gfx_parse(file, strcspn(file, "-"));
    module_t module = module_load(path);
    isa_t *isa = isa_create(gfx, DEVICE_NODE, NULL);
    const unsigned units = gfx_units(gfx), waves = UNIT_SIMDS * gfx_simd_waves(gfx);
    const dispatch_t one = device_dispatch(module_symbol(&module, "crowd.kd"), 1, 64);
    crowd(isa, "of one wave", one, units * waves);
    dispatch_t other = one;
    other.units = 4;
    crowd(isa, "on one unit", other, waves);
    other.lds_size = LDS_SIZE_MAX / 3;
    crowd(isa, "with a third of its memory", other, 3);
    other = one;
    other.group[0] = 1024;
    crowd(isa, "of 16 waves", other, units * (waves / 16));
    other.kernel = module_symbol(&module, "crowd_wide.kd");
    other.group[0] = 64;
    crowd(isa, "of 128 registers", other, units * UNIT_SIMDS * (gfx >= GFX90A ? 4 : 2));
    if (!meet(isa, module_symbol(&module, "meet.kd"), units * waves)) bad++;
    if (!isa_threads(isa, 2) || !meet(isa, module_symbol(&module, "meet.kd"), units * waves)) bad++;
    cooperate(isa, &module, units * waves);
    isa_destroy(isa);
    module_unload(&module);
}

int main(int argc, char **argv)
{
    for (int k = 1; k < argc; k++) check(argv[k]);
    printf("%u wrong\n", bad);
    return bad != 0 || argc < 2;
}
