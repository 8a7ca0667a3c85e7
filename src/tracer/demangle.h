// SPDX-License-Identifier: Apache-2.0
// Names of C++ as people write them.
#ifndef KEEL_SRC_TRACER_DEMANGLE_H_
#define KEEL_SRC_TRACER_DEMANGLE_H_

// Gives for a name that a compiler of C++ made, such as _Z3addPf, that of the source: add(float*).
// To be freed. NULL for others, and where the library of C++ is missing. One thread at a time.
char *demangle(const char *name);

#endif
