// SPDX-License-Identifier: Apache-2.0
// Submitting and releasing never wait: here the vendor's streams do not advance, or its calls do
// not return, until the test says so. Other queues go on meanwhile, and in the end all is done.
#include <sched.h>
#include <stdatomic.h>

#include "drivers/stream/fixture.h"

static keel_queue_t *other; // the vendor's queue 1, which runs
static keel_buffer_t *x, *y;
static uint64_t waits; // of this thread, in the vendor, before the test

static const uint32_t one = 1, minus = UINT32_MAX;

static uint64_t waits_here(void)
{
    return vendor_calls_here(SLOT(event_sync)) + vendor_calls_here(SLOT(stream_drain));
}

static int held_open(void **state)
{
    fixture_open(state);
    ok_status(keel_queue_create(device, NULL, &other));
    x = numbers(0, 0, 0);
    y = numbers(0, 0, 0);
    vendor_hold();
    vendor_let(1);
    waits = waits_here();
    return 0;
}

static int held_close(void **state)
{
    vendor_unblock(SLOT(graph_instantiate)); // if the test has failed
    vendor_unblock(SLOT(free_device));
    keel_buffer_release(x);
    keel_buffer_release(y);
    keel_queue_release(other);
    return fixture_close(state);
}

static keel_op_t op_plus(keel_buffer_t *buffer)
{
    static keel_ref_t refs[2];
    keel_ref_t *ref = &refs[buffer == y];
    *ref = keel_whole(buffer);
    return op_add(ref, &one, 1);
}

// The other queue goes on, the point is not reached; then all are let go, and it is.
static void the_rest_goes_on(keel_point_t point)
{
    keel_op_t op = op_plus(y);
    uint32_t before = words_of(y)[0];
    ok(submit(other, KEEL_NO_WAITS, &op, 1));
    assert_int_equal(words_of(y)[0], before + 1);
    assert_false(is_reached(point));
    assert_int_equal(waits_here(), waits);
    vendor_go();
    ok(point);
}

static void blocks(void **state)
{
    (void)state;
    keel_buffer_t *rounds = numbers(3, 0, 0);
    keel_op_t ops[] = {
        keel_op_while(keel_span(rounds, 0, 4)),
        op_plus(x),
        keel_op_dispatch(add, keel_groups(1, 1, 1), &minus, 4, KEEL_BIND(rounds)),
        keel_op_end(),
        keel_op_fill(keel_span(rounds, 0, 4), 2, 4),
    };
    keel_recording_t *recording = record(ops, COUNT(ops), 0);
    keel_point_t first = execute(queue, recording, KEEL_NO_BINDINGS);
    keel_op_t again = keel_op_execute(recording, KEEL_NO_BINDINGS);
    keel_point_t second = submit(queue, KEEL_AFTER(first), &again, 1);
    the_rest_goes_on(second);
    assert_int_equal(words_of(x)[0], 5);
    keel_recording_release(recording);
    keel_buffer_release(rounds);
}

static void grids_in_memory(void **state)
{
    (void)state;
    enum { MANY = 100 };
    raw_t raw;
    keel_point_t last = {0};
    keel_buffer_t *counts = numbers(2, 1, 1);
    keel_op_t op = op_raw_add(&raw, keel_whole(x), 1, keel_span(counts, 0, 12));
    for (int i = 0; i < MANY; i++) last = submit(queue, KEEL_NO_WAITS, &op, 1);
    the_rest_goes_on(last);
    ok_status(keel_queue_wait_idle(queue, KEEL_FOREVER));
    assert_int_equal(words_of(x)[0], 2 * MANY);
    keel_buffer_release(counts);
}

