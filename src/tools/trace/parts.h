// SPDX-License-Identifier: Apache-2.0
// FILE.parts: the folder into which the processes of a trace write, until FILE is made of it.
#ifndef TOOLS_TRACE_PARTS_H_
#define TOOLS_TRACE_PARTS_H_

#include <stdbool.h>

#include "tracer/set.h"

// Removes the files of a recording, and their folder.
void parts_remove(const char *folder);

// A process that the trace knows runs still, so that its file grows.
bool parts_are_alive(const set_t *set);

#endif
