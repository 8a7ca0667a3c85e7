// SPDX-License-Identifier: Apache-2.0
// clang-19 makes a shared object of a text in C++ for OpenCL.
#ifndef SIM_METAL_COMPILE_H_
#define SIM_METAL_COMPILE_H_

#include <stdbool.h>

// Files of one compilation, in a folder of their own.
typedef struct paths_t {
    char folder[64], source[80], ir[80], object[80], log[80];
    bool fast; // arithmetic may be inexact
} paths_t;

void compile_begin(paths_t *paths);     // makes the folder
void compile_end(const paths_t *paths); // removes it, with its files

// Makes `object` of `source`, or takes what the cache has kept of an equal one; `log` then holds
// what the compiler said, if it ran. An object is a file of its own in either case: the loader
// would give two that share a file the same variables.
bool compile(const paths_t *paths);

// The whole of a file, to be freed; NULL if it is empty or cannot be read.
char *read_text(const char *path);

#endif
