// SPDX-License-Identifier: Apache-2.0
// Ranges and marks by which applications tell what they do, through a library of a vendor's. Names
// are numbers of the trace. Nothing is recorded while tracing is off. Any thread.
#ifndef KEEL_SRC_CAPTURE_RANGES_H_
#define KEEL_SRC_CAPTURE_RANGES_H_

#include <stdint.h>

void ranges_mark(uint32_t name);

// Ranges that a thread nests, for each domain on its own. Both return how many of the domain are
// around it; -1 if there is none to end, or no memory.
int ranges_push(const void *domain, uint32_t name);
int ranges_pop(const void *domain);

// Ranges that any thread may end, by the number that is returned, which is not 0.
uint64_t ranges_start(uint32_t name);
void ranges_stop(uint64_t id);

#endif
