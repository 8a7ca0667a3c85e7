// SPDX-License-Identifier: Apache-2.0
// FILE.parts: the folder into which the processes of a trace write, until FILE is made of it.
#ifndef TOOLS_TRACE_PARTS_H_
#define TOOLS_TRACE_PARTS_H_

#include "tracer/set.h"

// Whether processes run that write there.
bool parts_are_written(const char *folder);

// Removes all files of a recording, and their folder.
void parts_remove(const char *folder);

// Removes the files that a set has read, or that were never begun; and the folder, if no others are
// in it.
void parts_remove_read(const char *folder, const set_t *set);

#endif
