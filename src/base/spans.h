// SPDX-License-Identifier: Apache-2.0
// Intrusive: spans of numbers, which may overlap, found by where they are. A treap of starts, in
// which each node knows how far the spans below it reach. No lock inside.
#ifndef KEEL_SRC_BASE_SPANS_H_
#define KEEL_SRC_BASE_SPANS_H_

#include <stdint.h>

typedef struct span_node_t {
    struct span_node_t *left, *right;
    uint64_t start, end; // set by the owner, who leaves them alone while it is in there; not empty
    uint64_t reach;      // the largest end, here and below
} span_node_t;

typedef struct spans_t {
    span_node_t *root; // NULL: empty
} spans_t;

void spans_insert(spans_t *spans, span_node_t *node);
void spans_remove(spans_t *spans, span_node_t *node); // it is in there
// The next span that overlaps start to end, in the order of starts, after one that is in there;
// NULL: the first. NULL if there is none.
span_node_t *spans_next(const spans_t *spans, uint64_t start, uint64_t end,
                        const span_node_t *after);

#endif
