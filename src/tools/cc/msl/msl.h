// SPDX-License-Identifier: Apache-2.0
// Kernels for Metal: what clang made of the source, in LLVM's intermediate language, as a text in
// Metal's shading language. docs/metal.md says why by this way.
#ifndef TOOLS_CC_MSL_MSL_H_
#define TOOLS_CC_MSL_MSL_H_

#include "tools/cc/msl/text.h"
#include "tools/cc/record.h"

// Replaces made->bytes, LLVM's text, by MSL, and fills in the entry points.
keel_status_t msl_make(made_t *made) KEEL_MUST_USE;

// What the code of kernels calls, before it.
void prelude_write(text_t *out, const char *code);
// Lines, indented by braces.
void format_write(text_t *out, const char *code);

#endif
