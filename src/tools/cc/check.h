// SPDX-License-Identifier: Apache-2.0
// What compilers take and no device can run.
#ifndef TOOLS_CC_CHECK_H_
#define TOOLS_CC_CHECK_H_

#include "tools/cc/record.h"
#include "tools/cc/target.h"

// KEEL_UNSUPPORTED, with a message that names the kernel or the function, if an image that was made
// for a target has a kernel with more workgroup memory than a group has there, or uses a function
// or variable that nothing defines, or takes more memory for an item than NVIDIA's GPUs have. The
// compilers check the memory of items for other targets, and undefined functions for AMD's GPUs.
keel_status_t made_check(const made_t *made, const target_t *target) KEEL_MUST_USE;

// What a kernel calls instead of a function of C or CUDA: "keel_exp" for expf; NULL if there is
// nothing.
const char *function_instead(const char *name, size_t length);

#endif
