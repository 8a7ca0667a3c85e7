// SPDX-License-Identifier: Apache-2.0
// CUPTI, found and opened at run time.
#ifndef KEEL_SRC_CAPTURE_CUDA_CUPTI_H_
#define KEEL_SRC_CAPTURE_CUDA_CUPTI_H_

#include <stdbool.h>

#include "capture/cuda/abi.h"

typedef struct cupti_functions_t {
#define FUNCTION(name, symbol, parameters) int(*name) parameters;
#include "capture/cuda/functions.def"
#undef FUNCTION
} cupti_functions_t;
extern cupti_functions_t cupti;

// Finds the library: the one that the program has loaded, else the newest. False, and a line says
// why, if there is none, or none that is known. Once.
bool cupti_open(void);

// False if a call failed, which a line tells.
bool cupti_check(int result, const char *what);

#endif
