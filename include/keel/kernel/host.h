// SPDX-License-Identifier: Apache-2.0
// Part of <keel/kernel.h>: regions as loops of a processor, and entry points of host_kernel.h.
#ifndef KEEL_KERNEL_HOST_H_
#define KEEL_KERNEL_HOST_H_

#include <keel/host_kernel.h>

#define KEEL_AT_LOCAL_
#define KEEL_AT_MEMORY_

// Inside a region keel_barrier_here is no function, so that a barrier there does not compile.
#define KEEL_ITEMS_ KEEL_LOOP_(keel_group_size(0))
#define KEEL_ITEMS_BELOW_(limit)                                                                   \
    KEEL_LOOP_(keel_items_below((limit), keel_group_id(0), keel_group_size(0)))
#define KEEL_LOOP_(end)                                                                            \
    for (uint32_t keel_local_2 = 0, keel_end = (end), keel_barrier_here = 0;                       \
         keel_local_2 < keel_group_size(2) && !keel_barrier_here; keel_local_2++)                  \
        for (uint32_t keel_local_1 = 0; keel_local_1 < keel_group_size(1); keel_local_1++)         \
    _Pragma("omp simd") for (uint32_t keel_local_0 = 0; keel_local_0 < keel_end; keel_local_0++)

// How many of a group's items along the first dimension have an index below the limit.
KEEL_INLINE_ uint32_t keel_items_below(uint64_t limit, uint64_t group, uint32_t size)
{
    uint64_t first = group * size;
    if (limit <= first) return 0;
    return limit - first < size ? (uint32_t)(limit - first) : size;
}

#define KEEL_ONCE_                                                                                 \
    for (uint32_t keel_local_0 __attribute__((unused)) = 0,                                        \
                               keel_local_1 __attribute__((unused)) = 0,                           \
                               keel_local_2 __attribute__((unused)) = 0, keel_barrier_here = 0;    \
         !keel_barrier_here; keel_barrier_here = 1)

KEEL_INLINE_ void keel_barrier_here(void) {}

#define KEEL_PRIVATE_(type, name) type name[sizeof keel_shape->items]
#define KEEL_MINE_(name)          ((name)[keel_local_index()])

