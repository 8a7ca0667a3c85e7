// SPDX-License-Identifier: Apache-2.0
// The kernels of conformance/language on a GPU, however that is reached: they keep the bounds of
// <keel/kernel.h>, by either entry point, with the blocks of arguments of docs/kernels.md.
#ifndef TESTS_SIM_AMD_LANGUAGE_H_
#define TESTS_SIM_AMD_LANGUAGE_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// How a GPU is reached. Memory is both the host's and the GPU's.
typedef struct language_gpu_t {
    void *(*alloc)(size_t size);
    void (*free)(void *memory);
    // Runs the kernel with that symbol over a grid of groups, and waits. False, with a message
    // printed, if it fails.
    bool (*launch)(void *user, const char *symbol, const uint32_t groups[2],
                   const uint32_t group[2], const void *arguments, size_t size);
    void *user;
} language_gpu_t;

// Prints what is wrong, and returns how much of it there is.
unsigned language_run(const language_gpu_t *gpu);

#endif