static void a_graph_that_has_to_be_made(void **state)
{
    (void)state;
    if (!(kind->features & STREAM_GRAPHS) || !kind->quirks.graph_waits) skip();
    keel_op_t op = op_plus(x);
    keel_recording_t *recording = record(&op, 1, 0);
    uint64_t made_here = vendor_calls_here(SLOT(graph_instantiate));
    vendor_block(SLOT(graph_instantiate));
    keel_point_t done = execute(queue, recording, KEEL_NO_BINDINGS);
    assert_true(vendor_await_blocked(SLOT(graph_instantiate)));
    keel_op_t more = op_plus(y);
    keel_point_t behind = submit(queue, KEEL_NO_WAITS, &more, 1);
    ok(submit(other, KEEL_NO_WAITS, &more, 1));
    assert_false(is_reached(done));
    vendor_unblock(SLOT(graph_instantiate));
    the_rest_goes_on(done);
    ok(behind);
    assert_int_equal(words_of(x)[0], 1);
    assert_int_equal(vendor_calls_here(SLOT(graph_instantiate)), made_here);
    keel_recording_release(recording);
}

// Many small submissions and a large one, beyond what a stream takes before the vendor blocks.
static void a_full_stream(void **state)
{
    (void)state;
    enum { MANY = 60 };
    const stream_quirks_t *quirks = &kind->quirks;
    uint32_t room = quirks->full_shared ? 2 * quirks->pending : quirks->pending + 4;
    keel_op_t ops[MANY];
    for (int i = 0; i < MANY; i++) ops[i] = op_plus(x);
    if (quirks->pending) vendor_room(room);
    for (int i = 0; i < MANY; i++) submit(queue, KEEL_NO_WAITS, &ops[i], 1);
    keel_point_t last = submit(queue, KEEL_NO_WAITS, ops, MANY);
    if (quirks->full_shared) // each submission is followed by an event
        assert_true(vendor_await_pending(0, quirks->pending / (1 + quirks->event_room)));
    else if (quirks->pending)
        assert_true(vendor_await_pending(0, room));
    else // which never blocks: all is there
        assert_true(vendor_await_pending(0, 2 * MANY));
    the_rest_goes_on(last);
    ok_status(keel_queue_wait_idle(queue, KEEL_FOREVER));
    assert_int_equal(words_of(x)[0], 2 * MANY);
    if (quirks->pending) assert_in_range(vendor_most_load(0), 1, room);
}

// What takes more room than others: copies, fills, and graphs, one of them more than a stream has.
static void a_stream_full_of_large_things(void **state)
{
    (void)state;
    enum { MANY = 20, NODES = 6, LONG = 40 };
    const stream_quirks_t *quirks = &kind->quirks;
    keel_op_t ops[NODES], beside[LONG / 2];
    for (int i = 0; i < NODES; i++) ops[i] = i % 2 ? keel_op_barrier() : op_plus(x);
    for (int i = 0; i < LONG / 2; i++) beside[i] = op_plus(x);
    keel_op_t moves[] = {keel_op_copy(keel_span(x, 16, 4), keel_span(x, 32, 4)), keel_op_barrier(),
                         keel_op_fill(keel_span(x, 48, 8), 3, 4)};
    keel_recording_t *some = record(ops, NODES, 0), *more = record(beside, LONG / 2, 0);
    keel_point_t last = {0};
    if (quirks->full_shared) vendor_room(2 * quirks->pending);
    for (int i = 0; i < MANY; i++) {
        submit(queue, KEEL_NO_WAITS, moves, COUNT(moves));
        execute(queue, some, KEEL_NO_BINDINGS);
        last = execute(queue, more, KEEL_NO_BINDINGS);
    }
    the_rest_goes_on(last);
    assert_int_equal(words_of(x)[0], MANY * (NODES + LONG) / 2);
    assert_int_equal(words_of(x)[13], 3);
    keel_recording_release(some);
    keel_recording_release(more);
}

// A recording goes on in another graph at its barriers, so that no graph is more than a stream has.
static void a_long_recording(void **state)
{
    (void)state;
    enum { LONG = 60 };
    const stream_quirks_t *quirks = &kind->quirks;
    keel_op_t ops[LONG];
    if (!quirks->graph_unrolls) skip();
    for (int i = 0; i < LONG; i++)
        ops[i] = i % 2 ? keel_op_barrier() : keel_op_fill(keel_span(x, 0, 8), 3, 4);
    keel_recording_t *recording = record(ops, LONG, 0);
    vendor_room(2 * quirks->pending);
    execute(queue, recording, KEEL_NO_BINDINGS);
    the_rest_goes_on(execute(queue, recording, KEEL_NO_BINDINGS));
    assert_int_equal(words_of(x)[1], 3);
    assert_in_range(vendor_most_load(0), 1, quirks->pending + quirks->event_room);
    keel_recording_release(recording);
}

