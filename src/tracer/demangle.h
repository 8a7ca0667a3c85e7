// SPDX-License-Identifier: Apache-2.0
// Names of C++ as people write them.
#ifndef KEEL_SRC_TRACER_DEMANGLE_H_
#define KEEL_SRC_TRACER_DEMANGLE_H_

#include <stddef.h>

// Replaces a name that a compiler of C++ made, such as _Z3addPf, by that of the source:
// add(float*). Others stay, and so do all where the library of C++ is missing. One thread at a
// time.
void demangle(char *name, size_t size);

#endif
