// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/target.h"

#include <stdio.h>
#include <string.h>

#include <keel/driver/image.h>

#if defined(__APPLE__)
#define SYSTEM "macos"
#else
#define SYSTEM "linux"
#endif

// From level 1 on.
#if defined(__aarch64__)
#define MACHINE "aarch64"
static const char *const levels[] = {"", ":sve", ":sve2"};
#else
#define MACHINE "x86_64"
static const char *const levels[] = {"", ":v2", ":v3", ":v4"};
#endif

static const char base[] = MACHINE "-" SYSTEM;

void cpu_target_name(uint32_t level, char *text, size_t size)
{
    snprintf(text, size, "%s%s", base, levels[level - 1]);
}

uint32_t cpu_target_rank(uint32_t level, const char *target)
{
    if (strncmp(target, base, sizeof base - 1) != 0) return 0;
    for (uint32_t i = 1; i <= level; i++) {
        if (strcmp(target + sizeof base - 1, levels[i - 1]) != 0) continue;
        return i == level ? KEEL_RANK_EXACT : KEEL_RANK_COMPATIBLE + i;
    }
    return 0;
}