// A submission that waits for more queues than its stream has room for events.
static void many_waits(void **state)
{
    (void)state;
    enum { QUEUES = 20 };
    keel_queue_t *queues[QUEUES];
    keel_point_t points[QUEUES];
    const stream_quirks_t *quirks = &kind->quirks;
    keel_op_t op = op_plus(x);
    if (quirks->full_shared) vendor_room(2 * quirks->pending);
    for (int i = 0; i < QUEUES; i++) {
        ok_status(keel_queue_create(device, NULL, &queues[i]));
        points[i] = submit(queues[i], KEEL_NO_WAITS, &op, 1);
    }
    the_rest_goes_on(submit(queue, keel_points(points, QUEUES), &op, 1));
    assert_int_equal(words_of(x)[0], QUEUES + 1);
    if (quirks->full_shared) // one event behind these, and the one that a thread sleeps for
        assert_in_range(vendor_most_load(0), 1, quirks->pending + 2 * quirks->event_room);
    for (int i = 0; i < QUEUES; i++) keel_queue_release(queues[i]);
}

static void given_back(void *done)
{
    atomic_store((_Atomic bool *)done, true);
}

// Returns when the thread that gives things back has done all that does not wait for the device.
static void small_things_are_given_back(void)
{
    static _Atomic bool done;
    atomic_store(&done, false);
    keel_external_buffer_t external = {.kind = KEEL_EXTERNAL_DEVICE,
                                       .handle.device = (uintptr_t)words_of(y),
                                       .size = 64,
                                       .release = given_back,
                                       .user = (void *)&done};
    keel_buffer_options_t options = {0};
    keel_buffer_t *imported = NULL;
    ok_status(keel_buffer_import(device, &external, &options, &imported));
    keel_buffer_release(imported);
    while (!atomic_load(&done)) sched_yield();
}

// Only a vendor that waits there is left alone while the device works.
static void memory_that_is_released(void **state)
{
    (void)state;
    keel_buffer_t *gone = numbers(0, 0, 0);
    keel_op_t op = op_plus(x);
    keel_point_t busy = submit(queue, KEEL_NO_WAITS, &op, 1);
    uint64_t frees = vendor_calls(SLOT(free_device));
    keel_buffer_release(gone);
    if (!kind->quirks.free_waits) {
        assert_true(vendor_await(SLOT(free_device), frees + 1));
        the_rest_goes_on(busy);
        return;
    }
    small_things_are_given_back();
    assert_int_equal(vendor_calls(SLOT(free_device)), frees);
    vendor_block(SLOT(free_device));
    the_rest_goes_on(busy);
    assert_true(vendor_await_blocked(SLOT(free_device)));
    keel_point_t later = submit(queue, KEEL_NO_WAITS, &op, 1); // while the vendor waits
    vendor_unblock(SLOT(free_device));
    ok(later);
    assert_int_equal(words_of(x)[0], 2);
}

static void code_that_is_released(void **state)
{
    (void)state;
    keel_executable_t *more = NULL;
    ok_status(kernels_load(device, &more));
    keel_op_t op = op_plus(x);
    keel_point_t busy = submit(queue, KEEL_NO_WAITS, &op, 1);
    uint64_t unloads = vendor_calls(SLOT(module_unload));
    keel_executable_release(more);
    small_things_are_given_back();
    assert_int_equal(vendor_calls(SLOT(module_unload)), unloads + !kind->quirks.free_waits);
    the_rest_goes_on(busy);
    assert_true(vendor_await(SLOT(module_unload), unloads + 1));
}

static keel_status_t host_add(void *user, keel_host_call_t *call)
{
    (void)call;
    *(uint32_t *)user += 1;
    return NULL;
}

