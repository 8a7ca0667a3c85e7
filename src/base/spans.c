// SPDX-License-Identifier: Apache-2.0
#include "base/spans.h"

#include <stdbool.h>
#include <stddef.h>

// Of several with one start the addresses decide.
static bool is_before(const span_node_t *a, const span_node_t *b)
{
    return a->start != b->start ? a->start < b->start : (uintptr_t)a < (uintptr_t)b;
}

// As good as random, which keeps the tree flat: parents have more than their children.
static uint64_t priority(const span_node_t *node)
{
    uint64_t mixed = (uint64_t)(uintptr_t)node * 0x9e3779b97f4a7c15u;
    return (mixed ^ mixed >> 32) * 0xd6e8feb86659fd93u;
}

static span_node_t *node_update(span_node_t *node)
{
    node->reach = node->end;
    if (node->left && node->left->reach > node->reach) node->reach = node->left->reach;
    if (node->right && node->right->reach > node->reach) node->reach = node->right->reach;
    return node;
}

// Parts a tree into what is before a node and what is behind it.
static void tree_split(span_node_t *tree, const span_node_t *at, span_node_t **before,
                       span_node_t **behind)
{
    if (!tree) {
        *before = *behind = NULL;
    } else if (is_before(tree, at)) {
        tree_split(tree->right, at, &tree->right, behind);
        *before = node_update(tree);
    } else {
        tree_split(tree->left, at, before, &tree->left);
        *behind = node_update(tree);
    }
}

static span_node_t *tree_join(span_node_t *before, span_node_t *behind)
{
    if (!before || !behind) return before ? before : behind;
    if (priority(before) > priority(behind)) {
        before->right = tree_join(before->right, behind);
        return node_update(before);
    }
    behind->left = tree_join(before, behind->left);
    return node_update(behind);
}

static span_node_t *tree_insert(span_node_t *tree, span_node_t *node)
{
    if (!tree || priority(node) > priority(tree)) {
        tree_split(tree, node, &node->left, &node->right);
        return node_update(node);
    }
    span_node_t **side = is_before(node, tree) ? &tree->left : &tree->right;
    *side = tree_insert(*side, node);
    return node_update(tree);
}

static span_node_t *tree_remove(span_node_t *tree, const span_node_t *node)
{
    if (tree == node) return tree_join(tree->left, tree->right);
    span_node_t **side = is_before(node, tree) ? &tree->left : &tree->right;
    *side = tree_remove(*side, node);
    return node_update(tree);
}

void spans_insert(spans_t *spans, span_node_t *node)
{
    spans->root = tree_insert(spans->root, node);
}

void spans_remove(spans_t *spans, span_node_t *node)
{
    spans->root = tree_remove(spans->root, node);
}

static span_node_t *tree_next(span_node_t *tree, const span_node_t *wanted,
                              const span_node_t *after)
{
    if (!tree || tree->reach <= wanted->start) return NULL;
    bool candidate = !after || is_before(after, tree);
    span_node_t *found = candidate ? tree_next(tree->left, wanted, after) : NULL;
    if (found || tree->start >= wanted->end) return found;
    if (candidate && tree->end > wanted->start) return tree;
    return tree_next(tree->right, wanted, after);
}

span_node_t *spans_next(const spans_t *spans, uint64_t start, uint64_t end,
                        const span_node_t *after)
{
    return tree_next(spans->root, &(span_node_t){.start = start, .end = end}, after);
}
