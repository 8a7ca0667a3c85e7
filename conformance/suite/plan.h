// SPDX-License-Identifier: Apache-2.0
// Which runs there are to do, by mode, and doing them.
#ifndef SUITE_PLAN_H_
#define SUITE_PLAN_H_

#include "suite/report.h"

// Asks the device what it can do, in a process of its own; says what went wrong on stderr.
bool plan_probe(const settings_t *settings, probe_t *probe);

// Runs all tests of the report that were not skipped. False if a signal asked to stop.
bool plan_run(const settings_t *settings, report_t *report);

#endif