static void host_calls_behind_work(void **state)
{
    (void)state;
    keel_op_t ops[] = {op_plus(x), keel_op_barrier(), keel_op_host_call(host_add, words_of(x)),
                       keel_op_barrier(), op_plus(x)};
    the_rest_goes_on(submit(queue, KEEL_NO_WAITS, ops, COUNT(ops)));
    assert_int_equal(words_of(x)[0], 3);
}

// An alloca beyond the limit waits for a dealloca that is behind work.
static void allocas_of_a_full_pool(void **state)
{
    (void)state;
    enum { SIZE = 1 << 16 };
    keel_pool_options_t options = {.limit = SIZE};
    keel_pool_t *pool = NULL;
    keel_buffer_t *first, *second;
    keel_point_t ready, freed;
    ok_status(keel_pool_create(device, &options, &pool));
    ok_status(keel_queue_alloca(queue, pool, SIZE, &first, &ready));
    keel_op_t op = keel_op_fill(keel_whole(first), 1, 4);
    keel_point_t filled = submit(queue, KEEL_AFTER(ready), &op, 1);
    ok_status(keel_queue_dealloca(queue, KEEL_AFTER(filled), first, &freed));
    ok_status(keel_queue_alloca(queue, pool, SIZE, &second, &ready));
    op = keel_op_fill(keel_whole(second), 2, 4);
    the_rest_goes_on(submit(queue, KEEL_AFTER(ready), &op, 1));
    ok(freed);
    assert_int_equal(words_of(second)[SIZE / 4 - 1], 2);
    keel_buffer_release(first);
    keel_buffer_release(second);
    keel_pool_release(pool);
}

// Old memory goes back when the device is idle. The vendor is not asked for more than is left until
// then, as it might wait there.
static void allocas_while_memory_comes_back(void **state)
{
    (void)state;
    enum { SIZE = 64 << 20 };
    if (!kind->quirks.free_waits || kind->features & STREAM_POOLS) skip();
    keel_buffer_options_t options = {.size = SIZE};
    keel_pool_t *pool = NULL;
    keel_buffer_t *old = NULL, *fresh = NULL;
    vendor_memory(SIZE / 2 * 3);
    ok_status(keel_pool_create(device, NULL, &pool));
    ok_status(keel_buffer_create(device, &options, &old));
    keel_op_t op = op_plus(x);
    keel_point_t busy = submit(queue, KEEL_NO_WAITS, &op, 1), ready;
    uint64_t allocs = vendor_calls(SLOT(alloc_device));
    keel_buffer_release(old);
    ok_status(keel_queue_alloca(other, pool, SIZE, &fresh, &ready));
    assert_int_equal(vendor_calls(SLOT(alloc_device)), allocs);
    assert_false(is_reached(ready));
    the_rest_goes_on(busy);
    ok(ready);
    ok_status(keel_queue_dealloca(other, KEEL_AFTER(ready), fresh, &ready));
    ok(ready);
    keel_buffer_release(fresh);
    keel_pool_release(pool);
}

// Nothing can be recorded behind work, twice: then the queue's own thread waits for the stream.
static void an_event_that_cannot_be_recorded(void **state)
{
    (void)state;
    keel_op_t op = op_plus(x);
    vendor_fail(SLOT(event_record), 1, KEEL_RESOURCE_EXHAUSTED);
    the_rest_goes_on(submit(queue, KEEL_NO_WAITS, &op, 1));
    assert_int_equal(words_of(x)[0], 1);
}

#define HELD(f) cmocka_unit_test_setup_teardown(f, held_open, held_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        HELD(blocks),
        HELD(grids_in_memory),
        HELD(a_graph_that_has_to_be_made),
        HELD(a_full_stream),
        HELD(a_stream_full_of_large_things),
        HELD(a_long_recording),
        HELD(many_waits),
        HELD(memory_that_is_released),
        HELD(code_that_is_released),
        HELD(host_calls_behind_work),
        HELD(allocas_of_a_full_pool),
        HELD(allocas_while_memory_comes_back),
        HELD(an_event_that_cannot_be_recorded),
    };
    return run_on_all(tests, COUNT(tests));
}
