// SPDX-License-Identifier: Apache-2.0
// Targets: "gfx90a:sramecc+:xnack-" is a processor, and features that a device has or lacks.
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

// Code that names no feature runs on devices with and without it. The more it names, the better it
// fits.
uint32_t gfx_rank(const char *here, const char *target)
{
    uint32_t rank = KEEL_RANK_EXACT;
    if (!part_equals(here, target)) return 0;
    for (target += part_length(target); *target; target += part_length(target), rank++)
        if (!feature_is_here(here, ++target)) return 0;
    return rank;
}
