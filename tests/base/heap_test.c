// SPDX-License-Identifier: Apache-2.0
#include "base/heap.h"

#include <stdbool.h>

#include "unit.h"

enum { NODES = 512, STEPS = 200000 };

// Random insertions and removals, the smallest key always being known from a plain scan.
static void test_random_against_scan(void **state)
{
    (void)state;
    static heap_node_t nodes[NODES];
    static bool in[NODES];
    heap_t heap = {NULL};
    uint64_t random = 1;
    for (int step = 0; step < STEPS; step++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        int i = (int)(random >> 33) % NODES;
        if (in[i]) {
            heap_remove(&heap, &nodes[i]);
        } else {
            nodes[i].key = random >> 50;
            heap_insert(&heap, &nodes[i]);
        }
        in[i] = !in[i];
        if (step % 16) continue;
        const heap_node_t *smallest = NULL;
        for (int k = 0; k < NODES; k++)
            if (in[k] && (!smallest || nodes[k].key < smallest->key)) smallest = &nodes[k];
        assert_int_equal(heap.root == NULL, smallest == NULL);
        if (smallest) assert_int_equal(heap.root->key, smallest->key);
    }
}

static void test_drains_in_order(void **state)
{
    (void)state;
    static heap_node_t nodes[NODES];
    heap_t heap = {NULL};
    for (int i = 0; i < NODES; i++) {
        nodes[i].key = (uint64_t)(i * 7919 % NODES);
        heap_insert(&heap, &nodes[i]);
    }
    for (uint64_t key = 0; key < NODES; key++) {
        assert_non_null(heap.root);
        assert_int_equal(heap.root->key, key);
        heap_remove(&heap, heap.root);
    }
    assert_null(heap.root);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_against_scan),
        cmocka_unit_test(test_drains_in_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
