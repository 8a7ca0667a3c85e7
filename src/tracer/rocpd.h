// SPDX-License-Identifier: Apache-2.0
// The database of a trace: the tables that tools for rocpd read (schema version 3 of
// rocmProfileData), and those of Keel for what they have no place for. docs/trace.md lists them.
#ifndef KEEL_SRC_TRACER_ROCPD_H_
#define KEEL_SRC_TRACER_ROCPD_H_

#include "tracer/model.h"

// How calls name a process: several machines may have the same number.
enum { ROCPD_PID_STRIDE = 10000000 };
static inline int64_t rocpd_pid(const process_t *process)
{
    return (int64_t)process->node * ROCPD_PID_STRIDE + process->pid;
}

// The name of rows of rocpd_api that stand for processes without calls.
#define ROCPD_PROCESS "keel_process"

// What makes the tables, and then the views; rocpd_schema.c.
extern const char rocpd_tables[], rocpd_views[];

// Writes a database, which replaces one of that name once it is whole.
keel_status_t rocpd_write(const model_t *model, const char *path) KEEL_MUST_USE;

// The file is a database.
bool rocpd_is(const char *path);

// Adds what a database has to a model, also one of another program.
keel_status_t rocpd_read(model_t *model, const char *path) KEEL_MUST_USE;

#endif
