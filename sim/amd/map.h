// SPDX-License-Identifier: Apache-2.0
// The address space of the GPUs of this process: which spans exist, where their bytes are, and
// which nodes may touch them. Device code never reaches memory that is not in here. Any thread may
// call any of it.
#ifndef SIM_AMD_MAP_H_
#define SIM_AMD_MAP_H_

#include <stdbool.h>
#include <stdint.h>

typedef struct {
    uint64_t base;  // as devices see it
    uint64_t size;  // in bytes
    uint8_t *host;  // where the bytes are; borrowed
    uint64_t nodes; // bit n: node n may touch it
} span_t;

// False when the span overlaps one that is there, or when memory is short.
bool map_add(const span_t *span);

// Takes out the span that begins at base; false when there is none.
bool map_remove(uint64_t base);

// Says which nodes may touch the span that begins at base; false when there is none.
bool map_allow(uint64_t base, uint64_t nodes);

// The span that holds an address; false when none does.
bool map_find(uint64_t address, span_t *out_span);

// Grows with every change, so that a copied span is good as long as this stays the same.
uint64_t map_generation(void);

// The bytes at [address, address + size) if the node may touch them all, else NULL.
void *map_bytes(uint64_t address, uint64_t size, unsigned node);

#endif
