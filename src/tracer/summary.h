// SPDX-License-Identifier: Apache-2.0
// What a trace comes to, in tables for a person.
#ifndef KEEL_SRC_TRACER_SUMMARY_H_
#define KEEL_SRC_TRACER_SUMMARY_H_

#include <stdio.h>

#include "tracer/model.h"

// Prints, of each table, the `limit` names that took longest.
keel_status_t summary_print(const model_t *model, uint32_t limit, FILE *out) KEEL_MUST_USE;

// Prints one line for each process, and what is missing of it.
void summary_processes(const model_t *model, FILE *out);

#endif
