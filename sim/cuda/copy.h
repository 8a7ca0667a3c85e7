// SPDX-License-Identifier: Apache-2.0
// Copies and fills at work.
#ifndef SIM_CUDA_COPY_H_
#define SIM_CUDA_COPY_H_

#include "cuda/work.h"

// Under the lock: whether the operands are there; whether one is memory that CUDA knows nothing of.
bool copy_check(const copy_work_t *copy, moment_t moment, const char *maker);
bool fill_check(const fill_work_t *fill, moment_t moment, const char *maker);
bool side_is_pageable(const side_t *side);
// Whether it is not onto itself, which is undefined; tells of it otherwise. A node of a graph may
// be so as long as it is not run.
bool copy_is_apart(const copy_work_t *copy, const char *maker);
bool copy_stage(copy_work_t *copy);

// Without the lock.
void copy_run(const copy_work_t *copy);
void fill_run(const fill_work_t *fill);

#endif