#define KEEL_GLOBAL_(type, name, n)                                                                \
    extern type name[n];                                                                           \
    static const keel_host_global_t keel_global_##name KEEL_LIST_("keel_globals",                  \
                                                                  8) = {#name, name, sizeof name}; \
    type name[n]

#define KEEL_EXECUTABLE_CONSTANT_(type, name)                                                      \
    extern type name;                                                                              \
    static const keel_host_global_t keel_global_##name KEEL_LIST_("keel_globals", 8) = {           \
        #name, &name, sizeof name};                                                                \
    type name

// The linker gathers the entries; how many they are is known once the object is loaded.
#define KEEL_BOUND_(name) extern name[] __attribute__((weak, visibility("hidden")))

#ifndef KEEL_ENTRY_HEADER

#define KEEL_ABI_               1
#define KEEL_ARGUMENTS_(kernel) 0

#define KEEL_HOST_BINDING_(kernel, type, name)                                                     \
    , (type *)keel_dispatch->bindings[keel_number_##kernel##_##name],                              \
        keel_dispatch->lengths[keel_number_##kernel##_##name]
#define KEEL_PASS_IN(kernel, type, name)        KEEL_HOST_BINDING_(kernel, type, name)
#define KEEL_PASS_OUT(kernel, type, name)       KEEL_HOST_BINDING_(kernel, type, name)
#define KEEL_PASS_INOUT(kernel, type, name)     KEEL_HOST_BINDING_(kernel, type, name)
#define KEEL_PASS_CONSTANTS(kernel, type, name) , *(const type *)keel_dispatch->constants
#define KEEL_PASS_LOCAL(kernel, type, name, n)                                                     \
    , ((struct keel_locals_##kernel *)keel_group->local)->name

#define KEEL_ACCESS_IN(kernel, type, name)    KEEL_HOST_READ,
#define KEEL_ACCESS_OUT(kernel, type, name)   KEEL_HOST_WRITE,
#define KEEL_ACCESS_INOUT(kernel, type, name) KEEL_HOST_READ | KEEL_HOST_WRITE,
#define KEEL_ACCESS_CONSTANTS(kernel, type, name)
#define KEEL_ACCESS_LOCAL(kernel, type, name, n)

#define KEEL_NAME_IN(kernel, type, name)    #name,
#define KEEL_NAME_OUT(kernel, type, name)   #name,
#define KEEL_NAME_INOUT(kernel, type, name) #name,
#define KEEL_NAME_CONSTANTS(kernel, type, name)
#define KEEL_NAME_LOCAL(kernel, type, name, n)

KEEL_INLINE_ keel_place_t keel_host_place(const keel_host_dispatch_t *d, const keel_host_group_t *g)
{
    return (keel_place_t){{g->id[0], g->id[1], g->id[2]},
                          {d->groups[0], d->groups[1], d->groups[2]}};
}

#define KEEL_ENTRIES_(kernel, x, y, z, ...)                                                        \
    static int keel_host_##kernel(const keel_host_dispatch_t *keel_dispatch,                       \
                                  const keel_host_group_t *keel_group)                             \
    {                                                                                              \
        keel_body_##kernel(KEEL_NO_SHAPE_, keel_host_place(keel_dispatch, keel_group)              \
                                               KEEL_EACH_(KEEL_PASS_, kernel, __VA_ARGS__));       \
        return 0;                                                                                  \
    }                                                                                              \
    static const uint32_t keel_access_##kernel[] = {                                               \
        KEEL_EACH_(KEEL_ACCESS_, kernel, __VA_ARGS__) 0};                                          \
    static const char *const keel_names_##kernel[] = {KEEL_EACH_(KEEL_NAME_, kernel, __VA_ARGS__)  \
                                                          NULL};                                   \
    static const keel_host_entry_t keel_entry_##kernel KEEL_LIST_("keel_entries", 8) = {           \
        #kernel,                                                                                   \
        keel_host_##kernel,                                                                        \
        {x, y, z},                                                                                 \
        0 KEEL_EACH_(KEEL_SIZEOF_, kernel, __VA_ARGS__),                                           \
        keel_bindings_##kernel,                                                                    \
        sizeof(struct keel_locals_##kernel),                                                       \
        keel_access_##kernel,                                                                      \
        keel_names_##kernel,                                                                       \
    };

#define KEEL_RAW_ENTRY_(kernel, x, y, z, type)                                                     \
    static int keel_host_##kernel(const keel_host_dispatch_t *keel_dispatch,                       \
                                  const keel_host_group_t *keel_group)                             \
    {                                                                                              \
        keel_body_##kernel(KEEL_NO_SHAPE_, keel_host_place(keel_dispatch, keel_group),             \
                           *(const type *)keel_dispatch->constants);                               \
        return 0;                                                                                  \
    }                                                                                              \
    static const keel_host_entry_t keel_entry_##kernel KEEL_LIST_("keel_entries", 8) = {           \
        #kernel, keel_host_##kernel, {x, y, z}, sizeof(type), 0, 0, NULL, NULL};

KEEL_BOUND_(const keel_host_entry_t __start_keel_entries);
KEEL_BOUND_(const keel_host_entry_t __stop_keel_entries);
KEEL_BOUND_(const keel_host_global_t __start_keel_globals);
KEEL_BOUND_(const keel_host_global_t __stop_keel_globals);

__attribute__((weak, visibility("default")))
keel_host_library_t keel_host_library KEEL_LIST_("keel_library", 8) = {
    KEEL_HOST_ABI, 0, __start_keel_entries, __start_keel_globals, 0, KEEL_HOST_FIXED_SIZE};

__attribute__((constructor)) static void keel_host_library_count(void)
{
    keel_host_library.entry_count = (uint32_t)(__stop_keel_entries - __start_keel_entries);
    keel_host_library.global_count = (uint32_t)(__stop_keel_globals - __start_keel_globals);
}

#endif

#endif
