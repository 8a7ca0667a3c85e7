// SPDX-License-Identifier: Apache-2.0
// Reads PTX, NVIDIA's virtual assembly.
#ifndef KEEL_SRC_EXECUTABLE_PTX_H_
#define KEEL_SRC_EXECUTABLE_PTX_H_

#include "executable/image.h"

// Whether the text begins as PTX must: with .version, after comments of some thousand bytes at
// most.
bool ptx_recognise(const char *text, size_t size);

// The entry points that have a body, their parameters, sizes of groups and workgroup memory: what
// the body declares or names of the module's, but not what functions it calls use beyond that. The
// text may end with bytes that are 0. Messages say in which line.
keel_status_t ptx_read(const void *data, size_t size, image_info_t *info) KEEL_MUST_USE;

#endif
