// SPDX-License-Identifier: Apache-2.0
// Targets: "gfx90a:sramecc+:xnack-" is a processor, and features that a device has or lacks.
// "gfx11-generic" is several processors.
#include "kit/gfx.h"

#include <keel/driver/image.h>
#include <stdbool.h>
#include <string.h>

// The length of the part that starts here, up to the next colon or the end.
static size_t part_length(const char *part)
{
    return strcspn(part, ":");
}

static bool part_equals(const char *a, const char *b)
{
    return part_length(a) == part_length(b) && !memcmp(a, b, part_length(a));
}

// Whether one of the features behind the processor is that one.
static bool feature_is_here(const char *here, const char *feature)
{
    for (here += part_length(here); *here; here += part_length(here))
        if (part_equals(++here, feature)) return true;
    return false;
}

// What compilers make for several processors at once.
static const struct {
    const char *target, *processors[10]; // the list ends with NULL
} generics[] = {
    {"gfx9-generic", {"gfx900", "gfx902", "gfx904", "gfx906", "gfx909", "gfx90c"}},
    {"gfx9-4-generic", {"gfx940", "gfx941", "gfx942", "gfx950"}},
    {"gfx10-1-generic", {"gfx1010", "gfx1011", "gfx1012", "gfx1013"}},
    {"gfx10-3-generic",
     {"gfx1030", "gfx1031", "gfx1032", "gfx1033", "gfx1034", "gfx1035", "gfx1036"}},
    {"gfx11-generic",
     {"gfx1100", "gfx1101", "gfx1102", "gfx1103", "gfx1150", "gfx1151", "gfx1152", "gfx1153"}},
    {"gfx12-generic", {"gfx1200", "gfx1201"}},
};

static bool generic_has(const char *target, const char *here)
{
    for (size_t i = 0; i < sizeof generics / sizeof generics[0]; i++)
        for (int k = 0; part_equals(generics[i].target, target) && generics[i].processors[k]; k++)
            if (part_equals(generics[i].processors[k], here)) return true;
    return false;
}

// Code that names no feature runs on devices with and without it. The more it names, the better it
// fits.
uint32_t gfx_rank(const char *here, const char *target)
{
    bool exact = part_equals(here, target);
    uint32_t rank = exact ? KEEL_RANK_EXACT : KEEL_RANK_COMPATIBLE;
    if (!exact && !generic_has(target, here)) return 0;
    for (target += part_length(target); *target; target += part_length(target), rank++)
        if (!feature_is_here(here, ++target)) return 0;
    return rank;
}

uint32_t gfx_usual_khz(const char *here)
{
    if (part_equals(here, "gfx900") || part_equals(here, "gfx902")) return 27000;
    if (part_equals(here, "gfx906") || part_equals(here, "gfx908") || part_equals(here, "gfx90a"))
        return 25000;
    return 100000;
}
