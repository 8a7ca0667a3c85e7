// SPDX-License-Identifier: Apache-2.0
// Places in HIP's dispatch table, and of its reports, judged by its own headers. It is compiled,
// not run.
// clang-format off: its headers take some before them for granted, and those of OpenGL.
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <hip/hip_runtime_api.h>
#include <hip/hip_deprecated.h>
using GLenum = unsigned;
using GLuint = unsigned;
#include <hip/amd_detail/amd_hip_gl_interop.h>
#include <hip/amd_detail/hip_api_trace.hpp>
#include <hip/amd_detail/hip_prof_str.h>
// clang-format on
namespace ours // HIP has one of the names, too
{
#include "capture/hip/abi.h"
}
using namespace ours;

#define SLOT(place, name)                                                                          \
    static_assert(offsetof(HipDispatchTable, name##_fn) == 8 + 8 * (place), #name);
#include "capture/hip/slots.def"
#undef SLOT

// HIP 7 came to have these one after the other: those that this header has.
#define SLOT(place, name)                                                                          \
    template <class Table> constexpr auto at_##name(int)->decltype(&Table::name##_fn, size_t())    \
    {                                                                                              \
        return offsetof(Table, name##_fn);                                                         \
    }                                                                                              \
    template <class> constexpr size_t at_##name(...)                                               \
    {                                                                                              \
        return 8 + 8 * (place);                                                                    \
    }                                                                                              \
    static_assert(at_##name<HipDispatchTable>(0) == 8 + 8 * (place), #name);
#include "capture/hip/slots7.def"
#undef SLOT

static_assert(offsetof(HipCompilerDispatchTable, __hipRegisterFunction_fn) == 8 + 8 * 3,
              "register");
static_assert(sizeof(hip_api_data_t) == 1520, "what src/capture/hip/reports.c takes it for");

// Whether an argument is passed in the same way.
template <class Ours, class Theirs> constexpr bool argument_is()
{
    if (std::is_pointer_v<Ours>) return std::is_pointer_v<Theirs>;
    if (std::is_floating_point_v<Ours>) return std::is_same_v<Ours, Theirs>;
    bool same = sizeof(Ours) == sizeof(Theirs) && alignof(Ours) == alignof(Theirs);
    if (std::is_class_v<Ours>) return same && std::is_class_v<Theirs>;
    return same && (std::is_integral_v<Theirs> || std::is_enum_v<Theirs>);
}

template <class... Ours> struct function_t {
    template <class Result, class... Theirs> static constexpr bool is(Result (*)(Theirs...))
    {
        if constexpr (sizeof...(Ours) == sizeof...(Theirs))
            return (argument_is<Ours, Theirs>() && ...);
        else
            return false;
    }
};
template <class... Ours> function_t<Ours...> function_of(void (*)(Ours...));

// Those that the table of this header has; the others are later, or were removed, or are of C++.
#define CALL(name, stream, kernel, parameters, arguments)                                          \
    template <class Table> constexpr bool has_##name(decltype(Table::name##_fn) *)                 \
    {                                                                                              \
        using call = decltype(function_of((void(*) parameters) nullptr));                          \
        static_assert(call::is(decltype(Table::name##_fn)(nullptr)), #name);                       \
        return true;                                                                               \
    }                                                                                              \
    template <class> constexpr bool has_##name(...)                                                \
    {                                                                                              \
        return false;                                                                              \
    }
#include "capture/hip/calls.def"
#undef CALL
#define CALL(name, stream, kernel, parameters, arguments) +has_##name<HipDispatchTable>(nullptr)
static_assert(0
#include "capture/hip/calls.def"
                  >= 300,
              "nearly all are judged");
#undef CALL
