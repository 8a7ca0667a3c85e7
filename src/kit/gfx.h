// SPDX-License-Identifier: Apache-2.0
// Targets of AMD's GPUs.
#ifndef KEEL_SRC_KIT_GFX_H_
#define KEEL_SRC_KIT_GFX_H_

#include <stdint.h>

// What an image for `target` is worth on a device that is called `here`: as executable_rank.
uint32_t gfx_rank(const char *here, const char *target);

// The rate that the clock of such a device has as a rule: not all releases of ROCm tell it.
uint32_t gfx_usual_khz(const char *here);

#endif
