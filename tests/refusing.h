// SPDX-License-Identifier: Apache-2.0
// An allocator that refuses one allocation and counts blocks, for tests in which each allocation
// fails in turn. One thread at a time.
#ifndef TESTS_REFUSING_H_
#define TESTS_REFUSING_H_

#include <stdlib.h>

#include <keel/base.h>

static int refused_at, made; // which is refused, from 1; how many were asked for
static int live;             // blocks that are not freed

static inline void *refusing_resize(void *user, void *old, size_t size)
{
    (void)user;
    if (++made == refused_at) return NULL;
    live += !old;
    return realloc(old, size);
}

static inline void refusing_free(void *user, void *memory)
{
    (void)user;
    live--;
    free(memory);
}

static const keel_allocator_t refusing = {refusing_resize, refusing_free, NULL};

#endif
