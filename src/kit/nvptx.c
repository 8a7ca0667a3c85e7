// SPDX-License-Identifier: Apache-2.0
#include "kit/nvptx.h"

#include <stdlib.h>
#include <string.h>

bool nvptx_parse(const char *target, int *architecture, bool *only)
{
    static const char prefix[] = "nvptx:sm_";
    if (strncmp(target, prefix, sizeof prefix - 1) != 0) return false;
    char *end;
    *architecture = (int)strtol(target + sizeof prefix - 1, &end, 10);
    *only = *end == 'a' || *end == 'f';
    return end != target + sizeof prefix - 1;
}

// PTX runs on its architecture and all later ones, machine code within a generation.
uint32_t nvptx_rank(int here, keel_image_kind_t kind, const char *target)
{
    int made = 0;
    bool only = false;
    if (kind == KEEL_IMAGE_FATBIN) return KEEL_RANK_PORTABLE;
    if (!nvptx_parse(target, &made, &only) || made > here) return 0;
    bool older = made < here;
    if (older && only) return 0;
    if (kind == KEEL_IMAGE_PTX) return KEEL_RANK_PORTABLE + (uint32_t)made;
    if (kind != KEEL_IMAGE_CUBIN || made / 10 != here / 10) return 0;
    return (older ? KEEL_RANK_COMPATIBLE : KEEL_RANK_EXACT) + (uint32_t)made;
}
