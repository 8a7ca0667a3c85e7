// SPDX-License-Identifier: Apache-2.0
// Reads a trace into memory.
#ifndef KEEL_SRC_TRACER_LOAD_H_
#define KEEL_SRC_TRACER_LOAD_H_

#include "tracer/model.h"
#include "tracer/set.h"

// Adds what traced processes wrote.
keel_status_t load_set(model_t *model, const set_t *set) KEEL_MUST_USE;

// Adds a trace by its path: a database, a folder of what processes wrote, or one such file. If
// there is no such path, but one with .parts behind it, which a tracer leaves that was killed, it
// is that.
keel_status_t load_path(model_t *model, const char *path) KEEL_MUST_USE;

#endif
