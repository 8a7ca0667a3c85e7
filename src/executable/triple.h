// SPDX-License-Identifier: Apache-2.0
// LLVM's names of targets in Keel's words.
#ifndef KEEL_SRC_EXECUTABLE_TRIPLE_H_
#define KEEL_SRC_EXECUTABLE_TRIPLE_H_

#include "executable/image.h"

// The target (keel/driver/image.h) of a triple and a processor: "nvptx:sm_70" of
// "nvptx64-nvidia-cuda" and "sm_70". Both are terminated; the result belongs to info.
keel_status_t triple_target(image_info_t *info, const char *triple, const char *processor,
                            const char **target) KEEL_MUST_USE;

#endif
