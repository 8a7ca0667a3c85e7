// SPDX-License-Identifier: Apache-2.0
// Places in HIP's dispatch table, judged by its own header. It is compiled, not run.
// clang-format off: its headers take some before them for granted, and those of OpenGL.
#include <cstddef>
#include <hip/hip_runtime_api.h>
#include <hip/hip_deprecated.h>
using GLenum = unsigned;
using GLuint = unsigned;
#include <hip/amd_detail/amd_hip_gl_interop.h>
#include <hip/amd_detail/hip_api_trace.hpp>
// clang-format on

#define SLOT(place, name)                                                                          \
    static_assert(offsetof(HipDispatchTable, name##_fn) == 8 + 8 * (place), #name);
#include "capture/hip/slots.def"
#if HIP_RUNTIME_API_TABLE_STEP_VERSION >= 28
#include "capture/hip/slots7.def"
#endif
#undef SLOT
static_assert(offsetof(HipCompilerDispatchTable, __hipRegisterFunction_fn) == 8 + 8 * 3,
              "register");
