// SPDX-License-Identifier: Apache-2.0
#include "base/spans.h"

#include <stdbool.h>

#include "unit.h"

enum { NODES = 400, STEPS = 20000 };

static uint64_t seed = 1;

static uint64_t random_below(uint64_t most)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (seed >> 33) % most;
}

// Those found are all that a plain scan finds, once each, in order.
static void check(const spans_t *spans, const span_node_t *nodes, const bool *in, uint64_t start,
                  uint64_t end)
{
    int expected = 0, found = 0;
    for (int i = 0; i < NODES; i++)
        expected += in[i] && nodes[i].start < end && start < nodes[i].end;
    const span_node_t *last = NULL;
    for (const span_node_t *at; (at = spans_next(spans, start, end, last)); last = at, found++) {
        assert_true(in[at - nodes]);
        assert_true(at->start < end && start < at->end);
        if (last) assert_true(last->start <= at->start);
    }
    assert_int_equal(found, expected);
}

static void test_random_against_scan(void **state)
{
    (void)state;
    static span_node_t nodes[NODES];
    static bool in[NODES];
    spans_t spans = {NULL};
    for (int step = 0; step < STEPS; step++) {
        uint64_t i = random_below(NODES), start = random_below(1000);
        if (in[i]) {
            spans_remove(&spans, &nodes[i]);
        } else {
            nodes[i] = (span_node_t){.start = start};
            nodes[i].end = start + 1 + random_below(random_below(20) ? 10 : 500);
            spans_insert(&spans, &nodes[i]);
        }
        in[i] = !in[i];
        start = random_below(1000);
        check(&spans, nodes, in, start, start + 1 + random_below(30));
        if (step % 100 == 0) check(&spans, nodes, in, 0, UINT64_MAX);
    }
}

static int depth_of(const span_node_t *node)
{
    int left = node ? depth_of(node->left) : 0, right = node ? depth_of(node->right) : 0;
    return node ? 1 + (left > right ? left : right) : 0;
}

// In whatever order they come.
static void test_tree_stays_flat(void **state)
{
    (void)state;
    enum { MANY = 1 << 14 };
    static span_node_t nodes[MANY];
    spans_t spans = {NULL};
    for (int i = 0; i < MANY; i++) {
        nodes[i] = (span_node_t){.start = (uint64_t)i * 4096, .end = (uint64_t)i * 4096 + 4096};
        spans_insert(&spans, &nodes[i]);
    }
    assert_in_range(depth_of(spans.root), 14, 60);
    for (int i = 0; i < MANY; i++) spans_remove(&spans, &nodes[i]);
    assert_null(spans.root);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_against_scan),
        cmocka_unit_test(test_tree_stays_flat),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
