// SPDX-License-Identifier: Apache-2.0
// Dealing out: each worker gets its own share first, and every unit runs once.
#include <stdlib.h>
#include <string.h>

#include "drivers/cpu/cpu.h"
#include "unit.h"

enum { WORKERS = 4, UNITS = 64, SHARE = UNITS / WORKERS };

typedef struct place_t {
    cpu_device_t device;
    cpu_node_t node;
    cpu_queue_t queue;
    keel_cmd_fill_t fill;
    cpu_run_t *run;
    int claims[UNITS];
} place_t;

// A run with UNITS of a fill at hand, dealt out.
static int place_open(void **state)
{
    place_t *place = aligned_alloc(64, (sizeof *place + 63) & ~(size_t)63);
    size_t size = sizeof(cpu_run_t) + WORKERS * sizeof(cpu_share_t);
    cpu_run_t *run = aligned_alloc(64, size);
    memset(place, 0, sizeof *place);
    memset(run, 0, size);
    place->node.device = &place->device;
    place->node.worker_count = place->node.share_count = WORKERS;
    place->queue.node = &place->node;
    place->fill.head.kind = KEEL_CMD_FILL;
    place->run = run;
    run->base.queue = &place->queue.base;
    run->at = &place->fill.head;
    run->units = UNITS;
    assert_true(cpu_deal_publish(run, 100)); // a unit costs 1: all of a share at once
    assert_int_equal(run->in_flight, 1);
    *state = place;
    return 0;
}

static int place_close(void **state)
{
    place_t *place = *state;
    free(place->run);
    free(place);
    return 0;
}

static bool claim(place_t *place, uint32_t worker, cpu_chunk_t *chunk)
{
    if (!cpu_deal_claim(place->run, worker, chunk)) return false;
    assert_ptr_equal(chunk->command, &place->fill.head);
    for (uint64_t i = 0; i < chunk->count; i++) place->claims[chunk->first + i]++;
    return true;
}

static void test_own_share(void **state)
{
    place_t *place = *state;
    for (uint32_t i = WORKERS; i--;) {
        cpu_chunk_t chunk;
        assert_true(claim(place, i, &chunk));
        assert_int_equal(chunk.first, i * SHARE);
        assert_int_equal(chunk.count, SHARE);
    }
    cpu_chunk_t none;
    assert_false(claim(place, 0, &none));
    assert_false(cpu_deal_is_open(place->run));
}

static void test_ends(void **state)
{
    place_t *place = *state;
    cpu_chunk_t chunks[WORKERS];
    for (uint32_t i = 0; i < WORKERS; i++) assert_true(claim(place, i, &chunks[i]));
    for (uint32_t i = 0; i < WORKERS; i++)
        assert_int_equal(cpu_deal_end(place->run, chunks[i].deal, chunks[i].count),
                         i == WORKERS - 1);
}

// One worker alone gets all: its own, then from the ends of the others', less and less.
static void test_takes_from_others(void **state)
{
    place_t *place = *state;
    cpu_chunk_t chunk;
    uint64_t ended = 0;
    assert_true(claim(place, 1, &chunk));
    assert_int_equal(chunk.first, SHARE);
    ended += chunk.count;
    assert_true(claim(place, 1, &chunk));
    assert_int_equal(chunk.first, 3 * SHARE - SHARE / 2);
    assert_int_equal(chunk.count, SHARE / 2);
    ended += chunk.count;
    while (claim(place, 1, &chunk)) ended += chunk.count;
    assert_int_equal(ended, UNITS);
    for (int i = 0; i < UNITS; i++) assert_int_equal(place->claims[i], 1);
    assert_true(cpu_deal_end(place->run, chunk.deal, UNITS));
}

// Nothing is dealt out anew before all is claimed, and the next one has the same shares.
static void test_next_deal(void **state)
{
    place_t *place = *state;
    cpu_chunk_t chunk;
    place->run->unit = 0;
    assert_false(cpu_deal_publish(place->run, 100));
    while (claim(place, 0, &chunk)) {
    }
    assert_true(cpu_deal_publish(place->run, 100));
    assert_true(claim(place, 3, &chunk));
    assert_int_equal(chunk.first, 3 * SHARE);
}

static void test_withdraw(void **state)
{
    place_t *place = *state;
    cpu_chunk_t chunk, none;
    assert_true(claim(place, 2, &chunk));
    assert_false(cpu_deal_withdraw(place->run)); // what is claimed has still to end
    assert_false(claim(place, 0, &none));
    assert_true(cpu_deal_end(place->run, chunk.deal, chunk.count));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_own_share, place_open, place_close),
        cmocka_unit_test_setup_teardown(test_ends, place_open, place_close),
        cmocka_unit_test_setup_teardown(test_takes_from_others, place_open, place_close),
        cmocka_unit_test_setup_teardown(test_next_deal, place_open, place_close),
        cmocka_unit_test_setup_teardown(test_withdraw, place_open, place_close),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
