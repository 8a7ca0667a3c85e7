// SPDX-License-Identifier: Apache-2.0
// The address space of the GPUs of this process: which spans exist, where their bytes are, and
// which nodes may touch them. Device code never reaches memory that is not in here. Any thread may
// call any of it.
#ifndef SIM_AMD_MAP_H_
#define SIM_AMD_MAP_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
    uint64_t base;       // as devices see it
    uint64_t size;       // in bytes
    uint8_t *host;       // where the bytes are; borrowed
    uint64_t nodes;      // bit n: node n may touch it
    unsigned home;       // the node whose memory it is; 0: the host's
    bool shared;         // it is the host's memory at the host's own address (map_share)
    bool coarse;         // a GPU may keep what it reads and writes there to itself for a while
    struct fresh *fresh; // the map's own
} span_t;

// False when the span overlaps one that is there, or when memory is short.
bool map_add(const span_t *span);

// Takes out the span that begins at base; false when there is none.
bool map_remove(uint64_t base);

// Whether nothing is in [base, base + size) but shared spans.
bool map_shareable(uint64_t base, uint64_t size);

// Puts shared spans, which are sorted and disjoint, in the place of those in [base, base + size).
// No shared span may reach beyond that. False, and nothing is changed, when something else is
// there, or when memory is short.
bool map_share(uint64_t base, uint64_t size, const span_t *spans, size_t count);

// Takes out all spans whose bytes are within [host, host + size).
void map_drop(const uint8_t *host, uint64_t size);

// Around a fork: no thread changes anything between the two. In the child the threads are gone that
// were reading.
void map_hold(void);
void map_release(bool in_child);

// Forgets everything, in a process that was forked off another.
void map_forget(void);

// Says which nodes may touch the span that begins at base; false when there is none.
bool map_allow(uint64_t base, uint64_t nodes);

// Says that the span that begins at base is coarse-grained memory of a node; false when there is
// none.
bool map_coarse(uint64_t base, unsigned home);

// Has a function called, with its base, before a span is taken out or a node may no longer touch
// it. There is one such function; any thread may call it, with no lock of the map.
void map_on_removal(void (*leaves)(uint64_t base));

// Says that no byte of the span that begins at base was touched yet: each is to be filled with a
// value before it is. False when there is no such span, or when memory is short.
bool map_fresh(uint64_t base, uint8_t value);

// Fills what is left of the span that begins at base, if any.
void map_fill(uint64_t base);

// The span that holds an address; false when none does. With a size the bytes [address, address +
// size) are to be touched, as far as they are in the span: then they are filled, and of a span
// with fresh bytes elsewhere only the part around them is found.
bool map_find(uint64_t address, uint64_t size, span_t *out_span);

// Grows with every change, so that a copied span is good as long as this stays the same.
uint64_t map_generation(void);

// The bytes at [address, address + size) if the node may touch them all, else NULL.
void *map_bytes(uint64_t address, uint64_t size, unsigned node);

#endif
