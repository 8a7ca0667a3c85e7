// SPDX-License-Identifier: Apache-2.0
// How the things of fixture.h that are not Keel's end. For own.c.
#ifndef SUITE_OWN_H_
#define SUITE_OWN_H_

#include "suite/fixture.h"

void thread_finish(thread_t *thread);
void gate_finish(gate_t *gate);
void child_finish(child_t *child);

#endif
