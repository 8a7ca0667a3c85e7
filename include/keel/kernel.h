// SPDX-License-Identifier: Apache-2.0
// The kernel language: C for workgroups, which `keel cc` compiles for processors and GPUs alike.
// docs/kernels.md is the guide; this page is the reference. Freestanding C23: nothing but
// <stddef.h>, <stdint.h> and what is below may be used.
//
//     #include <keel/kernel.h>
//
//     typedef struct { float a; uint32_t count; } saxpy_t;
//
//     KEEL_KERNEL(saxpy, KEEL_GROUP(64), KEEL_IN(float, x), KEEL_INOUT(float, y),
//                 KEEL_CONSTANTS(saxpy_t, k))
//     {
//         KEEL_ITEMS_BELOW(k.count) {
//             uint64_t i = keel_global_id(0);
//             y[i] = k.a * x[i] + y[i];
//         }
//     }
//
//     keel cc saxpy.c -o saxpy.keel --target=host,nvptx:sm_70,gfx90a,msl
//
// The body of a kernel runs once for each workgroup. A region, the block after KEEL_ITEMS, runs for
// each work-item: on a processor it is a loop that the compiler vectorises, on a GPU the code of a
// thread. Code outside regions runs for the group: it is the same for all items and must not write
// memory. In a region `continue` ends it for one item; `return`, `break` and `goto` must not leave
// it.
//
// Items run a region at the same time and communicate only by atomics. Between regions
// KEEL_BARRIER() makes what all items of the group wrote visible to all of them. It stands outside
// regions, and only under conditions that are the same for all items of the group.
//
// The compiler may compute a * b + c with one rounding. -ffp-contract=off forbids that; then + - *
// / and square roots give the same bits on every target.
#ifndef KEEL_KERNEL_H_
#define KEEL_KERNEL_H_

#include <stddef.h>
#include <stdint.h>

#include <keel/kernel/map.h>

// The target: exactly one of these is 1.
//
// Code of the host has the entry points of <keel/host_kernel.h>. If KEEL_ENTRY_HEADER is defined,
// the header that it names makes others: for a runtime that launches code of the host as a GPU is
// launched, with one block of arguments (docs/kernels.md).
#define KEEL_NVPTX  0
#define KEEL_AMDGCN 0
#define KEEL_HOST   0
#if defined(KEEL_MSL) // keel cc says so: no compiler has Metal's machine
#elif defined(__NVPTX__)
#undef KEEL_NVPTX
#define KEEL_NVPTX 1
#elif defined(__AMDGCN__)
#undef KEEL_AMDGCN
#define KEEL_AMDGCN 1
#else
#undef KEEL_HOST
#define KEEL_HOST 1
#endif
#ifndef KEEL_MSL
#define KEEL_MSL 0
#endif
#define KEEL_GPU (KEEL_NVPTX || KEEL_AMDGCN || KEEL_MSL)

// KEEL_KERNEL(name, KEEL_GROUP(x, y, z), parameters ...): begins a kernel; its body follows. The
// sizes of the group are constant, 1 where left out; their product is at most 1024. Parameters:
//
//   KEEL_IN(type, name)        a binding that is read:            const type *name
//   KEEL_OUT(type, name)       a binding that is written:         type *name
//   KEEL_INOUT(type, name)     a binding that is both:            type *name
//   KEEL_CONSTANTS(type, name) what dispatches give by value:     const type name; at most one
//   KEEL_LOCAL(type, name, n)  workgroup memory for n elements:   type *name; undefined at first
//
// Bindings are numbered in their order. Memory that is written through one binding must not be read
// or written through another.
#define KEEL_GROUP(...)               KEEL_GROUP_(__VA_ARGS__, 1, 1, 1)
#define KEEL_IN(type, name)           (IN, type, name)
#define KEEL_OUT(type, name)          (OUT, type, name)
#define KEEL_INOUT(type, name)        (INOUT, type, name)
#define KEEL_CONSTANTS(type, name)    (CONSTANTS, type, name)
#define KEEL_LOCAL(type, name, n)     (LOCAL, type, name, n)
#define KEEL_KERNEL(name, group, ...) KEEL_KERNEL_(name, KEEL_STRIP_ group, __VA_ARGS__)

// KEEL_RAW_KERNEL(name, KEEL_GROUP(...), type, arguments): a kernel that takes one block of
// arguments, as kernels of other tools do: const type arguments. It has no bindings.
#define KEEL_RAW_KERNEL(name, group, type, arguments)                                              \
    KEEL_RAW_KERNEL_(name, KEEL_STRIP_ group, type, arguments)

// KEEL_GLOBAL(type, name, n) = {...}: a variable of n elements in device memory that lives as long
// as the executable. keel_executable_global finds it.
#define KEEL_GLOBAL(type, name, n) KEEL_GLOBAL_(type, name, n)

// KEEL_EXECUTABLE_CONSTANT(type, name) = value: a constant that kernels read by its name and do not
// write. The application may give it another value when it loads the executable
// (keel_executable_options_t.constants).
#define KEEL_EXECUTABLE_CONSTANT(type, name) KEEL_EXECUTABLE_CONSTANT_(type, name)

// For pointers that helper functions take into a binding or into workgroup memory:
//     static float sum(const KEEL_AT_DEVICE float *x, const KEEL_AT_LOCAL float *tile);
#define KEEL_AT_DEVICE
#define KEEL_AT_LOCAL KEEL_AT_LOCAL_

// In the body of a kernel; d is 0, 1 or 2.
#define keel_group_id(d)     (keel_place.group[d])                                // uint32_t
#define keel_group_count(d)  (keel_place.count[d])                                // in the grid
#define keel_group_size(d)   ((uint32_t)sizeof keel_shape->KEEL_PASTE_(size_, d)) // constant
#define keel_group_items()   ((uint32_t)sizeof keel_shape->items)                 // constant
#define keel_length(binding) KEEL_PASTE_(keel_length_, binding)                   // bytes, uint64_t
#define keel_count(binding)  (keel_length(binding) / sizeof *(binding))           // elements

// In regions.
#define keel_local_id(d) KEEL_PASTE_(keel_local_, d) // uint32_t
#define keel_local_index()                                                                         \
    ((keel_local_2 * keel_group_size(1) + keel_local_1) * keel_group_size(0) + keel_local_0)
#define keel_global_id(d)                                                                          \
    ((uint64_t)keel_group_id(d) * keel_group_size(d) + keel_local_id(d)) // uint64_t

// KEEL_ITEMS { } runs for each item. KEEL_ITEMS_BELOW(limit) { } runs for those whose
// keel_global_id(0) is below the limit: it bounds an array without a condition in the loop, which
// would hinder the vectoriser. KEEL_ONCE { } runs for one item.
#define KEEL_ITEMS              KEEL_ITEMS_
#define KEEL_ITEMS_BELOW(limit) KEEL_ITEMS_BELOW_(limit)
#define KEEL_ONCE               KEEL_ONCE_
#define KEEL_BARRIER()          keel_barrier_here()

// KEEL_PRIVATE(type, name); outside regions: a variable that each item has and that keeps its value
// from one region to the next. In regions it is keel_mine(name). On a processor the items of a
// group have 1 MiB together, in which all variables of the kernel lie.
#define KEEL_PRIVATE(type, name) KEEL_PRIVATE_(type, name)
#define keel_mine(name)          KEEL_MINE_(name)

#include <keel/kernel/entry.h>

#include <keel/kernel/atomic.h>
#include <keel/kernel/math.h>
#include <keel/kernel/number.h>
#include <keel/kernel/subgroup.h>

#endif
