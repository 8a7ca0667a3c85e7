// SPDX-License-Identifier: Apache-2.0
// Finds a number of 32 bits by a key of 64.
#ifndef KEEL_SRC_TRACER_MAP_H_
#define KEEL_SRC_TRACER_MAP_H_

#include <keel/status.h>
#include <stdbool.h>
#include <stdint.h>

// Zeroed, it is empty.
typedef struct map_t {
    uint64_t *keys; // owned; 0: free
    uint32_t *values;
    uint32_t count, size; // size: a power of two
} map_t;

// Puts a value at a key that is not 0; a value that is there stays.
keel_status_t map_put(map_t *map, uint64_t key, uint32_t value) KEEL_MUST_USE;

// The same; the value replaces one that is there.
keel_status_t map_replace(map_t *map, uint64_t key, uint32_t value) KEEL_MUST_USE;

// False: there is none.
bool map_get(const map_t *map, uint64_t key, uint32_t *value);

void map_finish(map_t *map);

#endif
