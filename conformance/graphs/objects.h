// SPDX-License-Identifier: Apache-2.0
// The objects of a running graph.
#ifndef GRAPHS_OBJECTS_H_
#define GRAPHS_OBJECTS_H_

#include "graphs/runner.h"

// False with a problem noted.
bool objects_make(run_t *run);
// What the memory holds in the end.
void objects_read(run_t *run);
void objects_release(run_t *run);
// Notes if more objects are alive than before the graph.
void live_check(run_t *run);

#endif
