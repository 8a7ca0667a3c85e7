// SPDX-License-Identifier: Apache-2.0
// The kernel ABI of cpu://: what a shared object must export to be loaded as an executable. Needs
// no other header of Keel and no library.
//
//     static int scale(const keel_host_dispatch_t *d, const keel_host_group_t *g)
//     {
//         float *x = d->bindings[0];
//         float k = *(const float *)d->constants;
//         for (uint32_t i = 0; i < d->group_size[0]; i++) x[g->id[0] * d->group_size[0] + i] *= k;
//         return 0;
//     }
//     static const uint32_t access[] = {KEEL_HOST_READ | KEEL_HOST_WRITE};
//     static const keel_host_entry_t entries[] = {
//         {.name = "scale", .kernel = scale, .group_size = {64, 1, 1}, .constants = 4,
//          .bindings = 1, .access = access},
//     };
//     KEEL_HOST_LIBRARY(entries, NULL, 0)
//
//     cc -O2 -shared -fPIC scale.c -o scale.so
//
// A kernel is called once per workgroup, from any worker, several at once; it iterates over its
// work-items itself. It returns 0, or a number of its own that fails the dispatch with KEEL_ABORTED
// and is quoted in the message.
//
// Workgroups run in any order, and one after another if there is but one worker: a kernel must not
// wait for another workgroup. It runs in the process like any other code of it, so a crash is the
// process's, and it should not block.
#ifndef KEEL_HOST_KERNEL_H_
#define KEEL_HOST_KERNEL_H_

#include <stddef.h>
#include <stdint.h>

#define KEEL_HOST_ABI        1
#define KEEL_HOST_READ       1u
#define KEEL_HOST_WRITE      2u
#define KEEL_HOST_FIXED_SIZE 1u

// The same for all workgroups of a dispatch.
typedef struct keel_host_dispatch_t {
    uint32_t groups[3];      // in the grid
    uint32_t group_size[3];  // work-items in a group
    void *const *bindings;   // by number
    const uint64_t *lengths; // of the bindings, in bytes
    const void *constants;   // or the raw argument block, aligned to 16
    uint32_t binding_count;
    uint32_t constant_size;
    uint32_t local_size; // bytes at keel_host_group_t.local
} keel_host_dispatch_t;

// One workgroup.
typedef struct keel_host_group_t {
    uint32_t id[3];
    uint32_t worker; // which worker runs it; below keel_caps_t.workers, 0 on cpu://inline
    void *local;     // workgroup memory: undefined contents, aligned to 64
} keel_host_group_t;

typedef int (*keel_host_kernel_fn)(const keel_host_dispatch_t *dispatch,
                                   const keel_host_group_t *group);

typedef struct keel_host_entry_t {
    const char *name;
    keel_host_kernel_fn kernel;
    uint32_t group_size[3];
    uint32_t constants;       // bytes it reads
    uint32_t bindings;        // how many it uses
    uint32_t local_memory;    // bytes
    const uint32_t *access;   // one KEEL_HOST_READ|WRITE per binding
    const char *const *names; // one per binding, or NULL
} keel_host_entry_t;

// A variable that the application may reach.
typedef struct keel_host_global_t {
    const char *name;
    void *address;
    uint64_t size;
} keel_host_global_t;

typedef struct keel_host_library_t {
    uint32_t abi; // KEEL_HOST_ABI
    uint32_t entry_count;
    const keel_host_entry_t *entries;
    const keel_host_global_t *globals;
    uint32_t global_count;
    uint32_t flags; // KEEL_HOST_FIXED_SIZE: groups are as large as their entry says, always
} keel_host_library_t;

// The table, under the name it is looked up by.
#define KEEL_HOST_LIBRARY(entries_, globals_, global_count_)                                       \
    __attribute__((visibility("default"))) extern const keel_host_library_t keel_host_library;     \
    const keel_host_library_t keel_host_library = {                                                \
        KEEL_HOST_ABI,   sizeof(entries_) / sizeof((entries_)[0]),                                 \
        (entries_),      (globals_),                                                               \
        (global_count_), 0,                                                                        \
    };

#endif
