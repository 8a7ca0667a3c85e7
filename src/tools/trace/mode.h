// SPDX-License-Identifier: Apache-2.0
// What of a program's runtimes is recorded besides Keel.
#ifndef TOOLS_TRACE_MODE_H_
#define TOOLS_TRACE_MODE_H_

#include <stdbool.h>

// Sets the environment of the program for a mode: auto, hip, cuda, standard or lite. False, after a
// message, if there is no such mode, or if the library for it is not there.
bool mode_apply(const char *mode);

#endif
