// SPDX-License-Identifier: Apache-2.0
// LLVM's names of targets in Keel's words.
#ifndef KEEL_SRC_EXECUTABLE_TRIPLE_H_
#define KEEL_SRC_EXECUTABLE_TRIPLE_H_

#include "executable/image.h"

// The target (keel/driver/image.h) of a triple and a processor: "nvptx:sm_70" of
// "nvptx64-nvidia-cuda" and "sm_70". Both are terminated; the result belongs to info.
keel_status_t triple_target(image_info_t *info, const char *triple, const char *processor,
                            const char **target) KEEL_MUST_USE;

// What follows the triple in ARCH-VENDOR-OS-ENVIRONMENT-PROCESSOR, as AMD's compilers and runtimes
// name a target: "gfx90a:xnack-" of "amdgcn-amd-amdhsa--gfx90a:xnack-", and of
// "amdgpu9.0a-amd-amdhsa-unknown-gfx90a:xnack-", as LLVM has it since July 2026. A name with fewer
// parts is returned as it is.
const char *triple_processor(const char *name);

#endif
