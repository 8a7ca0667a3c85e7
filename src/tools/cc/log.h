// SPDX-License-Identifier: Apache-2.0
// What compilers print.
#ifndef TOOLS_CC_LOG_H_
#define TOOLS_CC_LOG_H_

#include <stdio.h>

// Prints it. A kernel whose name another has already is a dozen mistakes to a compiler, one for
// each thing that the macro defines; they become one.
void log_print(const char *text, FILE *to);

#endif
