// SPDX-License-Identifier: Apache-2.0
#ifndef SIM_METAL_STATIC_H_
#define SIM_METAL_STATIC_H_

// Bytes of the threadgroup variables of a kernel, in a shared object that clang made of MSL.
unsigned long static_memory(const char *object, const char *kernel);

#endif
