// SPDX-License-Identifier: Apache-2.0
// The processors this process may use, and putting threads on them: by hwloc, or by nothing in
// portable builds.
#ifndef KEEL_SRC_BASE_TOPOLOGY_H_
#define KEEL_SRC_BASE_TOPOLOGY_H_

#include <pthread.h>

#include <keel/status.h>

// Cores (not hardware threads of them) that this process may use; at least 1.
keel_status_t topology_core_count(uint32_t *count) KEEL_MUST_USE;

// Processors by the system's numbers, one per worker.
typedef struct topology_set_t {
    uint32_t *processors; // owned
    uint32_t count;
} topology_set_t;

// The cores in an order that fills one neighbourhood (cache, memory node) after the other, for
// `text` NULL; else the processors it lists ("0-3,8").
keel_status_t topology_set_init(topology_set_t *set, const char *text) KEEL_MUST_USE;
void topology_set_finish(topology_set_t *set);

// The memory node, by the system's number, that the first `count` processors of the set belong to
// all; -1: they belong to several, or it is not known.
int topology_set_node(const topology_set_t *set, uint32_t count);

// Keeps a thread on a processor.
keel_status_t topology_bind(pthread_t thread, uint32_t processor) KEEL_MUST_USE;

#endif
