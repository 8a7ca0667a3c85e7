// SPDX-License-Identifier: Apache-2.0
// A trace in formats of other tools. A failure to write is left for the caller to see by ferror.
#ifndef KEEL_SRC_TRACER_EXPORT_H_
#define KEEL_SRC_TRACER_EXPORT_H_

#include <stdio.h>

#include "tracer/rocpd.h"

// Perfetto's own format, for ui.perfetto.dev: a protobuf.
keel_status_t export_perfetto(const model_t *model, FILE *out) KEEL_MUST_USE;

// Chrome's JSON, which Perfetto and others read as well.
keel_status_t export_chrome(const model_t *model, FILE *out) KEEL_MUST_USE;

// A line for each event, with a line of names before.
keel_status_t export_csv(const model_t *model, FILE *out) KEEL_MUST_USE;

// One page with a timeline to zoom, and tables: no other file and no network.
keel_status_t export_report(const model_t *model, FILE *out) KEEL_MUST_USE;

// The number of a process in pictures, which no other has, and below EXPORT_PIDS: that of the
// database, as far as it has so many digits.
enum { EXPORT_PIDS = 1000000000 };
static inline uint32_t export_pid(const process_t *process)
{
    return (uint32_t)(rocpd_pid(process) % EXPORT_PIDS);
}

// Writes a text as a string of JSON, in quotes.
void json_text(const char *text, FILE *out);

#endif
