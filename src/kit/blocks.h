// SPDX-License-Identifier: Apache-2.0
// Memory that both the host and a device see, for bytes on their way. It is dear to make, so blocks
// have a few sizes and are kept for the next who needs one; and small pieces are cut from a ring,
// and go back to it in the order in which they were taken.
#ifndef KEEL_SRC_KIT_BLOCKS_H_
#define KEEL_SRC_KIT_BLOCKS_H_

#include <keel/status.h>

#include "base/lock.h"

typedef struct block_t {
    struct block_t *next;
    unsigned char *data;
    uint64_t address, size; // as the device sees it
    uint64_t used;          // of its bytes, from the first on; see block_cut
} block_t;

// The driver's. Any thread, no lock held.
typedef struct blocks_ops_t {
    // Makes such memory, which the device knows by *address; and gives it back.
    keel_status_t (*make)(void *owner, uint64_t size, void **data, uint64_t *address);
    void (*destroy)(void *owner, void *data);
} blocks_ops_t;

enum { BLOCKS_SIZES = 16 };

// Of a device; zero but for the first two.
typedef struct blocks_t {
    const blocks_ops_t *ops;
    void *owner;
    lock_t lock;
    block_t *kept[BLOCKS_SIZES]; // by size
    uint64_t size;               // of all of them
    uint64_t least;              // the same at its lowest since the last trim
    bool many;                   // blocks_trim is due
} blocks_t;

// One of at least `size` bytes: kept, made or, if there is no memory, a larger one. Fails with what
// the driver says if there is none either: blocks in use are not waited for. Any thread.
keel_status_t blocks_acquire(blocks_t *blocks, uint64_t size, block_t **block);
// Takes back a list of them, to be used again, unless not `keep` or none of that size is kept: then
// they are destroyed. True if there are now more than are kept for long, and blocks_trim is due
// when that suits; not said again until then.
bool blocks_return(blocks_t *blocks, block_t *list, bool keep);
// Destroys those beyond what is kept for long that were not needed since the last trim. True if
// it is due again.
bool blocks_trim(blocks_t *blocks);
// Destroys all that are kept.
void blocks_destroy(blocks_t *blocks);

// Cuts so many bytes from what is left of a block, which goes back as a whole. False if that is
// too little; NULL has nothing.
bool block_cut(block_t *block, uint64_t size, uint64_t *offset);

enum { RING_SIZE = 1 << 20 };

typedef struct ring_t {
    block_t *owned;        // of RING_SIZE bytes; the user's to make and to give back
    uint64_t head;         // bytes given out so far; written by the taking thread, one at a time
    _Atomic uint64_t tail; // bytes that came back
} ring_t;

// Takes `size` bytes in one piece. False if there is no room, or it is too large for a ring.
bool ring_take(ring_t *ring, uint64_t size, uint64_t *offset);
// All up to where the head was once is no longer used. Any thread.
void ring_return(ring_t *ring, uint64_t head);

// Bytes in one piece: from the ring, which gets its block when it is first needed; if that has no
// room, or `ring` is NULL, from the first block of `list`, or a new one in front of it.
keel_status_t blocks_piece(blocks_t *blocks, ring_t *ring, block_t **list, uint64_t size,
                           void **data, uint64_t *address);

#endif
