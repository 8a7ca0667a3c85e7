// SPDX-License-Identifier: Apache-2.0
// An intrusive pairing heap: smallest key first, constant insertion, removal of any node. No lock
// inside.
#ifndef KEEL_SRC_BASE_HEAP_H_
#define KEEL_SRC_BASE_HEAP_H_

#include <stdint.h>

typedef struct heap_node_t {
    struct heap_node_t *child;    // first child
    struct heap_node_t *next;     // next sibling
    struct heap_node_t *previous; // previous sibling; the parent of a first child; NULL in the root
    uint64_t key;
} heap_node_t;

typedef struct heap_t {
    heap_node_t *root; // NULL: empty
} heap_t;

void heap_insert(heap_t *heap, heap_node_t *node); // its key is set
void heap_remove(heap_t *heap, heap_node_t *node); // it is in there

#endif
