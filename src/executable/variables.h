// SPDX-License-Identifier: Apache-2.0
// Whether the code of an image has memory of its own that is written, by kernels or by
// keel_executable_global. If it has none, two executables of it are the same.
#ifndef KEEL_SRC_EXECUTABLE_VARIABLES_H_
#define KEEL_SRC_EXECUTABLE_VARIABLES_H_

#include <stdbool.h>
#include <stddef.h>

// Looks at ELF files of all kinds and at PTX, and is sure where it says false: any other format, a
// damaged image or a section that is not known here counts as a variable.
bool image_has_variables(const void *data, size_t size);

#endif
