// SPDX-License-Identifier: Apache-2.0
// The parts of `keel trace`. Each takes the words from its own name on and returns the exit status.
#ifndef TOOLS_TRACE_TRACE_H_
#define TOOLS_TRACE_TRACE_H_

#include "tracer/model.h"

int trace_run(int argc, char **argv);
int trace_summary(int argc, char **argv);
int trace_info(int argc, char **argv);
int trace_export(int argc, char **argv);
int trace_report(int argc, char **argv);
int trace_merge(int argc, char **argv);
int trace_compare(int argc, char **argv);
int trace_control(int argc, char **argv); // start, stop, status

int trace_finish_parts(int argc, char **argv); // finish

// Prints and releases a failure. Returns 1.
int trace_complain(keel_status_t status);

#endif
