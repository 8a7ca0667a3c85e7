// SPDX-License-Identifier: Apache-2.0
// What the kernels of src/builtin are to do, on whatever runs them.
#ifndef TESTS_BUILTIN_JUDGE_H_
#define TESTS_BUILTIN_JUDGE_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct judge_device_t {
    void *(*alloc)(size_t size); // memory that host and device see, aligned to 16
    void (*free)(void *memory);
    // Runs a kernel, and returns when it has ended.
    bool (*launch)(void *user, const char *kernel, uint32_t groups, uint32_t group_size,
                   const void *arguments, size_t size);
    void *user;
} judge_device_t;

// How many results are wrong; each is printed.
unsigned judge_run(const judge_device_t *device);

#endif
