// SPDX-License-Identifier: Apache-2.0
#include "base/heap.h"

#include <stddef.h>

// Makes the larger of two roots the first child of the other.
static heap_node_t *heap_meld(heap_node_t *a, heap_node_t *b)
{
    if (!a) return b;
    if (!b) return a;
    if (b->key < a->key) {
        heap_node_t *swap = a;
        a = b;
        b = swap;
    }
    b->next = a->child;
    if (a->child) a->child->previous = b;
    b->previous = a;
    a->child = b;
    return a;
}

// Melds a list of siblings into one tree: in pairs, left to right, then the pairs, right to left.
static heap_node_t *heap_meld_siblings(heap_node_t *first)
{
    heap_node_t *pairs = NULL;
    while (first) {
        heap_node_t *a = first, *b = a->next;
        first = b ? b->next : NULL;
        a->next = a->previous = NULL;
        if (b) b->next = b->previous = NULL;
        heap_node_t *pair = heap_meld(a, b);
        pair->next = pairs; // a stack, so the second pass goes the other way
        pairs = pair;
    }
    heap_node_t *root = NULL;
    while (pairs) {
        heap_node_t *pair = pairs;
        pairs = pair->next;
        pair->next = NULL;
        root = heap_meld(root, pair);
    }
    return root;
}

void heap_insert(heap_t *heap, heap_node_t *node)
{
    node->child = node->next = node->previous = NULL;
    heap->root = heap_meld(heap->root, node);
}

void heap_remove(heap_t *heap, heap_node_t *node)
{
    heap_node_t *children = heap_meld_siblings(node->child);
    if (node == heap->root) {
        heap->root = children;
        return;
    }
    if (node->previous->child == node)
        node->previous->child = node->next;
    else
        node->previous->next = node->next;
    if (node->next) node->next->previous = node->previous;
    heap->root = heap_meld(heap->root, children);
}
