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
// A worker calls the kernel once per workgroup. The kernel iterates over its work-items itself.
// Several workers call it at the same time. It returns 0, or a number of its own, which fails the
// dispatch with KEEL_ABORTED; the message quotes the number.
//
// A kernel has 1 MiB of stack: workers have more than that, and a thread that submits to
// cpu://inline or waits for it must have as much. `keel cc` refuses a kernel that takes more.
//
// Workgroups run in any order. With one worker they run one after another, so a kernel must not
// wait for another workgroup. It should not block. It runs in the process of the application: if
// it crashes, the process does.
#ifndef KEEL_HOST_KERNEL_H_
#define KEEL_HOST_KERNEL_H_

#include <stddef.h>
#include <stdint.h>

// The version of this ABI, what a kernel does with a binding, and a flag of the library.
#define KEEL_HOST_ABI        1
#define KEEL_HOST_READ       1u
#define KEEL_HOST_WRITE      2u
#define KEEL_HOST_FIXED_SIZE 1u

// Bytes of workgroup memory that a kernel may have.
#define KEEL_HOST_LOCAL_MEMORY (1u << 20)

// What is the same for all workgroups of a dispatch. Borrowed for the call of the kernel.
typedef struct keel_host_dispatch_t {
    uint32_t groups[3];      // workgroups in the grid
    uint32_t group_size[3];  // work-items in a workgroup
    void *const *bindings;   // addresses, by the number of the binding
    const uint64_t *lengths; // of the bindings, in bytes
    const void *constants;   // the constants, or the raw argument block; aligned to 16
    uint32_t binding_count;
    uint32_t constant_size; // bytes
    uint32_t local_size;    // bytes at keel_host_group_t.local
} keel_host_dispatch_t;

// One workgroup. Borrowed for the call of the kernel.
typedef struct keel_host_group_t {
    uint32_t id[3];  // its place in the grid
    uint32_t worker; // which worker runs it: below keel_caps_t.workers, 0 on cpu://inline
    void *local;     // workgroup memory: undefined contents, aligned to 64
} keel_host_group_t;

// A kernel: runs one workgroup. 0 is success.
typedef int (*keel_host_kernel_fn)(const keel_host_dispatch_t *dispatch,
                                   const keel_host_group_t *group);

// One entry point of the library.
typedef struct keel_host_entry_t {
    const char *name; // unique in the library
    keel_host_kernel_fn kernel;
    uint32_t group_size[3];   // work-items in a workgroup, unless a dispatch gives another size
    uint32_t constants;       // bytes that a dispatch gives
    uint32_t bindings;        // how many a dispatch gives
    uint32_t local_memory;    // bytes of workgroup memory
    const uint32_t *access;   // one KEEL_HOST_READ|WRITE per binding
    const char *const *names; // one per binding, or NULL
} keel_host_entry_t;

// A variable that the application can reach: keel_executable_global, keel_executable_constant_t.
typedef struct keel_host_global_t {
    const char *name;
    void *address;
    uint64_t size; // bytes
} keel_host_global_t;

// The table that the shared object exports as `keel_host_library`. All of it lives as long as the
// object is loaded, and is not changed.
typedef struct keel_host_library_t {
    uint32_t abi;                     // KEEL_HOST_ABI
    uint32_t entry_count;             //
    const keel_host_entry_t *entries; // entry_count of them
    const keel_host_global_t *globals;
    uint32_t global_count;
    uint32_t flags; // KEEL_HOST_FIXED_SIZE: a dispatch cannot change the size of workgroups
} keel_host_library_t;

// Defines and exports the table: an array of entries, then globals (or NULL) and their number.
#define KEEL_HOST_LIBRARY(entries_, globals_, global_count_)                                       \
    __attribute__((visibility("default"))) extern const keel_host_library_t keel_host_library;     \
    const keel_host_library_t keel_host_library = {                                                \
        KEEL_HOST_ABI,   sizeof(entries_) / sizeof((entries_)[0]),                                 \
        (entries_),      (globals_),                                                               \
        (global_count_), 0,                                                                        \
    };

#endif
