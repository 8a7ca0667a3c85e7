// SPDX-License-Identifier: Apache-2.0
// Targets of NVIDIA's GPUs: "nvptx:sm_90a".
#ifndef KEEL_SRC_KIT_NVPTX_H_
#define KEEL_SRC_KIT_NVPTX_H_

#include <keel/driver/image.h>
#include <stdbool.h>

// Reads the number of a target, 90, and whether code for it runs on no other. False: it is none of
// these targets.
bool nvptx_parse(const char *target, int *architecture, bool *only);

// What an image for `target` is worth on a device of architecture `here`: as executable_rank.
uint32_t nvptx_rank(int here, keel_image_kind_t kind, const char *target);

#endif
